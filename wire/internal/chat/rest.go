package chat

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Rest is part of codec.Stream.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	if !s.owns(resp) && sent > 0 {
		return s.splice(s.buf.Text()[:sent], resp)
	}
	out, err := written(resp)
	if err != nil {
		return nil, err
	}
	if sent > 0 && !strings.HasPrefix(out, s.answer.text[:sent]) {
		return nil, codec.Unencodablef("a change of what was shown already")
	}
	return []byte(out[sent:]), nil
}

// owns reports whether resp is this stream's own answer.
func (s *stream) owns(resp *middleware.Response) bool {
	if s.answer == nil || resp.Native == nil || resp.Native.Dialect != dialect {
		return false
	}
	if a, ok := resp.Native.Ref.(*answer); ok {
		return a == s.answer
	}
	return resp.Native.Raw == s.answer.text
}

// splice returns a later answer as the continuation of what was shown: its
// chunks take the id of the first ones, as clients drop those of another, and
// the role stands in the stream once.
func (s *stream) splice(shown string, resp *middleware.Response) ([]byte, error) {
	if len(resp.Choices) > 0 {
		return nil, codec.Unencodablef("several choices after the beginning of another answer")
	}
	text, err := written(resp)
	if err != nil {
		return nil, err
	}
	if a, err := answerOf(resp); err != nil {
		return nil, err
	} else if a.main == nil {
		if text, err = asEvents(text); err != nil {
			return nil, err
		}
	}
	id, role, err := given(shown)
	if err != nil {
		return nil, err
	}
	edits, err := eachEvent(text, func(v rawjson.Value) ([]rawjson.Edit, bool, error) {
		var edits []rawjson.Edit
		if id != "" && v.Get("choices").Exists() && v.Get("id").Str() != id {
			set, err := codec.SetAll(v, codec.Member{Key: "id", Raw: rawjson.Quote(id)})
			if err != nil {
				return nil, false, err
			}
			edits = set
		}
		for c := range v.Get("choices").Each() {
			if role {
				edits = append(edits, c.Get("delta").Cut(func(m rawjson.Value) bool { return m.Key() == "role" })...)
			}
		}
		return edits, false, nil
	})
	if err != nil {
		return nil, err
	}
	out, err := codec.Apply(text, edits)
	return []byte(out), err
}

// given returns the id of the chunks that were shown, the first that is not
// empty, and whether a role was in them. openai-python adds up the roles of a
// stream as if they were text.
func given(text string) (id string, role bool, err error) {
	_, err = eachEvent(text, func(v rawjson.Value) ([]rawjson.Edit, bool, error) {
		if id == "" && v.Get("choices").Exists() {
			id = v.Get("id").Str()
		}
		for c := range v.Get("choices").Each() {
			role = role || c.Get("delta").Get("role").Str() != ""
		}
		return nil, false, nil
	})
	return id, role, err
}

// asEvents writes an answer that is one JSON object as a stream: the message,
// its calls, the end, the figures.
func asEvents(body string) (string, error) {
	v, err := codec.ParseObject(body)
	if err != nil {
		return "", err
	}
	choices := slices.Collect(v.Get("choices").Each())
	if len(choices) != 1 {
		return "", codec.Unencodablef("several choices in a stream")
	}
	message := choices[0].Get("message")
	said, err := delta(message)
	if err != nil {
		return "", err
	}
	chunks := []string{chunkOf(v, said, "null")}
	var calls []string
	for c := range message.Get("tool_calls").Each() {
		text, err := numbered(c.Raw(), len(calls))
		if err != nil {
			return "", err
		}
		calls = append(calls, text)
	}
	if len(calls) > 0 {
		chunks = append(chunks, chunkOf(v, codec.Object(codec.Member{Key: "tool_calls", Raw: codec.Array(calls)}), "null"))
	}
	if finish := choices[0].Get("finish_reason"); finish.Str() != "" {
		chunks = append(chunks, chunkOf(v, "{}", finish.Raw()))
	}
	if usage := v.Get("usage"); usage.Kind() == rawjson.Object {
		chunks = append(chunks, codec.Object(append(envelope(v), codec.Member{Key: "choices", Raw: "[]"},
			codec.Member{Key: "usage", Raw: usage.Raw()})...))
	}
	var b strings.Builder
	for _, c := range append(chunks, "[DONE]") {
		b.WriteString("data: " + codec.OneLine(c) + "\n\n")
	}
	return b.String(), nil
}

// delta returns a message without its calls, its content as a text or a list.
func delta(message rawjson.Value) (string, error) {
	members := []codec.Member{{Key: "tool_calls"}}
	if c := message.Get("content"); c.Kind() == rawjson.Object {
		members = append(members, codec.Member{Key: "content", Raw: rawjson.Quote(c.Raw())})
	}
	edits, err := codec.SetAll(message, members...)
	if err != nil {
		return "", err
	}
	return codec.Within(message, edits)
}
