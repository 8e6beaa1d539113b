// Package ollama is the wire format of Ollama chat: POST /api/chat, answered by
// one JSON object, or by a stream with an object on each line.
//
// A request that does not say "stream" asks for a stream. A message is
//
//	{"role": …, "content": text, "thinking": text, "images": [base64, …], "tool_calls": [call, …]}
//
// and all text of a neutral message is one content: parts are joined. Reasoning
// that another provider wrote is left out. A result is a message of role tool
// with "tool_name" (some clients write "name") and, on newer servers,
// "tool_call_id". Older servers give calls no ids: theirs are by place in the
// conversation, results belong to them by name and order, and such an id is never
// written.
//
// In a stream each line is a piece of the message, and clients join them. Calls
// come whole. The last line says "done", the reason and the usage. Text is live,
// thinking waits for what follows it. A call is held, and what the client does not
// have yet follows as lines: the rest of the text, the calls, and the end.
//
// Copies: some clients give a tool's name beside its function too.
//
// Cannot be encoded: a tool choice, the address of an image, results in another
// order than their calls without ids, a mark of failure on a result that was
// read from this format (on any other it goes unsaid), and a second choice.
package ollama
