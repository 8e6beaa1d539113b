package responses

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// tape is a stream that is written afresh, from recorded events and new ones.
type tape struct {
	out      strings.Builder
	head     rawjson.Value // the response that the client has seen begin; absent: none
	named    bool          // events have a name line
	numbered bool          // events have a sequence_number
	bare     bool          // events of items have no output_index
	number   int64         // the next one
	index    int           // the output_index of the next item
	next     int           // the event that would come next if nothing had changed; -1: something has
}

// newTape returns a tape for events in the manner of like, numbered on from
// the first of them.
func newTape(like []event) *tape {
	t := &tape{}
	for _, ev := range like {
		t.named = t.named || ev.Name != ""
		t.bare = t.bare || ev.flow >= 0 && !ev.root.Get("output_index").Exists()
		if n := ev.root.Get("sequence_number"); n.Kind() == rawjson.Number && !t.numbered {
			t.numbered, t.number = true, codec.Int(n)
		}
	}
	return t
}

// copy writes recorded event i with edits of its data, as one of item index;
// -1: it is of no item. As long as nothing has changed it keeps its numbers.
func (t *tape) copy(body string, ev event, i, index int, edits []rawjson.Edit) error {
	if n := ev.root.Get("sequence_number"); t.next == i {
		t.next++
		if n.Exists() {
			t.number = codec.Int(n) + 1
		}
	} else if t.next = -1; ev.root.Exists() {
		patch := codec.NewPatch(ev.root)
		patch.Add(edits, nil)
		if index >= 0 && ev.root.Get("output_index").Exists() {
			patch.Set("output_index", codec.Count(int64(index)))
		}
		if ev.root.Get("sequence_number").Exists() {
			patch.Set("sequence_number", codec.Count(t.number))
			t.number++
		}
		var err error
		if edits, err = patch.Edits(); err != nil {
			return err
		}
	}
	edits, err := ev.Edits(edits)
	if err != nil {
		return err
	}
	text, err := codec.Apply(body[ev.Start:ev.End], codec.Shift(edits, -ev.Start))
	t.out.WriteString(text)
	if !strings.HasSuffix(text, "\n\n") && !strings.HasSuffix(text, "\n\r\n") { // the last one may lack its end
		t.out.WriteString("\n\n")
	}
	return err
}

// write writes a new event.
func (t *tape) write(typ string, members ...codec.Member) {
	all := []codec.Member{member("type", typ)}
	t.next = -1
	if t.numbered {
		all = append(all, codec.Member{Key: "sequence_number", Raw: codec.Count(t.number)})
		t.number++
	}
	for _, m := range members {
		if !t.bare || m.Key != "output_index" {
			all = append(all, m)
		}
	}
	t.data(typ, codec.Object(all...))
}

func (t *tape) data(typ, data string) {
	if t.named {
		t.out.WriteString("event: " + typ + "\n")
	}
	t.out.WriteString("data: " + codec.OneLine(data) + "\n\n")
}

// item writes the events of an item that has none, as the provider does:
// announced without what follows, then piece by piece, then whole.
func (t *tape) item(raw string) error {
	v, err := codec.ParseObject(raw)
	if err != nil {
		return err
	}
	place := []codec.Member{{Key: "item_id", Raw: rawOr(v.Get("id"), `""`)}, {Key: "output_index", Raw: codec.Count(int64(t.index))}}
	index := place[1]
	bare, err := announced(v)
	if err != nil {
		return err
	}
	t.write("response.output_item.added", index, codec.Member{Key: "item", Raw: bare})
	f, isACall := calls[v.Get("type").Str()]
	switch {
	case v.Get("type").Str() == "message" || v.Get("type").Str() == "reasoning":
		for _, key := range []string{"summary", "content"} {
			i := int64(0)
			for b := range v.Get(key).Each() {
				t.block(place, key, i, b)
				i++
			}
		}
	case isACall && f.kind != middleware.KindBuiltin:
		event, args := "response.function_call_arguments", rawOr(v.Get(f.args[0]), `""`)
		if f.kind == middleware.KindCustom {
			event = "response.custom_tool_call_input"
		}
		t.write(event+".delta", with(place, codec.Member{Key: "delta", Raw: args})...)
		t.write(event+".done", with(place, codec.Member{Key: f.args[0], Raw: args})...)
	}
	t.write("response.output_item.done", index, codec.Member{Key: "item", Raw: raw})
	t.index++
	return nil
}

func with(members []codec.Member, more ...codec.Member) []codec.Member {
	return append(append([]codec.Member{}, members...), more...)
}

func rawOr(v rawjson.Value, other string) string {
	if v.Kind() == rawjson.String {
		return v.Raw()
	}
	return other
}

// announced returns an item as it looks before its content has come.
func announced(v rawjson.Value) (string, error) {
	patch := codec.NewPatch(v)
	for m := range v.Each() {
		switch {
		case m.Key() == "status":
			patch.Set("status", `"in_progress"`)
		case (m.Key() == "content" || m.Key() == "summary") && m.Kind() == rawjson.Array:
			patch.Set(m.Key(), "[]")
		case (m.Key() == "arguments" || m.Key() == "input") && m.Kind() == rawjson.String:
			patch.Set(m.Key(), `""`)
		}
	}
	return patch.Text()
}

// block writes the events of one block of a message or of reasoning.
func (t *tape) block(place []codec.Member, list string, i int64, b rawjson.Value) {
	typ := b.Get("type").Str()
	key, event, part, counter := textMember(typ), "response."+typ, "response.content_part", "content_index"
	if list == "summary" {
		event, part, counter = "response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index"
	}
	place = with(place, codec.Member{Key: counter, Raw: codec.Count(i)})
	whole := codec.Member{Key: "part", Raw: b.Raw()}
	text := rawOr(b.Get(key), `""`)
	if key == "" || event == "response.text" {
		t.write(part+".added", with(place, whole)...)
		t.write(part+".done", with(place, whole)...)
		return
	}
	probs := codec.Member{}
	if typ == "output_text" {
		probs = codec.Member{Key: "logprobs", Raw: "[]"}
	}
	t.write(part+".added", with(place, codec.Member{Key: "part", Raw: codec.Object(member("type", typ), codec.Member{Key: key, Raw: `""`}, annotations(typ))})...)
	t.write(event+".delta", with(place, codec.Member{Key: "delta", Raw: text}, probs)...)
	t.write(event+".done", with(place, codec.Member{Key: key, Raw: text}, probs)...)
	t.write(part+".done", with(place, whole)...)
}

func annotations(typ string) codec.Member {
	if typ != "output_text" {
		return codec.Member{}
	}
	return codec.Member{Key: "annotations", Raw: "[]"}
}
