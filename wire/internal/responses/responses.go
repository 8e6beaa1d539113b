// Package responses is the wire format of OpenAI Responses: /responses, on
// Azure and on the servers that copy it.
//
// A conversation is a list of items, not of messages. What the model wrote
// between two inputs, that is reasoning, messages, calls and what the provider
// ran itself, becomes one neutral message, and its Native is the array of those
// items. Tools that the provider runs are opaque parts; calls that the client
// answers in a form of their own, such as computer_call, are of KindBuiltin.
// Reasoning without a Native of this format is left out: the provider takes none
// but its own.
//
// A stream holds each call several times; an answer whose copies differ is
// unreadable (agree.go).
//
// Source: the API reference of OpenAI, "Responses" and "Streaming events".
package responses

import (
	"bytes"
	"net/http"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const dialect = "openai-responses"

// Format is the codec. Its methods are described in package wire.
type Format struct{}

var _ codec.Format = Format{}

// Dialect is part of wire.Codec.
func (Format) Dialect() string { return dialect }

// Match is part of wire.Codec.
func (f Format) Match(path string, body []byte) bool {
	if !f.MatchPath(path) {
		return false
	}
	if b := bytes.TrimLeft(body, " \t\r\n"); len(b) == 0 || b[0] != '{' {
		return false
	}
	for _, key := range []string{`"input"`, `"prompt"`, `"previous_response_id"`, `"conversation"`} {
		if bytes.Contains(body, []byte(key)) {
			return true
		}
	}
	return false
}

// WantsStream is part of wire.Codec.
func (Format) WantsStream(path string, body []byte) bool {
	return codec.WantsStream(path, body, false)
}

// MatchPath is part of wire.Codec.
func (Format) MatchPath(at string) bool { return codec.PathEnds(at, "/responses") }

// DecodeResponse is part of wire.Codec.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// URL is part of codec.Format.
func (Format) URL(base, model string, stream bool) string {
	if base == "" {
		base = "https://api.openai.com/v1"
	}
	return codec.Below(base, "/responses")
}

// Authorize is part of codec.Format.
func (Format) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}
