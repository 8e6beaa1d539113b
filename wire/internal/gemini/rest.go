package gemini

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Rest is part of codec.Stream. Each chunk stands for itself, so those of a
// later answer follow what was shown, under the first one's responseId.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	shown := s.buf.Text()
	if sent < 0 || sent > len(shown) {
		return nil, codec.Unencodablef("more was sent than was received")
	}
	shown = shown[:sent]
	body, err := Format{}.EncodeResponse(resp)
	if err != nil {
		return nil, err
	}
	a, err := answerOf(resp)
	switch {
	case err != nil:
		return nil, err
	case a == s.a || resp.Native.Ref == nil && resp.Native.Raw == s.buf.Text():
		if !strings.HasPrefix(string(body), shown) {
			return nil, codec.Unencodablef("the change is in what was shown already")
		}
		return body[sent:], nil
	case sent == 0:
		return body, nil
	}
	return s.follow(shown, string(body))
}

// follow frames the chunks of body as those of s, to stand behind shown.
func (s *stream) follow(shown, body string) ([]byte, error) {
	later, err := readAnswer(body)
	if err != nil {
		return nil, codec.Unencodablef("what was written is no answer")
	}
	id := ""
	if len(s.a.chunks) > 0 {
		id = get(s.a.chunks[0].doc.Root(), "responseId").Raw()
	}
	end := "\n\n"
	if strings.Contains(shown, "\r\n") {
		end = "\r\n\r\n"
	}
	var b strings.Builder
	for _, c := range later.chunks {
		text, err := renamed(c.doc.Root(), id)
		if err != nil {
			return nil, err
		}
		if s.buf.IsArray() { // of which an element was shown
			b.WriteString(",\r\n" + text)
		} else {
			b.WriteString("data: " + codec.OneLine(text) + end)
		}
	}
	if s.buf.IsArray() {
		b.WriteString("\n]")
	}
	return []byte(b.String()), nil
}

// renamed returns a chunk with the responseId of the answer that it goes on.
func renamed(root rawjson.Value, id string) (string, error) {
	if old := get(root, "responseId"); id == "" || !old.Exists() || old.Raw() == id {
		return root.Raw(), nil
	}
	return edited(root, codec.Member{Key: "responseId", Raw: id})
}
