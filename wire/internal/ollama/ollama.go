// Package ollama is the wire format of Ollama chat: POST /api/chat, answered by
// one JSON object, or by a stream with an object on each line.
//
// A request without "stream" asks for a stream. A message is
//
//	{"role": …, "content": text, "thinking": text, "images": [base64, …], "tool_calls": [call, …]}
//
// and all text of a neutral message is one content: parts are joined. Reasoning
// that another provider wrote is left out. A result is a message of role tool
// with "tool_name" (some clients write "name") and, on newer servers,
// "tool_call_id". Older servers give calls no ids. Such a call gets an id by its place in the
// conversation, results belong to calls by name and order, and the id is never
// written.
//
// In a stream each line is a piece of the message, and clients join them. Calls
// come whole. The last line has "done", the reason and the usage. Text is shown at once,
// thinking waits for the next text. A call is held. The part that the client does not
// have follows as lines: the rest of the text, the calls, and the end.
//
// Copies: some clients give a tool's name twice, in its function and next to it.
//
// Cannot be encoded: a tool choice, the address of an image, results in another
// order than their calls without ids, the mark of a failed result that was
// read from this format (for any other result the mark is dropped), and a second choice.
//
// The files: ollama.go has the Format, its path and keep-alives; request.go the root of a
// request; message.go messages and calls; tools.go tools; stream.go reads answers;
// answer.go writes them; errors.go has the errors.
package ollama

import (
	"bytes"
	"strings"

	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

const (
	dialect = "ollama-chat"
	server  = "http://localhost:11434"
	path    = "/api/chat"
)

// on is how members of this format are read and written.
var on = lens.Lens{Dialect: dialect, NoAllowedTools: true, NoCallLimit: true}

// Format is the codec. Its methods are described in package wire.
type Format struct{ codec.Defaults[Format] }

var _ codec.Format = Format{}

// Dialect returns the name of the format.
func (Format) Dialect() string { return dialect }

// Match reports whether a request is in the format. The body is not parsed: a request without messages
// only loads the model, and passes as it is.
func (f Format) Match(at string, body []byte) bool {
	return f.MatchPath(at) && bytes.Contains(body, []byte(`"messages"`))
}

// MatchPath reports whether requests with that path may be in the format.
func (Format) MatchPath(at string) bool { return codec.PathEnds(at, path) }

// WantsStream reports whether a request asks for a streamed answer. The default is yes.
func (Format) WantsStream(path string, body []byte) bool { return codec.WantsStream(path, body, true) }

// URL returns where requests go. Model and stream are in the body. Without a base it
// is the address at which the server listens by default.
func (Format) URL(base, _ string, _ bool) string {
	if base == "" {
		base = server
	}
	return strings.TrimRight(base, "/") + path
}

// KeepAlive returns bytes that tell the client that a streamed answer continues: a line
// without text, as the server sends too. Before the first line it is a space, which JSON
// allows there.
func (Format) KeepAlive(text string, _, _ int) (string, bool) {
	first, _, whole := strings.Cut(strings.TrimLeft(text, " \r\n"), "\n")
	if first == "" {
		return " ", false
	}
	v, err := codec.ParseObject(strings.TrimSpace(first))
	if !whole || err != nil || v.Get("done").Raw() == "true" {
		return "", false
	}
	return line(v, ""), false
}

// EndsWith reports whether an event ends the stream for clients.
func (Format) EndsWith(_, line string) bool {
	return strings.HasPrefix(line, "{") && strings.Contains(line, `"done":true`)
}
