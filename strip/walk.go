package strip

import (
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// maxPointers bounds the bytes of all pointers together. A pointer repeats all keys above
// its value, so pointers can be far longer than the arguments.
const maxPointers = 16 << 20

// placeholders are strings that count as empty.
type placeholders []string

// has reports whether s is a placeholder, without regard to letter case and surrounding
// white space.
func (p placeholders) has(s string) bool {
	s = strings.TrimSpace(s)
	for _, candidate := range p {
		if strings.EqualFold(strings.TrimSpace(candidate), s) {
			return true
		}
	}
	return false
}

// walker strips one text.
type walker struct {
	*Stripper
	skip     map[rawjson.Value]bool // objects with duplicate keys
	path     []pathEntry            // from the root to the current value
	edits    []rawjson.Edit
	removals []Removal
	pointers int // bytes of pointers made so far
}

// pathEntry is a value, and its index in its parent.
type pathEntry struct {
	value rawjson.Value
	index int
}

// newWalker notes the objects with duplicate keys. They are not changed, because validation
// refuses them.
func newWalker(s *Stripper, doc *rawjson.Doc) *walker {
	w := &walker{Stripper: s}
	for _, d := range doc.Duplicates() {
		if w.skip == nil {
			w.skip = map[rawjson.Value]bool{}
		}
		w.skip[d.Parent()] = true
	}
	return w
}

// becomesEmpty strips the children of v, then reports whether v is empty. An example of a
// value that becomes empty is {"a": {"b": null}}.
func (w *walker) becomesEmpty(v rawjson.Value, p *place) bool {
	switch v.Kind() {
	case rawjson.String:
		return len(w.placeholders) > 0 && w.isPlaceholder(v.Str(), p)
	case rawjson.Object, rawjson.Array:
		return v.Empty() || w.clean(v, p)
	}
	return v.Empty()
}

// isPlaceholder reports whether s counts as empty at p. In all modes but All, a string that
// an enum or const lists there does not.
func (w *walker) isPlaceholder(s string, p *place) bool {
	if w.mode != All {
		if _, named := p.names[s]; named {
			return false
		}
	}
	return w.placeholders.has(s)
}

// clean removes the empty children of a container, and reports whether none is left.
func (w *walker) clean(v rawjson.Value, p *place) bool {
	if w.skip[v] || w.mode != All && !p.describes(v.Kind()) {
		return false
	}
	index, left := 0, 0
	cut := v.Cut(func(child rawjson.Value) bool {
		w.path = append(w.path, pathEntry{child, index})
		removed := w.remove(child, index, p)
		w.path = w.path[:len(w.path)-1]
		index++
		if !removed {
			left++
		}
		return removed
	})
	w.edits = append(w.edits, cut...)
	return left == 0
}

// remove strips a child of the value at p, and reports whether the child itself is removed.
// In that case there is one removal, with the text of the child as it was sent.
func (w *walker) remove(child rawjson.Value, index int, p *place) bool {
	var below *place
	keep := false
	if w.mode != All {
		if below, keep = p.child(child, index); below == nil {
			return false
		}
	}
	edits, removals := len(w.edits), len(w.removals)
	if !w.becomesEmpty(child, below) || keep {
		return false
	}
	if w.mode == WhenInvalid && below.admits&probeOf(child.Kind()) != 0 {
		return false
	}
	pointer, ok := w.pointer()
	if !ok {
		return false
	}
	w.edits = w.edits[:edits]
	w.removals = append(w.removals[:removals], Removal{Pointer: pointer, Value: child.Raw()})
	return true
}

// pointer returns the JSON Pointer of the current value, and false after maxPointers. It
// walks the path, because Value.Pointer would count the elements of an array for each of
// them.
func (w *walker) pointer() (string, bool) {
	size := 0
	for _, s := range w.path {
		size += 1 + len(s.value.Key())
	}
	if w.pointers += size; w.pointers > maxPointers {
		return "", false
	}
	b := make([]byte, 0, size+8)
	for _, s := range w.path {
		b = append(b, '/')
		if s.value.IsMember() {
			b = append(b, rawjson.Escape(s.value.Key())...)
		} else {
			b = strconv.AppendInt(b, int64(s.index), 10)
		}
	}
	return string(b), true
}
