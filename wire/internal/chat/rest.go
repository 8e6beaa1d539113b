package chat

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// asEvents writes an answer that is one JSON object as a stream: the message,
// its calls, the end and, if usage is set, the figures. Each is one chunk, because a
// client joins chunks of any size.
func asEvents(v rawjson.Value, usage bool) (string, error) {
	choices := slices.Collect(v.Get("choices").Each())
	if len(choices) != 1 {
		return "", codec.Unencodablef("several choices in a stream")
	}
	message := choices[0].Get("message")
	members := []lens.Member{lens.None("tool_calls")}
	if c := message.Get("content"); c.Kind() == rawjson.Object {
		members = append(members, lens.Text("content", c.Raw()))
	}
	said, err := on.Set(message, members...)
	if err != nil {
		return "", err
	}
	out := eventText(chunkText(v, said, "null"))
	var calls []string
	for c := range message.Get("tool_calls").Each() {
		text, err := numbered(c.Raw(), int64(len(calls)))
		if err != nil {
			return "", err
		}
		calls = append(calls, text)
	}
	if len(calls) > 0 {
		out += eventText(chunkText(v, codec.Object(lens.List("tool_calls", calls)), "null"))
	}
	if finish := choices[0].Get("finish_reason"); finish.Str() != "" {
		out += eventText(chunkText(v, "{}", finish.Raw()))
	}
	if figures := v.Get("usage"); usage && figures.Kind() == rawjson.Object {
		out += eventText(codec.Object(append(envelope(v), lens.Raw("choices", "[]"), lens.Raw("usage", figures.Raw()))...))
	}
	return out + eventText("[DONE]"), nil
}

// Rest is part of codec.Stream. resp is the answer of s, perhaps with changes behind
// what was shown, or a later answer, which follows as further chunks.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	out, streamed, err := written(resp)
	if err != nil {
		return nil, err
	}
	shown := s.Text()[:sent]
	switch own := s.answer != nil && on.Raw(resp.Native) == s.Text(); {
	case !own && sent > 0:
		out, err = splice(shown, out, streamed, len(resp.Choices))
		return []byte(out), err
	case !strings.HasPrefix(out, shown):
		return nil, codec.Unencodablef("a change of what was shown already")
	}
	return []byte(out[sent:]), nil
}

// splice returns a later answer as the continuation of what was shown: its
// chunks take the id of the first ones, as clients drop those of another, and
// the role stands in the stream once: openai-python adds up the roles of a stream
// as if they were text.
func splice(shown, later string, streamed bool, choices int) (string, error) {
	if choices > 0 {
		return "", codec.Unencodablef("several choices after the beginning of another answer")
	}
	if !streamed {
		v, err := codec.ParseObject(later)
		if err != nil {
			return "", err
		}
		if later, err = asEvents(v, true); err != nil {
			return "", err
		}
	}
	given, err := chunksOf(shown)
	if err != nil {
		return "", err
	}
	id, role := "", false
	for _, c := range given {
		if c.Root().Get("choices").Exists() {
			id = cmp.Or(id, c.Root().Get("id").Str())
		}
		for v := range c.Root().Get("choices").Each() {
			role = role || v.Get("delta").Get("role").Str() != ""
		}
	}
	chunks, err := chunksOf(later)
	if err != nil {
		return "", err
	}
	for _, c := range chunks {
		e := on.Edit(c.Root())
		if id != "" && c.Root().Get("choices").Exists() && c.Root().Get("id").Str() != id {
			e.Put(lens.Text("id", id))
		}
		for v := range c.Root().Get("choices").Each() {
			if role && v.Get("delta").Get("role").Exists() {
				e.Add(on.Put(v.Get("delta"), lens.None("role")))
			}
		}
		if err := c.Add(e.Edits()); err != nil {
			return "", err
		}
	}
	return lens.ApplyAll(later, chunks)
}

// chunksOf returns the events of a stream that are JSON objects.
func chunksOf(text string) ([]*lens.Chunk, error) {
	var out []*lens.Chunk
	err := codec.Each(text, func(e codec.Event) error {
		if doc, err := codec.Parse(e.Data); err == nil && doc.Root().Kind() == rawjson.Object {
			out = append(out, &lens.Chunk{Event: e, Doc: doc})
		}
		return nil
	})
	return out, err
}

// eventText writes an event.
func eventText(data string) string { return "data: " + codec.OneLine(data) + "\n\n" }

// chunkText writes a chunk for choice 0 like the one given.
func chunkText(like rawjson.Value, delta, finish string) string {
	choice := codec.Object(lens.Raw("index", "0"), lens.Raw("delta", delta), lens.Raw("finish_reason", finish))
	return codec.Object(append(envelope(like), lens.Raw("choices", "["+choice+"]"))...)
}

// envelope returns what every chunk of a stream repeats: the plain members, such as
// id, created and model, but for what pads a chunk. OpenAI adds obfuscation, and
// Mistral p, so that an eavesdropper cannot tell tokens by the size of a chunk.
func envelope(like rawjson.Value) []lens.Member {
	var members []lens.Member
	for m := range like.Each() {
		switch key := m.Key(); {
		case key == "obfuscation" || key == "p" || m.Kind() == rawjson.Null || m.Kind() == rawjson.Array || m.Kind() == rawjson.Object:
		case key == "object":
			members = append(members, lens.Text(key, "chat.completion.chunk"))
		default:
			members = append(members, lens.Raw(key, m.Raw()))
		}
	}
	return members
}
