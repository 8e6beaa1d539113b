package codec

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// repeat is the last unit that brought a piece of text, or of a call, and nothing else. Most units of a
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
	pieceHole              // a piece of a held call
	padHole                // another string
	numberHole             // a number without a sign
)

// Repeats says that u, which is free and is shown, brings the string text and nothing
// else, and that the values in differ say nothing. deliver is called with the text of each
// unit that follows and is the same but for those.
func (r *Splitter) Repeats(u *Unit, deliver func(text string) error, text rawjson.Value, differ ...rawjson.Value) {
	r.repeat.n = 0
	if u.Free && !r.Buf.holding {
		r.learn(u, deliver, textHole, text, differ)
	}
}

// RepeatsPiece is Repeats for a held unit that brings the string piece of a call. deliver is
// called with the JSON string without its quotes.
func (r *Splitter) RepeatsPiece(u *Unit, deliver func(raw string) error, piece rawjson.Value, differ ...rawjson.Value) {
	r.repeat.n = 0
	if r.Buf.holding && !r.unchanged {
		r.learn(u, deliver, pieceHole, piece, differ)
	}
}

func (r *Splitter) learn(u *Unit, deliver func(string) error, kind hole, text rawjson.Value, differ []rawjson.Value) {
	if u.folded || text.Kind() != rawjson.String || r.Buf.framing != sse && r.Buf.framing != lines {
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
	add(text, kind)
	for _, v := range differ {
		if n == maxHoles {
			return
		}
		add(v, padHole)
	}
	slices.SortFunc(spans[:n], func(a, b span) int { return a.start - b.start })
	if end := spans[n-1].end; !strings.HasPrefix(u.Data, text.Document()[:end]) { // the format has read it as it is written
		return
	}
	at := 0
	offset := u.DataStart - u.Start
	for i, s := range spans[:n] {
		r.repeat.fixed[i], r.repeat.holes[i] = u.Bytes[at:offset+s.start], s.hole
		at = offset + s.end
	}
	r.repeat.fixed[n], r.repeat.n, r.repeat.deliver = u.Bytes[at:], n, deliver
}

// read reads a unit that differs from the one before in its holes only; false for any other
// unit.
func (r *repeat) read(unit string) (known bool, err error) {
	text, at := "", 0
	for i, kind := range r.holes[:r.n] {
		if !strings.HasPrefix(unit[at:], r.fixed[i]) {
			return false, nil
		}
		at += len(r.fixed[i])
		end, ok := kind.end(unit, at)
		if !ok {
			return false, nil
		}
		if kind == textHole || kind == pieceHole {
			text = unit[at:end]
		}
		at = end
	}
	if r.n == 0 || unit[at:] != r.fixed[r.n] || text == "" {
		return false, nil
	}
	return true, r.deliver(text)
}

// end returns the end of the value that begins at unit[at], of a string without its quotes;
// false if the hole may not have that value.
func (h hole) end(unit string, at int) (end int, ok bool) {
	if h == numberHole {
		for end = at; end < len(unit) && '0' <= unit[end] && unit[end] <= '9'; {
			end++
		}
		return end, end > at && (end == at+1 || unit[at] != '0') && end <= at+15
	}
	end, simple, ok := rawjson.StringEnd(unit, at-1, false)
	if !ok || h != pieceHole && (!simple || cut(unit[at:end]) || !HasNoCallWord(unit[at-1:end])) {
		return 0, false
	}
	return end - 1, true
}
