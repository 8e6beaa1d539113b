package codec

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// repeat is the last unit that brought a piece of text and nothing else. Most units of a
// stream differ from the one before in that piece alone, and in what pads or numbers it:
// they are compared with it, and not parsed.
//
//	data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"…"}}
//
// It is what stands between holes: the text, and values that differ and say nothing.
type repeat struct {
	fixed   [maxHoles + 1]string
	holes   [maxHoles]hole
	n       int // of the holes; 0: no unit is known
	deliver func(text string) error
}

const maxHoles = 3

// hole is a value that differs from unit to unit.
type hole uint8

const (
	textHole   hole = iota // the text
	padHole                // another string
	numberHole             // a number without a sign
)

// Repeats says that u, which is free and is shown, brings the string text and nothing
// else, and that the values in differ say nothing. deliver is called with the text of each
// unit that follows and is the same but for those.
func (r *Units) Repeats(u *Unit, deliver func(text string) error, text rawjson.Value, differ ...rawjson.Value) {
	r.repeat.n = 0
	if !u.Free || u.folded || text.Kind() != rawjson.String || r.Buf.framing != sse && r.Buf.framing != lines || r.Buf.holding {
		return
	}
	type span struct {
		start, end int
		hole
	}
	var spans [maxHoles]span
	n := 0
	add := func(v rawjson.Value, h hole) {
		start, end := v.Span()
		switch v.Kind() {
		case rawjson.String:
			spans[n] = span{start + 1, end - 1, h}
			n++
		case rawjson.Number:
			spans[n] = span{start, end, numberHole}
			n++
		}
	}
	add(text, textHole)
	for _, v := range differ {
		if n == maxHoles {
			return
		}
		add(v, padHole)
	}
	slices.SortFunc(spans[:n], func(a, b span) int { return a.start - b.start })
	at := 0
	offset := u.DataStart - u.Start
	for i, s := range spans[:n] {
		r.repeat.fixed[i], r.repeat.holes[i] = u.Bytes[at:offset+s.start], s.hole
		at = offset + s.end
	}
	r.repeat.fixed[n], r.repeat.n, r.repeat.deliver = u.Bytes[at:], n, deliver
}

// read reads a unit that is the one before with another text; false if it is not.
func (r *repeat) read(unit string) (known bool, err error) {
	text, rest := "", unit
	for i := range r.n {
		if !strings.HasPrefix(rest, r.fixed[i]) {
			return false, nil
		}
		rest = rest[len(r.fixed[i]):]
		end := 0
		if r.holes[i] == numberHole {
			for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
				end++
			}
			if end == 0 || end > 1 && rest[0] == '0' || end > 15 {
				return false, nil
			}
		} else {
			if end = strings.IndexByte(rest, '"'); end < 0 || !isLiteral(rest[:end]) {
				return false, nil
			}
			if before := len(unit) - len(rest) - 1; !Free(unit[before : before+end+2]) { // with its quotes
				return false, nil
			}
			if r.holes[i] == textHole {
				text = rest[:end]
			}
		}
		rest = rest[end:]
	}
	if r.n == 0 || rest != r.fixed[r.n] || text == "" {
		return false, nil
	}
	return true, r.deliver(text)
}

// isLiteral reports whether text stands in JSON for itself.
func isLiteral(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '\\' || c == bom[0] && strings.HasPrefix(text[i:], bom) {
			return false
		}
	}
	return utf8.ValidString(text)
}
