package codec

import (
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Tree has the members that a format knows of an object, or of each object in a list,
// with what it knows of their values. nil knows all members: the value is written whole.
type Tree map[string]Tree

// AsSent is the Tree of a value that is written as it was sent, such as arguments: what
// is wrong in them must reach the validator.
var AsSent = Tree{}

// scalar is the Tree of a value that is neither an object nor a list. One that is either,
// and in which a reader may find a call, is written as null.
var scalar = Tree{"": nil}

// Scalars returns t with members of those keys that are neither objects nor lists.
func (t Tree) Scalars(keys ...string) Tree { return t.With(scalar, keys...) }

// With returns t with members of those keys, whose values sub describes.
func (t Tree) With(sub Tree, keys ...string) Tree {
	more := maps.Clone(t)
	for _, k := range keys {
		more[k] = sub
	}
	return more
}

// deepest bounds how deep a written value is nested.
const deepest = 1000

// Write returns v as JSON in one spelling, in which all readers find the same members:
// those that the format knows, and those in which no word for calls occurs. Of a key that
// appears twice it has the last member, which Value.Get returns. Of keys that differ in case
// only, the one in lower case stays, or else the last. __proto__ goes.
func (t Tree) Write(v rawjson.Value) string {
	var b strings.Builder
	b.Grow(len(v.Raw()))
	t.WriteTo(&b, v)
	return b.String()
}

// WriteTo writes what Write returns.
func (t Tree) WriteTo(b *strings.Builder, v rawjson.Value) { t.write(b, v.Indexed(), 0) }

// Keeps reports whether the member m is written: t has it, or it is unknown and no reader
// finds a call in it.
func (t Tree) Keeps(m rawjson.Value) bool {
	_, ok := t[m.Key()]
	return ok || !t.Knows(m.Key()) && FreeMember(m)
}

// Knows reports whether key is one that t has, or that a reader takes for one.
func (t Tree) Knows(key string) bool {
	if _, ok := t[key]; ok {
		return true
	}
	folded := rawjson.Fold(key)
	for k := range t {
		if rawjson.Fold(k) == folded {
			return true
		}
	}
	return false
}

// Value writes the value of m, a member of an object that t describes.
func (t Tree) Value(m rawjson.Value) string {
	if sub := t[m.Key()]; sub != nil {
		return sub.Write(m)
	}
	return Canonical(m)
}

// FreeMember reports whether the member m, which a format does not know, may be written:
// no reader finds a call in it.
func FreeMember(m rawjson.Value) bool {
	from, _ := m.KeySpan()
	_, to := m.Span()
	return m.Key() != "__proto__" && HasNoCallWord(m.Document()[from:to])
}

// Canonical writes all of v in one spelling.
func Canonical(v rawjson.Value) string {
	if k := v.Kind(); k != rawjson.Object && k != rawjson.Array && utf8.ValidString(v.Raw()) {
		return v.Raw()
	}
	return Tree(nil).Write(v)
}

func (t Tree) write(b *strings.Builder, v rawjson.Value, depth int) {
	_, scalar := t[""]
	switch kind := v.Kind(); {
	case t != nil && len(t) == 0:
		b.WriteString(OneLine(v.Raw()))
	case depth > deepest, scalar && (kind == rawjson.Object || kind == rawjson.Array) && !HasNoCallWord(v.Raw()):
		b.WriteString("null")
	case kind == rawjson.String && !utf8.ValidString(v.Raw()):
		rawjson.WriteQuoted(b, v.Str())
	case kind == rawjson.Array:
		t.writeArray(b, v, depth)
	case kind == rawjson.Object:
		t.writeObject(b, v, depth)
	default:
		b.WriteString(v.Raw())
	}
}

func (t Tree) writeArray(b *strings.Builder, v rawjson.Value, depth int) {
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
}

func (t Tree) writeObject(b *strings.Builder, v rawjson.Value, depth int) {
	kept := func(m rawjson.Value) bool { return m.Key() != "__proto__" && (t == nil || t.Keeps(m)) }
	if v.Twins() {
		winners := map[string]rawjson.Value{} // by folded key
		for m := range v.Each() {
			key := m.Key()
			folded := rawjson.Fold(key)
			if kept(m) && (key == folded || winners[folded].Key() != folded) {
				winners[folded] = m
			}
		}
		kept = func(m rawjson.Value) bool { return winners[rawjson.Fold(m.Key())] == m }
	}
	o := ObjectWriter{B: b}
	for m := range v.Each() {
		if !kept(m) {
			continue
		}
		o.Key(m.Key())
		if sub := t[m.Key()]; t == nil || sub != nil || !writeUnchanged(b, m, depth+1) {
			sub.write(b, m, depth+1)
		}
	}
	o.End()
}

// writeUnchanged writes v as it came, such as the arguments of a call, if all readers find the
// same members in it; false if not.
func writeUnchanged(b *strings.Builder, v rawjson.Value, depth int) bool {
	if k := v.Kind(); k != rawjson.Object && k != rawjson.Array || !utf8.ValidString(v.Raw()) {
		return false
	}
	within := limits
	within.Depth = deepest - depth
	doc, err := rawjson.Parse(v.Raw(), within)
	if err != nil || !doc.HasPlainKeys() {
		return false
	}
	b.WriteString(OneLine(v.Raw()))
	return true
}
