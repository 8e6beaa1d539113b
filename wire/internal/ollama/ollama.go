// Package ollama is the wire format of Ollama chat: POST /api/chat, answered by
// one JSON object or by a stream of them, one a line.
//
// A request that does not say "stream" asks for a stream. Older servers give
// calls no ids: theirs are by place in the conversation, results belong to them
// by name and order, and such an id is never written: results in another order
// than their calls cannot be encoded. There is no tool choice,
// no address of an image and no mark of a failed result: the first two cannot
// be encoded, the last goes unsaid.
package ollama

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const (
	dialect = "ollama-chat"
	server  = "http://localhost:11434"
	path    = "/api/chat"
)

// Format is the codec. Its methods are described in package wire.
type Format struct{}

var _ codec.Format = Format{}

// Dialect is part of wire.Codec.
func (Format) Dialect() string { return dialect }

// Match is part of wire.Codec.
func (f Format) Match(at string, body []byte) bool {
	return f.MatchPath(at) && bytes.Contains(body, []byte(`"messages"`))
}

// WantsStream is part of wire.Codec.
func (Format) WantsStream(path string, body []byte) bool {
	return codec.WantsStream(path, body, true)
}

// MatchPath is part of wire.Codec.
func (Format) MatchPath(at string) bool { return codec.PathEnds(at, path) }

// DecodeResponse is part of wire.Codec.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// URL is part of codec.Format.
func (Format) URL(base, _ string, _ bool) string {
	if base == "" {
		base = server
	}
	return strings.TrimRight(base, "/") + path
}

// Authorize is part of codec.Format. A server of one's own needs no key.
func (Format) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// native returns the Native of what stands at v.
func native(v rawjson.Value, ref any) *middleware.Native {
	return &middleware.Native{Dialect: dialect, Raw: v.Raw(), Ref: ref}
}

// own reports whether n is of this format.
func own(n *middleware.Native) bool { return n != nil && n.Dialect == dialect }

// object reads raw, the text of a Native, again.
func object(raw string) (rawjson.Value, error) {
	v, err := codec.ParseObject(raw)
	if err != nil {
		return v, codec.Unencodablef("a Native is no JSON object")
	}
	return v, nil
}

// member returns the member of that key, absent if it is null. The error wraps
// ErrShape if it is of another kind.
func member(v rawjson.Value, key string, kind rawjson.Kind) (rawjson.Value, error) {
	m := v.Get(key)
	switch m.Kind() {
	case rawjson.Invalid, rawjson.Null:
		return rawjson.Value{}, nil
	case kind:
		return m, nil
	}
	return m, codec.Shapef("%s is of kind %s", key, m.Kind())
}

// text is member for a string.
func text(v rawjson.Value, key string) (string, error) {
	m, err := member(v, key, rawjson.String)
	return m.Str(), err
}
