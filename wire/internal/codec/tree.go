package codec

import (
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Tree has the members that a format knows of an object, or of each object in a list,
// with what it knows of their values. nil knows all members: the value is written whole.
type Tree map[string]Tree

// deepest bounds how deep a written value is nested.
const deepest = 1000

// Write returns v as JSON in one spelling, in which all readers find the same members:
// those that the format knows, and those in which no word for calls occurs. Of a key that
// appears twice it has the last member, which Value.Get returns. A key that differs from
// another one in case only goes, and so does __proto__.
func (t Tree) Write(v rawjson.Value) string {
	var b strings.Builder
	t.write(&b, v.Indexed(), 0)
	return b.String()
}

func (t Tree) write(b *strings.Builder, v rawjson.Value, depth int) {
	switch {
	case depth > deepest:
		b.WriteString("null")
		return
	case v.Kind() == rawjson.String:
		if raw := v.Raw(); utf8.ValidString(raw) {
			b.WriteString(raw)
		} else {
			rawjson.WriteQuoted(b, v.Str())
		}
		return
	case v.Kind() == rawjson.Array:
		before := byte('[')
		for e := range v.Each() {
			b.WriteByte(before)
			t.write(b, e, depth+1)
			before = ','
		}
		if before == '[' {
			b.WriteByte('[')
		}
		b.WriteByte(']')
		return
	case v.Kind() != rawjson.Object:
		b.WriteString(v.Raw())
		return
	}
	known := make(map[string]bool, len(t))
	for key := range t {
		known[rawjson.Fold(key)] = true
	}
	written := map[string]bool{}
	before := byte('{')
	for m := range v.Each() {
		key := m.Key()
		folded := rawjson.Fold(key)
		sub, exact := t[key]
		switch {
		case v.Get(key) != m, written[folded], key == "__proto__":
			continue
		case exact, t == nil:
		case known[folded], !Free(rawjson.Quote(key)), !Free(m.Raw()): // a twin, or a member that may hold a call
			continue
		}
		written[folded] = true
		b.WriteByte(before)
		rawjson.WriteQuoted(b, key)
		b.WriteByte(':')
		if t == nil || sub != nil || !writePlain(b, m, depth+1) {
			sub.write(b, m, depth+1)
		}
		before = ','
	}
	if before == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
}

// writePlain writes v as it came, such as the arguments of a call, if all readers find the
// same members in it; false if not.
func writePlain(b *strings.Builder, v rawjson.Value, depth int) bool {
	if k := v.Kind(); k != rawjson.Object && k != rawjson.Array || !utf8.ValidString(v.Raw()) {
		return false
	}
	within := limits
	within.Depth = deepest - depth
	doc, err := rawjson.Parse(v.Raw(), within)
	if err != nil || !doc.PlainKeys() {
		return false
	}
	b.WriteString(OneLine(v.Raw()))
	return true
}
