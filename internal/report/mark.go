package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Segment is a piece of arguments for people. Characters that cannot be seen are
// replaced, so that Text is not the bytes that were sent.
type Segment struct {
	Text    string `json:"text"`
	Changed bool   `json:"changed,omitzero"` // the text was changed by the repairs
	Fault   int    `json:"fault,omitzero"`   // the text is at the place of that fault, from 1
	First   bool   `json:"first,omitzero"`   // it is the first piece at that place
	Omitted int    `json:"omitted,omitzero"` // Text stands for this many bytes that are not shown
}

// Bounds of what is shown of arguments.
const (
	maxMarked  = 1 << 18 // bytes that are compared as JSON
	maxSpans   = 200     // of one text
	maxPlain   = 600     // bytes of a piece without a mark
	maxChanged = 1_500   // bytes of a piece with a mark
)

// jsonLimits are the limits of arguments that are marked.
var jsonLimits = rawjson.Limits{Bytes: maxMarked, Depth: 128, Number: -1, Exponent: -1, AnyBytes: true}

// span is a piece of a text that has a mark.
type span struct {
	start, end int
	fault      int // 0: changed
}

// Mark returns the arguments as sent and as repaired in pieces. Pieces that differ are
// marked as changed. If both are JSON, they are compared member by member, else by
// what they begin and end with. Pieces of sent at the place of an issue have its
// number. Long pieces are cut.
func Mark(sent, ran string, issues []middleware.Issue) (before, after []Segment) {
	a, b := changes(sent, ran)
	a = append(a, faultSpans(sent, issues)...)
	return segments(sent, a), segments(ran, b)
}

// changes returns the spans of a and of b that differ.
func changes(a, b string) (inA, inB []span) {
	if a == b {
		return nil, nil
	}
	docA, errA := rawjson.Parse(a, jsonLimits)
	docB, errB := rawjson.Parse(b, jsonLimits)
	if errA == nil && errB == nil {
		d := differ{a: a, b: b}
		d.values(docA.Root().Indexed(), docB.Root().Indexed())
		if len(d.inA)+len(d.inB) > 0 {
			return d.inA, d.inB
		}
	}
	d := differ{a: a, b: b}
	d.ends(0, len(a), 0, len(b))
	return d.inA, d.inB
}

// differ compares two JSON texts.
type differ struct {
	a, b     string
	inA, inB []span
}

// values compares two values.
func (d *differ) values(x, y rawjson.Value) {
	switch {
	case x.Raw() == y.Raw():
	case x.Kind() == rawjson.Object && y.Kind() == rawjson.Object:
		d.objects(x, y)
	case x.Kind() == rawjson.Array && y.Kind() == rawjson.Array && x.Len() == y.Len():
		elements := slices.Collect(y.Each())
		i := 0
		for v := range x.Each() {
			d.values(v, elements[i])
			i++
		}
	default:
		sx, ex := x.Span()
		sy, ey := y.Span()
		if x.Kind() == y.Kind() { // a part of a long string, some elements of a list
			d.ends(sx, ex, sy, ey)
			return
		}
		d.mark(&d.inA, sx, ex)
		d.mark(&d.inB, sy, ey)
	}
}

// objects compares the members of two objects, by key. When no further mark fits, it does
// not look for what is only in y: a key that x has very often would make it read y as
// often.
func (d *differ) objects(x, y rawjson.Value) {
	for m := range x.Each() {
		if other := y.Get(m.Key()); other.Exists() {
			d.values(m, other)
		} else {
			d.member(&d.inA, m)
		}
	}
	for m := range y.Each() {
		if len(d.inB) == maxSpans {
			return
		}
		if !x.Get(m.Key()).Exists() {
			d.member(&d.inB, m)
		}
	}
}

// member marks a member with its key.
func (d *differ) member(in *[]span, m rawjson.Value) {
	start, _ := m.KeySpan()
	_, end := m.Span()
	d.mark(in, start, end)
}

