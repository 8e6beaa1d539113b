// Package gemini is the wire format of Gemini generateContent and
// streamGenerateContent, on the Developer API and on Vertex.
//
// Source: https://ai.google.dev/api/generate-content, and recorded exchanges.
// The server reads each member in camelCase and in snake_case, one object where
// a list should be, and null as absent; so does this package. Where calls have
// no ids, their results belong to them by name and order: in another order they
// cannot be encoded.
package gemini

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const dialect = "gemini-generate"

// Format is the codec. Its methods are described in package wire.
type Format struct{}

var _ codec.Format = Format{}

// Dialect is part of wire.Codec.
func (Format) Dialect() string { return dialect }

// Match is part of wire.Codec. Counting tokens and batches have bodies of their
// own.
func (f Format) Match(path string, body []byte) bool {
	return f.MatchPath(path) && strings.HasPrefix(strings.TrimLeft(string(body[:min(len(body), 64)]), " \t\r\n"), "{")
}

// WantsStream is part of wire.Codec.
func (Format) WantsStream(path string, body []byte) bool {
	return codec.WantsStream(path, body, false)
}

// MatchPath is part of wire.Codec.
func (Format) MatchPath(at string) bool {
	return codec.PathEnds(at, ":generatecontent", ":streamgeneratecontent")
}

// DecodeResponse is part of wire.Codec.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// URL is part of codec.Format. A model with a path of its own, such as
// tunedModels/x or publishers/google/models/x, stands below base as it is.
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

// Authorize is part of codec.Format.
func (Format) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("x-goog-api-key", key)
	}
}
