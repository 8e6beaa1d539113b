package codec

import (
	"strings"
)

// Server-sent events. Source: the HTML standard's chapter on them: a line ends
// with LF, CRLF or CR, the stream may begin with a byte order mark, and a line
// of an unknown field, or without one, is skipped.
//
// Clients differ: many end a line at LF only, some skip white space in front of a field.
// So a unit passes as it came only if it is strictly framed (Splitter), and every other one
// is written.

// fields are the beginnings of the lines that tell an event stream: the fields
// of an event, and a comment.
var fields = []string{"data:", "event:", "id:", "retry:", ":"}

const bom = "\ufeff"

// sniff tells the framing: JSON by its first character, an event stream by its
// first line that has a field. It is unknown as long as neither is there.
func (b *Buffer) sniff(text string, end bool) framing {
	if !end && len(text) < len(bom) && strings.HasPrefix(bom, text) {
		return unknown
	}
	if b.blank == 0 && strings.HasPrefix(text, bom) {
		b.blank, b.row = len(bom), len(bom)
	}
	for b.blank < len(text) && isSpace(text[b.blank]) {
		b.blank++
	}
	switch head := text[b.blank:]; {
	case head == "" && !end:
		return unknown
	case head == "":
		return whole
	case head[0] == '[':
		return array
	case head[0] == '{' && b.byLine:
		return lines
	case head[0] == '{':
		return whole
	}
	return b.sniffField(text, end)
}

// sniffField looks for the first line that has a field.
func (b *Buffer) sniffField(text string, end bool) framing {
	for {
		line := text[b.row:]
		for _, f := range fields {
			if strings.HasPrefix(line, f) {
				b.row, b.looked = b.at, b.at
				return sse
			}
			if !end && strings.HasPrefix(f, line) {
				return unknown
			}
		}
		b.looked = max(b.looked, b.row)
		i := strings.IndexAny(text[b.looked:], "\r\n")
		if i < 0 {
			b.looked = len(text)
			if end {
				return whole
			}
			return unknown
		}
		b.row = b.looked + i + 1 // between CR and LF is one more empty line
	}
}

// sse looks for the empty line that ends an event.
func (b *Buffer) sse(end bool) (Event, bool) {
	for {
		stop, ok := b.endOfLine(end)
		if !ok {
			break
		}
		empty := b.row == stop
		if b.row = b.looked; empty {
			return b.cut(b.looked), true
		}
	}
	if end && b.at < b.text.Len() {
		return b.cut(b.text.Len()), true
	}
	return Event{}, false
}

// endOfLine returns where the current line stops, and moves looked behind its
// end. It is false if the end is not there yet: behind a carriage return a line
// feed may follow. A line that ends with a carriage return alone is held.
func (b *Buffer) endOfLine(end bool) (stop int, ok bool) {
	text := b.Text()
	if b.feed = max(b.feed, b.looked); b.feed < len(text) && text[b.feed] != '\n' {
		if i := strings.IndexByte(text[b.feed:], '\n'); i >= 0 {
			b.feed += i
		} else {
			b.feed = len(text)
		}
	}
	stop = b.feed
	switch i := strings.IndexByte(text[b.looked:b.feed], '\r'); {
	case i >= 0 && b.looked+i+1 == b.feed && b.feed < len(text): // CRLF
		stop = b.looked + i
	case i < 0:
	case b.looked+i+1 == len(text) && !end:
		b.looked += i
		return 0, false
	default:
		b.loneCR = true
		b.looked += i + 1
		return b.looked - 1, true
	}
	if b.feed == len(text) {
		b.looked = b.feed
		return 0, false
	}
	b.looked = b.feed + 1
	return stop, true
}

// cutLine returns the first line of text without its end, and its size with
// it.
func (b *Buffer) cutLine(text string) (line string, size int) {
	i := -1
	if b.loneCR {
		i = strings.IndexAny(text, "\r\n")
	} else {
		i = strings.IndexByte(text, '\n')
	}
	switch {
	case i < 0:
		return strings.TrimSuffix(text, "\r"), len(text)
	case strings.HasPrefix(text[i:], "\r\n"):
		return text[:i], i + 2
	}
	return strings.TrimSuffix(text[:i], "\r"), i + 1
}

// cut reads the event that ends at end.
func (b *Buffer) cut(end int) Event {
	e := Event{Start: b.at, End: end}
	text := b.Text()[b.at:end]
	b.at = end
	pos := 0
	if e.Start == 0 && strings.HasPrefix(text, bom) {
		pos = len(bom)
	}
	var folded strings.Builder
	lines := 0 // of data
	for pos < len(text) {
		line, size := b.cutLine(text[pos:])
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "event":
			e.Name = value
		case field != "data":
		case lines == 0:
			e.Data, e.DataStart = value, e.Start+pos+len(line)-len(value)
			lines++
		default:
			if lines++; lines == 2 {
				folded.Grow(len(text))
				folded.WriteString(e.Data)
			}
			folded.WriteString("\n" + value)
		}
		pos += size
	}
	if lines == 0 {
		e.Text = text
	}
	if e.folded = lines > 1; e.folded {
		e.Data = folded.String()
	}
	return e
}