// ends marks what is left between the beginning and the end that two pieces have in
// common.
func (d *differ) ends(sx, ex, sy, ey int) {
	for sx < ex && sy < ey && d.a[sx] == d.b[sy] {
		sx++
		sy++
	}
	for sx > 0 && sy > 0 && (sx < ex && !utf8.RuneStart(d.a[sx]) || sy < ey && !utf8.RuneStart(d.b[sy])) {
		sx--
		sy--
	}
	for ex > sx && ey > sy && d.a[ex-1] == d.b[ey-1] {
		ex--
		ey--
	}
	for ex < len(d.a) && ey < len(d.b) && (!utf8.RuneStart(d.a[ex]) || !utf8.RuneStart(d.b[ey])) {
		ex++
		ey++
	}
	d.mark(&d.inA, sx, ex)
	d.mark(&d.inB, sy, ey)
}

func (d *differ) mark(in *[]span, start, end int) {
	if start < end && len(*in) < maxSpans {
		*in = append(*in, span{start: start, end: end})
	}
}

// faultSpans returns the places of issues in arguments: the value at the pointer, or
// of a missing one the end of the object that it is missing in. In text that is not JSON it is
// where reading stopped.
func faultSpans(text string, issues []middleware.Issue) []span {
	doc, err := rawjson.Parse(text, jsonLimits)
	var broken *rawjson.Error
	if errors.As(err, &broken) {
		if len(issues) == 0 || verdictOf(middleware.Verdict{Issues: issues}, "") != BadJSON {
			return nil
		}
		at := min(broken.Offset, len(text))
		_, size := utf8.DecodeRuneInString(text[at:])
		if size == 0 { // the end: the last character shows it
			_, size = utf8.DecodeLastRuneInString(text)
			at -= size
		}
		return []span{{start: at, end: at + size, fault: 1}}
	}
	if err != nil {
		return nil
	}
	root := doc.Root().Indexed()
	var out []span
	for i, issue := range issues[:min(len(issues), maxFaults)] {
		if issue.Pointer == "" {
			continue // the whole text is not a place
		}
		v := root.At(issue.Pointer)
		start, end := v.Span()
		if v.Exists() && v.IsMember() {
			start, _ = v.KeySpan()
		}
		for pointer := issue.Pointer; !v.Exists() && pointer != ""; {
			pointer, _ = rawjson.CutLast(pointer)
			if v = root.At(pointer); v.Exists() {
				_, end = v.Span()
				start = end - 1
			}
		}
		if v.Exists() {
			out = append(out, span{start, end, i + 1})
		}
	}
	return out
}

// segments cuts text at the ends of spans. The shortest span gives the number.
func segments(text string, spans []span) []Segment {
	bounds := []int{0, len(text)}
	for _, s := range spans {
		bounds = append(bounds, s.start, s.end)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.end-a.start, b.end-b.start) })
	var out []Segment
	seen := map[int]bool{}
	for i := 1; i < len(bounds); i++ {
		start, end := bounds[i-1], bounds[i]
		var seg Segment
		for _, s := range spans {
			if s.start > start || s.end < end {
				continue
			}
			if s.fault == 0 {
				seg.Changed = true
			} else if seg.Fault == 0 {
				seg.Fault = s.fault
			}
		}
		seg.First = seg.Fault > 0 && !seen[seg.Fault]
		seen[seg.Fault] = true
		out = appendCut(out, text[start:end], seg)
	}
	return out
}

// appendCut appends a piece. Of a long one it appends the beginning and the end.
func appendCut(out []Segment, whole string, like Segment) []Segment {
	most := maxPlain
	if like.Changed || like.Fault > 0 {
		most = maxChanged
	}
	piece := func(s string) {
		like.Text = text.Visible(s, true)
		out = append(out, like)
	}
	if len(whole) <= most {
		piece(whole)
		return out
	}
	head, tail := 2*most/3, len(whole)-most/3
	for !utf8.RuneStart(whole[head]) && head > 0 {
		head--
	}
	for tail < len(whole) && !utf8.RuneStart(whole[tail]) {
		tail++
	}
	piece(whole[:head])
	like.First = false
	out = append(out, Segment{Text: fmt.Sprintf("… %d bytes …", tail-head), Omitted: tail - head, Changed: like.Changed, Fault: like.Fault})
	piece(whole[tail:])
	return out
}

// plain returns the text of segments.
func plain(segs []Segment) string {
	var b strings.Builder
	for _, s := range segs {
		b.WriteString(s.Text)
	}
	return b.String()
}
