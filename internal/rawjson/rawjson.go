// Package rawjson reads JSON text without losing it: one strict scan gives a
// tree of spans, and edits are made to the text itself, so that key order,
// white space and the spelling of numbers stay as they were.
//
// It refuses what [encoding/json.Valid] refuses, and more: text that is not
// UTF-8, unless Limits.AnyBytes is set, and whatever is past the [Limits]. The scan
// does not recurse, so that depth costs memory only.
//
// For example, the text {"a": [1, 2.50]} has the values
//
//	{"a": [1, 2.50]}    the root
//	[1, 2.50]           its member a
//	1, 2.50             the elements
//
// A [Value] is a span of the text. What a program changes becomes a list of [Edit]s,
// which [Apply] makes at once: 2.50 is written again only if it is replaced.
package rawjson

import "iter"

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds. The zero Kind belongs to the zero Value.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the name that JSON Schema has for k.
func (k Kind) String() string {
	return [...]string{"invalid", "null", "boolean", "number", "string", "array", "object"}[k]
}

// Doc is a scanned text. It is immutable and safe for concurrent use.
type Doc struct {
	text  string
	nodes []node  // in text order: a container, then what it holds
	dups  []int32 // nodes of members whose key occurs earlier in the same object
	index *index  // nil: none; see Indexed
}

// node is one value. Offsets are int32: Parse refuses longer texts.
type node struct {
	kind             Kind
	escaped          bool  // a string with escapes
	keyEscaped       bool  // a member's key with escapes
	start, end       int32 // of the value
	keyStart, keyEnd int32 // of the key, quotes included; keyEnd 0: no member
	parent           int32 // -1: the root
	next             int32 // the node after this one and all it holds
}

// Value is a value in a Doc. The zero Value is absent: its Kind is Invalid. Each method
// may be called on an absent Value, and returns the zero of its result: so a path of Gets
// needs one check at its end. Two Values are equal if they are the same place of one Doc.
type Value struct {
	doc *Doc
	i   int32
}

// Text returns the whole text.
func (d *Doc) Text() string { return d.text }

// Root returns the whole value. That of a nil Doc, which Parse returns with an error, is absent.
func (d *Doc) Root() Value { return Value{d, 0} }

// Duplicates returns the members whose key occurs earlier in the same object,
// in text order.
func (d *Doc) Duplicates() []Value {
	vs := make([]Value, len(d.dups))
	for i, n := range d.dups {
		vs[i] = Value{d, n}
	}
	return vs
}

// HoldsEmpty reports whether any value inside the root is null, {} or [].
func (d *Doc) HoldsEmpty() bool {
	for i := 1; i < len(d.nodes); i++ {
		n := &d.nodes[i]
		if n.kind == Null || (n.kind == Object || n.kind == Array) && int(n.next) == i+1 {
			return true
		}
	}
	return false
}

// absent is the node of the zero Value.
var absent = node{parent: -1}

// node returns what was scanned of v.
func (v Value) node() *node {
	if v.doc == nil {
		return &absent
	}
	return &v.doc.nodes[v.i]
}

// Exists reports whether v is a value at all.
func (v Value) Exists() bool { return v.doc != nil }

// Kind returns v's kind.
func (v Value) Kind() Kind {
	return v.node().kind
}

// Raw returns v's text.
func (v Value) Raw() string {
	if v.doc == nil {
		return ""
	}
	n := v.node()
	return v.doc.text[n.start:n.end]
}

// Document returns the whole text that v is part of.
func (v Value) Document() string {
	if v.doc == nil {
		return ""
	}
	return v.doc.text
}

// Span returns where v's text starts and ends in the document; 0, 0 for an
// absent v.
func (v Value) Span() (start, end int) { return int(v.node().start), int(v.node().end) }

// KeySpan returns where a member's key starts and ends, quotes included; zeros
// for any other value.
func (v Value) KeySpan() (start, end int) { return int(v.node().keyStart), int(v.node().keyEnd) }

// memberStart is where v starts, its key included.
func (v Value) memberStart() int {
	if n := v.node(); n.keyEnd > 0 {
		return int(n.keyStart)
	}
	return int(v.node().start)
}

// Empty reports whether v is null, {} or [].
func (v Value) Empty() bool {
	switch v.Kind() {
	case Null:
		return true
	case Array, Object:
		return v.node().next == v.i+1
	}
	return false
}

// Len returns how many elements or members v has, duplicates included.
func (v Value) Len() int {
	n := 0
	for range v.Each() {
		n++
	}
	return n
}

// Each yields the elements of an array or the members of an object, in text
// order.
func (v Value) Each() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if k := v.Kind(); k != Array && k != Object {
			return
		}
		for i := v.i + 1; i < v.node().next; i = v.doc.nodes[i].next {
			if !yield(Value{v.doc, i}) {
				return
			}
		}
	}
}

// Parent returns what holds v; absent for the root.
func (v Value) Parent() Value {
	if p := v.node().parent; p >= 0 {
		return Value{v.doc, p}
	}
	return Value{}
}

// Key returns the key of a member, unescaped as by Exact; "" for any other value.
func (v Value) Key() string {
	n := v.node()
	if n.keyEnd == 0 {
		return ""
	}
	return unquote(v.doc.text[n.keyStart:n.keyEnd], n.keyEscaped, true)
}

// IsMember reports whether v is a member of an object.
func (v Value) IsMember() bool { return v.node().keyEnd > 0 }

// Get returns the member of that key: the last one, where there are several.
func (v Value) Get(key string) Value {
	var found Value
	if v.Kind() != Object {
		return found
	}
	if m, known := v.member(key); known {
		return m
	}
	nodes, text := v.doc.nodes, v.doc.text // a loop of its own: every format reads its members here
	size := int32(len(key) + len(`""`))
	for i, end := v.i+1, nodes[v.i].next; i < end; i = nodes[i].next {
		n, m := &nodes[i], Value{v.doc, i}
		if !n.keyEscaped && n.keyEnd-n.keyStart == size && text[n.keyStart+1:n.keyEnd-1] == key || n.keyEscaped && m.Key() == key {
			found = m
		}
	}
	return found
}

// Str returns the text of a string; "" for any other value.
func (v Value) Str() string {
	if v.Kind() != String {
		return ""
	}
	return unquote(v.Raw(), v.node().escaped, false)
}
