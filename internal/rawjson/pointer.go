package rawjson

import (
	"strconv"
	"strings"
)

// MaxPointer is the length in bytes past which CutPointer, JoinPointer and
// Pointers cut a JSON Pointer: keys come from models, and thousands of issues
// may be below a key of a megabyte.
const MaxPointer = 1024

// pointerMark replaces what was cut out of a pointer. No pointer with it is
// meant to be resolved.
const pointerMark = "…"

// pointerEnd is how much of the end of a cut pointer stays, in bytes: mostly
// the name that the pointer is about.
const pointerEnd = 256

// CutPointer returns pointer if it has at most MaxPointer bytes, else its start
// and its end with "…" between. Its work is bounded.
func CutPointer(pointer string) string {
	if len(pointer) <= MaxPointer {
		return pointer
	}
	head := pointer[:MaxPointer-pointerEnd-len(pointerMark)]
	tail := pointer[len(pointer)-pointerEnd:]
	return strings.TrimRight(strings.ToValidUTF8(head, ""), "~") + pointerMark + strings.ToValidUTF8(tail, "")
}

// CutFirst returns the first segment of a JSON Pointer, escaped as it is there,
// and the rest; both are "" for "".
func CutFirst(pointer string) (seg, rest string) {
	pointer = strings.TrimPrefix(pointer, "/")
	if i := strings.IndexByte(pointer, '/'); i >= 0 {
		return pointer[:i], pointer[i:]
	}
	return pointer, ""
}

// CutLast returns the JSON Pointer of what holds the value at pointer, and the
// last segment, escaped as it is there; both are "" for "".
func CutLast(pointer string) (parent, seg string) {
	i := strings.LastIndexByte(pointer, '/')
	return pointer[:max(i, 0)], pointer[i+1:]
}

// Index returns the array index in a segment of a JSON Pointer, -1 if it is none.
func Index(seg string) int {
	if seg == "" || len(seg) > 9 || len(seg) > 1 && seg[0] == '0' {
		return -1
	}
	n := 0
	for _, c := range []byte(seg) {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// JoinPointer returns the pointer of the member key below the value at parent,
// cut as CutPointer does. Its work is bounded, however long the two are.
func JoinPointer(parent, key string) string {
	if len(key) > 2*MaxPointer { // the middle is cut anyway
		key = key[:MaxPointer] + key[len(key)-MaxPointer:]
	}
	return CutPointer(CutPointer(parent) + "/" + Escape(key))
}

// Pointers makes the pointers of many values of one document, cut as
// CutPointer does. Value.Pointer counts the elements of an array from its
// start each time; Pointers counts on from the last element that it was asked
// for, so that values in text order take linear time in all. The zero value is
// ready; it is not safe for concurrent use.
type Pointers struct {
	known map[Value]string // of containers
	last  map[Value]element
}

// element is an element of an array and its index.
type element struct {
	node  int32
	index int
}

// Of returns the pointer of v. A value before the last one of its array is counted for
// from the start again.
func (p *Pointers) Of(v Value) string {
	parent := v.Parent()
	if !parent.Exists() {
		return ""
	}
	if p.known == nil {
		p.known, p.last = map[Value]string{}, map[Value]element{}
	}
	above, ok := p.known[parent]
	if !ok {
		above = p.Of(parent)
		p.known[parent] = above
	}
	if v.IsMember() {
		return JoinPointer(above, v.Key())
	}
	at, ok := p.last[parent]
	if !ok || at.node > v.i {
		at = element{node: parent.i + 1}
	}
	for ; at.node < v.i; at.index++ {
		at.node = v.doc.nodes[at.node].next
	}
	p.last[parent] = at
	return CutPointer(above + "/" + strconv.Itoa(at.index))
}
