// Package anthropic is the wire format of Anthropic Messages. The same bodies
// go to Vertex and to Bedrock's invoke, with anthropic_version in the body and
// the model in the path.
//
// A user message of the wire that holds tool results becomes a tool message for
// each of them, and a user message for what stands beside them; unchanged, it
// is written as the one message that it was. Fresh tool messages in a row
// become one user message. What the provider runs itself (web search, code
// execution, MCP) is an opaque part.
//
// A stream that the official SDKs read differently is unreadable (stream.go,
// fits).
//
// Source: docs.claude.com/en/api/messages, messages-streaming and errors.
package anthropic

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const dialect = "anthropic-messages"

// Format is the codec. Its methods are described in package wire.
type Format struct{}

var _ codec.Format = Format{}

// Dialect is part of wire.Codec.
func (Format) Dialect() string { return dialect }

// Match is part of wire.Codec. Bedrock's invoke-with-response-stream is left
// alone: its answers are binary frames.
func (f Format) Match(path string, body []byte) bool {
	switch {
	case !f.MatchPath(path):
		return false
	case !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")), !bytes.Contains(body, []byte(`"messages"`)):
		return false
	case codec.PathEnds(path, "/v1/messages"):
		return true
	}
	return bytes.Contains(body, []byte(`"anthropic_version"`)) // of a cloud, where models of others have the same path
}

// MatchPath is part of wire.Codec.
func (Format) MatchPath(path string) bool {
	return codec.PathEnds(path, "/v1/messages", ":rawpredict", ":streamrawpredict") ||
		codec.PathEnds(path, "/invoke") && strings.Contains(codec.Path(path), "/model/")
}

// URL is part of codec.Format.
func (Format) URL(base, model string, stream bool) string {
	if base == "" {
		base = "https://api.anthropic.com"
	}
	base = strings.TrimRight(base, "/")
	if strings.HasSuffix(base, "/v1") {
		return base + "/messages"
	}
	return base + "/v1/messages"
}

// Authorize is part of codec.Format.
func (Format) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("x-api-key", key)
	}
	if h.Get("anthropic-version") == "" {
		h.Set("anthropic-version", "2023-06-01")
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
