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
// order. The signature of a thought is a member of its part or call, and stays with it.
//
// An answer is one object, a stream of server-sent events, or a JSON array. The chunks of
// a stream are independent of each other. Text is shown at once, thoughts wait for the next
// text. A call is held, and the part that the client does not have follows as one more
// chunk. A call comes whole, or on Vertex in pieces (partialCall).
//
// Copies: only the model, which is in every chunk.
//
// Cannot be encoded: results in another order than their calls without ids,
// a system message after other messages, a change that makes a tool strict,
// more or fewer candidates, and a change of a built-in tool.
//
// The files: gemini.go has the Format, its paths and keep-alives; request.go the root of a
// request and its settings; message.go contents, parts and calls; tools.go tools and
// schemas; stream.go reads answers; answer.go writes them; errors.go has the errors.
//
// Source: https://ai.google.dev/api/generate-content, and recorded exchanges.
package gemini

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

const dialect = "gemini-generate"

// on reads and writes members in either spelling.
var on = lens.Lens{Dialect: dialect, Is: isName, Bare: true, NoCallLimit: true}

// Format is the codec. Its methods are described in package wire.
type Format struct{ codec.Defaults[Format] }

var _ codec.Format = Format{}

// Dialect returns the name of the format.
func (Format) Dialect() string { return dialect }

// Match reports whether a request is in the format. Counting tokens and batches have bodies of their
// own, and paths that MatchPath does not know.
func (f Format) Match(path string, body []byte) bool {
	return f.MatchPath(path) && strings.HasPrefix(strings.TrimLeft(string(body[:min(len(body), 64)]), " \t\r\n"), "{")
}

// MatchPath reports whether requests with that path may be in the format. Those to v1internal,
// as Gemini CLI sends with a Google login, are in an envelope of their own.
func (Format) MatchPath(at string) bool {
	return codec.PathEnds(at, ":generatecontent", ":streamgeneratecontent") && !strings.Contains(codec.Path(at), "/v1internal:")
}

// URL returns where requests go. A model with a path of its own, such as tunedModels/x or
// publishers/google/models/x, is put below base unchanged.
func (Format) URL(base, model string, stream bool) string {
	if base == "" {
		base = "https://generativelanguage.googleapis.com/v1beta"
	}
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	path := strings.Split(strings.Trim(model, "/"), "/")
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	to := strings.TrimRight(base, "/") + "/" + strings.Join(path, "/")
	if stream {
		return to + ":streamGenerateContent?alt=sse"
	}
	return to + ":generateContent"
}

// Authorize sets the key. The Developer API takes the key in a header of
// its own. Vertex wants a bearer token, which the caller sets.
func (Format) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("x-goog-api-key", key)
	}
}

// KeepAlive returns bytes that tell the client that a streamed answer continues. Google's
// clients fail at a comment, and a chunk without content makes their chats drop the turn from
// history. All skip an event without any line: google-genai 3.4 (Python) skips empty lines,
// @google/genai 2.32 (JavaScript) and google.golang.org/genai 1.77 empty events. Between the
// elements of an array, the keep-alive is white space.
func (Format) KeepAlive(text string, _, _ int) (string, bool) {
	switch {
	case codec.MayBeEvents(text) && strings.Contains(text, "\r\n"):
		return "\r\n\r\n", false
	case codec.MayBeEvents(text):
		return "\n\n", false
	case codec.IsList(text):
		return "\n", false
	}
	return "", false
}

// isName reports whether key is the member camel in one of the two spellings
// that the server reads: maxOutputTokens or max_output_tokens. It makes no string, as it
// is asked about each member of a body.
func isName(key, camel string) bool {
	if key == camel {
		return true
	}
	i := 0
	for _, c := range []byte(camel) {
		if 'A' <= c && c <= 'Z' {
			if i >= len(key) || key[i] != '_' {
				return false
			}
			i++
			c += 'a' - 'A'
		}
		if i >= len(key) || key[i] != c {
			return false
		}
		i++
	}
	return i == len(key)
}
