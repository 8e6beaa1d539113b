// Package gemini is the wire format of Gemini: generateContent and
// streamGenerateContent, on the Developer API and on Vertex.
//
// The conversation is a list of contents, each with a role and parts:
//
//	{"role": "user" or "model", "parts": [part, …]}
//
// A part is a text, a thought, media, a functionCall of the model, or a
// functionResponse to it. The provider has many more kinds; those are opaque.
// A content of the model is one neutral message. Of any other content each
// functionResponse is one tool message, and all other parts are one user message.
// Each part of systemInstruction is one system message. The model is in the path
// of a request and not in the body.
//
// The server reads each member in camelCase and in snake_case, one object in the
// place of a list, null as absent, and enums by number. So does this package, and
// an edit keeps the spelling.
//
// Most models give calls no ids. Such a call has an id by its place in the
// conversation, which is never written, and results belong to calls by name and
// order. A signature of a thought stands beside the part or the call that it
// belongs to, and stays with it.
//
// An answer is one object, a stream of server-sent events, or a JSON array. Each
// chunk of a stream stands for itself. Text is live, thoughts wait for what
// follows them. A call is held, and what the client does not have yet follows as
// one more chunk. A call comes whole, or on Vertex in pieces (see partial.go). No value stands in two places, but the model: it is in
// every chunk.
//
// What cannot be encoded: results in another order than their calls without ids,
// a system message behind another one, a strict tool in the place of one that is
// not, more or fewer candidates, and a change of a built-in tool.
//
// Source: https://ai.google.dev/api/generate-content, and recorded exchanges.
package gemini
