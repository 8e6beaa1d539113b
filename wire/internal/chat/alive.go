package chat

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Opening is part of codec.Format: the first chunk, if it says who speaks and
// nothing else.
func (Format) Opening(text string) int {
	e, chunk := opening(text)
	for c := range chunk.Get("choices").Each() {
		for v := range c.Get("delta").Each() {
			if v.Key() != "role" && !v.Empty() && v.Raw() != `""` {
				return 0
			}
		}
	}
	return e.End
}

// opening returns the first chunk with a choice.
func opening(text string) (codec.Event, rawjson.Value) {
	var chunk rawjson.Value
	e, _ := codec.First(text, func(e codec.Event) bool {
		root, err := codec.ParseObject(e.Data)
		if err == nil && root.Get("choices").Kind() == rawjson.Array && !root.Get("choices").Empty() {
			chunk = root
		}
		return chunk.Exists()
	})
	return e, chunk
}

// KeepAlive is part of codec.Format. Some clients count chunks, and a comment is
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
	var members []codec.Member
	for _, key := range []string{"id", "object", "created", "model"} {
		if v := chunk.Get(key); v.Exists() {
			members = append(members, codec.Member{Key: key, Raw: v.Raw()})
		}
	}
	members = append(members, codec.Member{Key: "choices", Raw: `[{"index":0,"delta":{},"finish_reason":null}]`})
	return "data: " + codec.Object(members...) + "\n\n", false
}

// Renumber is part of codec.Format: chunks have no number.
func (Format) Renumber(events string, _ int) (string, error) { return events, nil }
