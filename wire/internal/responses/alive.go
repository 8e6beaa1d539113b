package responses

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Opening is part of codec.Format.
func (Format) Opening(text string) int {
	e, _ := opening(text)
	return e.End
}

// opening returns the event that opens a stream, and the response in it.
func opening(text string) (codec.Event, rawjson.Value) {
	var response rawjson.Value
	e, _ := codec.First(text, func(e codec.Event) bool {
		root, err := codec.ParseObject(e.Data)
		if err == nil && isHead(root.Get("type").Str()) {
			response = root.Get("response")
		}
		return response.Kind() == rawjson.Object
	})
	return e, response
}

// KeepAlive is part of codec.Format. Codex takes a stream for dead if no event
// comes, and a comment is none. Before the first item the event is
// response.in_progress, which every client knows. Behind an item that would not
// do: openai-node (6.49, accumulateResponse) puts its response, which has no
// items, in the place of what it has read. There it is OpenAI's own keepalive.
func (Format) KeepAlive(text string, sent, n int) (string, bool) {
	switch {
	case !codec.MayBeEvents(text):
		return "", false
	case sent == 0:
		return codec.Comment, false
	}
	e, response := opening(text[:sent])
	if !response.Exists() {
		return codec.Comment, false
	}
	t, items := tape{named: e.Name != ""}, false
	_ = codec.Each(text[:sent], func(e codec.Event) error {
		root, err := codec.ParseObject(e.Data)
		if number := root.Get("sequence_number"); err == nil && number.Kind() == rawjson.Number {
			t.numbered, t.number = true, codec.Int(number)+1+int64(n)
		}
		items = items || strings.HasPrefix(root.Get("type").Str(), "response.output_item.")
		return nil
	})
	if items {
		t.write("keepalive")
	} else {
		t.write("response.in_progress", codec.Member{Key: "response", Raw: response.Raw()})
	}
	return t.out.String(), t.numbered
}

// Renumber is part of codec.Format.
func (Format) Renumber(events string, n int) (string, error) {
	if n == 0 || events == "" {
		return events, nil
	}
	var edits []rawjson.Edit
	err := codec.Each(events, func(e codec.Event) error {
		root, err := codec.ParseObject(e.Data)
		number := root.Get("sequence_number")
		if err != nil || number.Kind() != rawjson.Number {
			return nil
		}
		set, err := codec.SetAll(root, codec.Member{Key: "sequence_number", Raw: codec.Count(codec.Int(number) + int64(n))})
		if err != nil {
			return err
		}
		set, err = e.Edits(set)
		edits = append(edits, set...)
		return err
	})
	if err != nil {
		return "", err
	}
	return codec.Apply(events, edits)
}

func isHead(typ string) bool {
	return typ == "response.created" || typ == "response.in_progress" || typ == "response.queued"
}
