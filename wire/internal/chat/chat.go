package chat

import (
	"bytes"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

const (
	dialect = "openai-chat"
	path    = "/chat/completions"
	address = "https://api.openai.com/v1"
)

var on = lens.Lens{Dialect: dialect}

// Format is the codec. Its methods are described in package wire.
type Format struct{ codec.Defaults }

var _ codec.Format = Format{}

// Dialect returns the name of the format.
func (Format) Dialect() string { return dialect }

// Match reports whether a request is in the format. The body is not parsed: DecodeRequest does that.
func (f Format) Match(p string, body []byte) bool {
	if !f.MatchPath(p) {
		return false
	}
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && body[0] == '{' && bytes.Contains(body, []byte(`"messages"`))
}

// MatchPath reports whether requests with that path may be in the format. The second path is that of Mistral's agents.
func (Format) MatchPath(at string) bool { return codec.PathEnds(at, path, "/agents/completions") }

// URL returns where requests go.
func (Format) URL(base, model string, stream bool) string {
	if base == "" {
		base = address
	}
	return codec.Below(base, path)
}

// DecodeResponse reads a whole answer.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// Opening returns the end of the event that opens a streamed answer: the first chunk, if it says who speaks and
// nothing else.
func (Format) Opening(text string) int {
	e, chunk := opening(text)
	for c := range chunk.Get("choices").Each() {
		for v := range c.Get("delta").Each() {
			if v.Key() != "role" && isFilled(v) {
				return 0
			}
		}
	}
	return e.End
}

// isFilled reports whether a member of a delta brings anything: many servers send null or
// an empty text in each delta for what it does not bring.
func isFilled(v rawjson.Value) bool { return v.Exists() && !v.Empty() && v.Raw() != `""` }

// fillsOne reports whether one of the members keys of v is filled.
func fillsOne(v rawjson.Value, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return isFilled(v.Get(key)) })
}

// opening returns the first chunk with a choice. Azure begins with one that has
// none, about its filter.
func opening(text string) (codec.Event, rawjson.Value) {
	return codec.First(text, func(root rawjson.Value) bool {
		return root.Get("choices").Kind() == rawjson.Array && !root.Get("choices").Empty()
	})
}

// KeepAlive returns what says that a streamed answer continues. Some clients count chunks, and a comment is
// none: qwen-code ends a stream without one. So the first chunk is repeated
// without anything in it. Before that chunk only a comment can come.
func (Format) KeepAlive(text string, sent, _ int) (string, bool) {
	if !codec.MayBeEvents(text) {
		return "", false
	}
	_, chunk := opening(text[:sent])
	if !chunk.Exists() {
		return codec.Comment, false
	}
	var members []lens.Member
	for _, key := range []string{"id", "object", "created", "model"} {
		members = append(members, lens.Raw(key, chunk.Get(key).Raw()))
	}
	members = append(members, lens.Raw("choices", `[{"index":0,"delta":{},"finish_reason":null}]`))
	return "data: " + codec.Object(members...) + "\n\n", false
}
