// Package chat is the wire format of OpenAI Chat Completions, and of the many
// servers that copy it: what one of them adds is kept, what it leaves out is
// not missed.
//
// Where the format has a choice:
//   - A fresh request writes MaxTokens as max_completion_tokens, the only one
//     that every model of OpenAI takes. For a server that knows the older
//     max_tokens alone, put that into Params.
//   - IsError of a tool message is not written, for which there is no place: what
//     went wrong stands in its text. A fresh one has no name either.
//   - ToolName of a tool message without a name is that of the call it answers:
//     a view, which is not written.
//   - A call in the old form, function_call, has no id on the wire: it gets one
//     by its place, and the reply to it is written in the old form as well.
//   - Reasoning without a Native of this format is left out: no server takes
//     another's.
//   - A text that changes takes the logprobs of its choice along, which spell it
//     out.
//
// Source: the API reference of OpenAI, "Chat Completions", and recorded answers
// of the servers that are named where they differ.
package chat

import (
	"bytes"
	"net/http"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const dialect = "openai-chat"

// Format is the codec. Its methods are described in package wire.
type Format struct{}

var _ codec.Format = Format{}

// Dialect is part of wire.Codec.
func (Format) Dialect() string { return dialect }

const (
	path    = "/chat/completions"
	address = "https://api.openai.com/v1"
)

// Match is part of wire.Codec.
func (f Format) Match(p string, body []byte) bool {
	if !f.MatchPath(p) {
		return false
	}
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && body[0] == '{' && bytes.Contains(body, []byte(`"messages"`))
}

// MatchPath is part of wire.Codec.
func (Format) MatchPath(at string) bool { return codec.PathEnds(at, path) }

// URL is part of codec.Format.
func (Format) URL(base, model string, stream bool) string {
	if base == "" {
		base = address
	}
	return codec.Below(base, path)
}

// Authorize is part of codec.Format.
func (Format) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// WantsStream is part of wire.Codec.
func (Format) WantsStream(path string, body []byte) bool {
	return codec.WantsStream(path, body, false)
}

// DecodeResponse is part of wire.Codec.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}
