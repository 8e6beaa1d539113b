package rawjson

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// Edit replaces text[Start:End] by Text. With Start equal to End it inserts Text there;
// with Text "" it deletes.
type Edit struct {
	Start, End int
	Text       string
}

// compare orders edits by place, an insertion before an edit that begins there.
func (e Edit) compare(f Edit) int {
	return cmp.Or(cmp.Compare(e.Start, f.Start), cmp.Compare(e.End, f.End))
}

// ErrEdits is what Apply returns for edits that overlap or lie outside.
var ErrEdits = errors.New("rawjson: edits overlap or lie outside the text")

// Apply returns text with the edits made, all in one pass, and the rest byte
// for byte. Their order does not matter; text itself comes back for none.
func Apply(text string, edits []Edit) (string, error) {
	if len(edits) == 0 {
		return text, nil
	}
	if !slices.IsSortedFunc(edits, Edit.compare) {
		edits = slices.Clone(edits)
		slices.SortStableFunc(edits, Edit.compare)
	}
	size := len(text)
	for _, e := range edits {
		size += len(e.Text)
	}
	var b strings.Builder
	b.Grow(size)
	at := 0
	for _, e := range edits {
		if e.Start < at || e.End < e.Start || e.End > len(text) {
			return "", ErrEdits
		}
		b.WriteString(text[at:e.Start])
		b.WriteString(e.Text)
		at = e.End
	}
	b.WriteString(text[at:])
	return b.String(), nil
}

// Cut returns the edits that take children out of the container that holds
// them, with the commas that separated them. White space outside of the cut
// stays. cut is asked about each child once, in order.
func (v Value) Cut(cut func(child Value) bool) []Edit {
	var edits []Edit
	from, to := -1, -1 // the cut that is still open
	keptEnd := -1      // where the last child that stays ends
	for child := range v.Each() {
		start, end := child.memberStart(), int(child.node().end)
		switch {
		case cut(child):
			if from < 0 {
				from = start
				if keptEnd >= 0 {
					from = keptEnd
				}
			}
			to = end
		case from >= 0 && keptEnd < 0: // cut at the front: up to this child
			edits = append(edits, Edit{Start: from, End: start})
			from, keptEnd = -1, end
		default:
			if from >= 0 {
				edits = append(edits, Edit{Start: from, End: to})
				from = -1
			}
			keptEnd = end
		}
	}
	if from >= 0 {
		edits = append(edits, Edit{Start: from, End: to})
	}
	return edits
}
