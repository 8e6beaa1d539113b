package chat

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// item is an element of a streamed content list: its neighbours of the same
// type are joined.
type item struct {
	piece piece
	text  strings.Builder
	more  bag
	raw   string // of one that is not understood
}

// keep notes what stands beside the text.
func (it *item) keep(v rawjson.Value, key string) {
	for m := range v.Each() {
		if k := m.Key(); k != key && k != "type" && m.Kind() != rawjson.Null {
			it.more.set(k, m.Raw())
		}
	}
}

func (it *item) json() string {
	if it.raw != "" {
		return it.raw
	}
	text := rawjson.Quote(it.text.String())
	members := []codec.Member{{Key: "type", Raw: `"text"`}, {Key: "text", Raw: text}}
	if it.piece == pieceThinking {
		members = []codec.Member{{Key: "type", Raw: `"thinking"`}, {Key: "thinking", Raw: `[{"type":"text","text":` + text + `}]`}}
	}
	return codec.Object(append(members, it.more.members()...)...)
}

// detail is an entry of reasoning_details. OpenRouter sends an entry in
// fragments that repeat its type and its index; what is encrypted comes whole.
type detail struct {
	kind, index, id string // as JSON; "" or null: not said
	key             string // of the text: "" for one that is not joined
	text            strings.Builder
	more            bag
	raw             string
}

// detail joins a fragment to the entry that it continues.
func (t *turn) detail(v rawjson.Value) {
	key := map[string]string{"reasoning.text": "text", "reasoning.summary": "summary"}[v.Get("type").Str()]
	d := &detail{kind: v.Get("type").Raw(), index: v.Get("index").Raw(), id: said(v.Get("id")), key: key, raw: v.Raw()}
	if key != "" {
		d.more = newBag()
	}
	if n := len(t.details); n > 0 && t.details[n-1].continued(d) {
		d = t.details[n-1]
	} else {
		t.details = append(t.details, d)
	}
	if key == "" {
		return
	}
	for m := range v.Each() {
		switch {
		case m.Key() == key:
			d.text.WriteString(m.Str())
		case m.Kind() != rawjson.Null || !d.more.has(m.Key()):
			d.more.set(m.Key(), m.Raw())
		}
	}
}

func (d *detail) continued(next *detail) bool {
	return d.key != "" && d.kind == next.kind && d.index == next.index && (d.id == "" || next.id == "" || d.id == next.id)
}

func said(v rawjson.Value) string {
	if v.Kind() == rawjson.Null {
		return ""
	}
	return v.Raw()
}

func (d *detail) json() string {
	if d.key == "" {
		return d.raw
	}
	members := d.more.members()
	if d.text.Len() > 0 {
		members = append(members, codec.Member{Key: d.key, Raw: rawjson.Quote(d.text.String())})
	}
	return codec.Object(members...)
}

// bag keeps members in the order in which their keys were first seen.
type bag struct {
	keys []string
	at   map[string]*value
}

// value is what the deltas said of one member: lists are joined, of anything
// else the last counts. A text or a number that came more than once is a label
// of the delta, or a piece of what nobody knows: it is left out.
type value struct {
	raw   string
	list  []string
	label bool
}

func newBag() bag { return bag{at: map[string]*value{}} }

func (b *bag) has(key string) bool { return b.at[key] != nil }

// set makes raw the value of key.
func (b *bag) set(key, raw string) { b.value(key).raw = raw }

func (b *bag) value(key string) *value {
	v := b.at[key]
	if v == nil {
		v = &value{}
		b.at[key] = v
		b.keys = append(b.keys, key)
	}
	return v
}

// add joins the member m of a delta to those before it.
func (b *bag) add(m rawjson.Value) {
	switch m.Kind() {
	case rawjson.Null:
		return
	case rawjson.Array:
		v := b.value(m.Key())
		for e := range m.Each() {
			v.list = append(v.list, e.Raw())
		}
		v.raw = "[]"
	case rawjson.Object:
		b.value(m.Key()).raw = m.Raw()
	default:
		v := b.value(m.Key())
		v.label = v.raw != ""
		v.raw = m.Raw()
	}
}

func (b *bag) members() []codec.Member {
	var out []codec.Member
	for _, key := range b.keys {
		switch v := b.at[key]; {
		case v.label:
		case len(v.list) > 0:
			out = append(out, codec.Member{Key: key, Raw: codec.Array(v.list)})
		default:
			out = append(out, codec.Member{Key: key, Raw: v.raw})
		}
	}
	return out
}
