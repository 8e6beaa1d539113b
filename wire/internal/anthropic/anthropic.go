// Package anthropic is the wire format of Anthropic Messages: POST /v1/messages,
// answered by one JSON object or by a stream of events. The same bodies go to
// Vertex and to Bedrock's invoke, with anthropic_version in the body and the
// model in the path.
//
// A message is {"role": …, "content": text or [block, …]}. A block is a part or,
// of the assistant, a call:
//
//	{"type": "text", "text": …}
//	{"type": "thinking", "thinking": …, "signature": …}
//	{"type": "tool_use", "id": …, "name": …, "input": {…}}
//	{"type": "tool_result", "tool_use_id": …, "content": text or [block, …], "is_error": …}
//
// A user message with tool results becomes a tool message for each result, and
// a user message for the blocks between them. It is written as one message
// again. Fresh tool messages in a row become one message, too. The system prompt is
// "system" at the root: each of its blocks becomes a system message, and system
// messages at the front go there. Blocks of tools that the provider runs (web
// search, code execution, MCP) are opaque parts.
//
// In a stream, content_block_start, _delta and _stop bring a block piece by
// piece, and message_delta brings the finish reason and the last figures. Text
// and the blocks of the provider's tools are shown at once. Reasoning waits for one of
// these. An answer with a call is written from the decoded values: a
// start, one delta and a stop for each block, the figures in message_delta. If a client has
// a part of an earlier answer, the reasoning of a later one is left out,
// because the provider refuses a history with reasoning of two answers. An
// answer is unreadable if a block or an event of an unknown type may be a call.
//
// Copies: message_start may hold whole blocks, and its figures
// count only the usage up to then.
//
// Cannot be encoded: another text of reasoning that the provider has signed, a
// change of an opaque part, reasoning of another provider in an answer, sound
// and video, calls that are not functions, arguments that are not a JSON object in
// an answer that is not a stream, and a second choice. A history has {} for such
// arguments, and leaves out reasoning of others and empty text.
//
// The files: anthropic.go has the Format, its paths and keep-alives; request.go the root of
// a request; message.go messages, blocks and calls; tools.go tools, and their changes in
// messages; stream.go reads answers; answer.go writes them; errors.go has the errors.
//
// Source: docs.claude.com/en/api/messages, messages-streaming and errors.
package anthropic

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

const (
	dialect = "anthropic-messages"
	server  = "https://api.anthropic.com"
)

// on is how members of this format are read and written.
var on = lens.Lens{Dialect: dialect, NoAllowedTools: true}

// Format is the codec. Its methods are described in package wire.
type Format struct{ codec.Defaults[Format] }

var _ codec.Format = Format{}

// Dialect returns the name of the format.
func (Format) Dialect() string { return dialect }

// Match reports whether a request with that path and body is of this format. Bedrock's
// invoke-with-response-stream is left alone: its answers are binary frames.
func (f Format) Match(path string, body []byte) bool {
	switch {
	case !f.MatchPath(path):
		return false
	case !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")), !bytes.Contains(body, []byte(`"messages"`)):
		return false
	case codec.PathEnds(path, "/v1/messages"):
		return true
	case codec.PathEnds(path, "/messages"): // a base URL without /v1, or the path of another service
		return bytes.Contains(body, []byte(`"max_tokens"`))
	}
	return bytes.Contains(body, []byte(`"anthropic_version"`)) // of a cloud, where models of others have the same path
}

// MatchPath is Match for a path alone. /threads/…/messages belongs to OpenAI's Assistants.
func (Format) MatchPath(path string) bool {
	return codec.PathEnds(path, "/messages") && !strings.Contains(codec.Path(path), "/threads/") || codec.PathEnds(path, ":rawpredict", ":streamrawpredict") ||
		codec.PathEnds(path, "/invoke") && strings.Contains(codec.Path(path), "/model/")
}

// URL returns where requests go below base, or below the provider's address. The provider's
// SDKs take a base without /v1, other clients and gateways one with it: both are understood.
func (Format) URL(base, _ string, _ bool) string {
	if base == "" {
		base = server
	}
	base = strings.TrimRight(base, "/")
	if strings.HasSuffix(base, "/v1") {
		return base + "/messages"
	}
	return base + "/v1/messages"
}

// Authorize puts the key and a version into h. The provider refuses requests without a
// version. This is the one that its own SDKs send.
func (Format) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("x-api-key", key)
	}
	if h.Get("anthropic-version") == "" {
		h.Set("anthropic-version", "2023-06-01")
	}
}

// Opening returns the end of message_start, which the SDKs demand as the
// first event. text is safe, so that one with a call in it is not found here.
func (Format) Opening(text string) int {
	e, _ := codec.First(text, func(root rawjson.Value) bool { return root.Get("type").Str() == "message_start" })
	return e.End
}

// KeepAlive returns bytes that tell the client that a streamed answer continues. After
// message_start it is the provider's own event ping, which its servers send while the model
// thinks. Before message_start some clients do not know a ping, but all know a comment.
func (Format) KeepAlive(text string, sent, _ int) (string, bool) {
	switch {
	case !codec.MayBeEvents(text):
		return "", false
	case sent == 0:
		return codec.Comment, false
	}
	return "event: ping\ndata: {\"type\": \"ping\"}\n\n", false
}

// EndsWith reports whether an event of that name ends a stream.
func (Format) EndsWith(name, _ string) bool { return name == "message_stop" }
