package mend

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// syntaxEdits returns the edits that turn text into JSON, and the edits that add closing
// brackets at its end. Both are empty for JSON. It changes the spelling of values, never
// the values: it returns false if the meaning is not certain, for example if text ends
// inside a string or a number, or has arithmetic, an unknown word, a missing comma or a
// missing value. Work is linear in the text.
func syntaxEdits(text string) (edits, closers []rawjson.Edit, ok bool) {
	if !utf8.ValidString(text) {
		return nil, nil, false
	}
	r := repairer{text: text, end: len(text)}
	r.skipFence()
	r.skipEmptyObject()
	if !r.skipSpace() || r.pos == r.end || strings.IndexByte("{[\"'", r.text[r.pos]) < 0 {
		return nil, nil, false
	}
	if !r.value(0) || !r.skipSpace() || !r.skipClosers() {
		return nil, nil, false
	}
	fixed, err := rawjson.Apply(text, slices.Concat(r.edits, r.closers))
	if err != nil {
		return nil, nil, false
	}
	if _, err := rawjson.Parse(fixed, unlimited); err != nil {
		return nil, nil, false
	}
	return r.edits, r.closers, true
}

// JSON returns text as JSON, with the repairs of the rule Syntax. ok is false if text has
// no single meaning as an object, an array or a string, and if closing brackets are
// missing at its end.
func JSON(text string) (json string, ok bool) {
	edits, closers, ok := syntaxEdits(text)
	if !ok || len(closers) > 0 {
		return "", false
	}
	json, err := rawjson.Apply(text, edits)
	return json, err == nil
}

// repairer reads text that JavaScript and Python read as the same value, and notes the
// edits that turn it into JSON.
//
//	{'city': 'Oslo', }            single quotes, a trailing comma
//	{city: True} // the city      a bare key, a literal of Python, a comment
//	```json {"a": 1}```           a Markdown fence
//	{"a": [1, {"b": "c"}          missing closing brackets; see Close
type repairer struct {
	text         string
	pos, end     int // end: the end of the value without a fence
	edits        []rawjson.Edit
	closers      []rawjson.Edit // of missing closing brackets
	commentAtEnd bool           // a comment runs to the end, and may contain the closing brackets
}

// edit notes an edit. It joins adjacent deletions.
func (r *repairer) edit(start, end int, text string) {
	if n := len(r.edits); text == "" && n > 0 && r.edits[n-1].Text == "" && r.edits[n-1].End == start {
		r.edits[n-1].End = end
		return
	}
	r.edits = append(r.edits, rawjson.Edit{Start: start, End: end, Text: text})
}

// peek returns the next byte, or 0 at the end.
func (r *repairer) peek() byte {
	if r.pos < r.end {
		return r.text[r.pos]
	}
	return 0
}

// skipFence removes a Markdown fence around the whole text.
func (r *repairer) skipFence() {
	const mark = "```"
	body := strings.TrimLeft(r.text, " \t\r\n")
	start := len(r.text) - len(body)
	tail := strings.TrimRight(r.text, " \t\r\n")
	if !strings.HasPrefix(body, mark) || !strings.HasSuffix(tail, mark) || len(tail)-len(mark) < start+len(mark) {
		return
	}
	head := start + len(mark)
	for head < len(r.text) && (isLetter(r.text[head]) || '0' <= r.text[head] && r.text[head] <= '9') {
		head++
	}
	r.edit(0, head, "")
	r.pos, r.end = head, len(tail)-len(mark)
}

// skipEmptyObject removes an empty object in front of another object. Some servers send it
// as the start of a call, and clients join it to the arguments.
func (r *repairer) skipEmptyObject() {
	const white = " \t\r\n"
	text := r.text[:r.end]
	body := strings.TrimLeft(text[r.pos:], white)
	rest, ok := strings.CutPrefix(body, "{}")
	if ok && strings.HasPrefix(strings.TrimLeft(rest, white), "{") {
		r.edit(len(text)-len(body), len(text)-len(rest), "")
		r.pos = len(text) - len(rest)
	}
}

// skipSpace reads white space and comments. It removes comments, and white space that JSON
// does not have. It returns false for a comment without an end.
func (r *repairer) skipSpace() bool {
	for r.pos < r.end {
		rest := r.text[r.pos:r.end]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			r.pos++
		case strings.HasPrefix(rest, "\u00a0"), strings.HasPrefix(rest, "\ufeff"):
			_, size := utf8.DecodeRuneInString(rest)
			r.edit(r.pos, r.pos+size, "")
			r.pos += size
		case rest[0] == '#', strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n, r.commentAtEnd = len(rest), true
			}
			r.edit(r.pos, r.pos+n, "")
			r.pos += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return false
			}
			r.edit(r.pos, r.pos+n+4, "")
			r.pos += n + 4
		default:
			return true
		}
	}
	return true
}

// value reads a value of any kind, nested up to rawjson.DefaultDepth levels.
func (r *repairer) value(depth int) bool {
	if depth > rawjson.DefaultDepth {
		return false
	}
	switch c := r.peek(); {
	case c == '{', c == '[':
		return r.container(c, depth)
	case c == '"':
		return r.doubleQuoted()
	case c == '\'':
		return r.singleQuoted()
	case c == '-' || '0' <= c && c <= '9':
		return r.number()
	}
	return r.literal()
}

// container reads an object or an array. It removes a trailing comma and adds a missing
// closing bracket.
func (r *repairer) container(open byte, depth int) bool {
	r.pos++
	comma := -1 // the offset of a comma before the next element
	for first := true; ; first = false {
		if !r.skipSpace() {
			return false
		}
		switch c := r.peek(); {
		case r.pos == r.end:
			return !first && comma < 0 && r.addCloser(open)
		case c == open+2: // '}' is '{'+2, ']' is '['+2
			if comma >= 0 {
				r.edit(comma, comma+1, "")
			}
			r.pos++
			return true
		case !first && comma < 0:
			return false
		}
		comma = -1
		if open == '{' && !r.key() || !r.value(depth+1) || !r.skipSpace() {
			return false
		}
		if r.peek() == ',' {
			comma = r.pos
			r.pos++
		}
	}
}

// addCloser adds a closing bracket at the end of the text, if the text ends after a string
// or a container. A number or a word may be incomplete there, and a string that ends in a
// bracket has probably swallowed it.
func (r *repairer) addCloser(open byte) bool {
	body := strings.TrimRight(r.text[:r.end], " \t\r\n")
	inner := strings.TrimRight(body, "\"'")
	if r.commentAtEnd || !strings.ContainsAny(body[len(body)-1:], "\"'}]") || inner != body && strings.ContainsAny(inner[len(inner)-1:], "}]") {
		return false
	}
	r.closers = append(r.closers, rawjson.Edit{Start: r.end, End: r.end, Text: string(open + 2)})
	return true
}

// key reads a member's key and the colon after it.
func (r *repairer) key() bool {
	start := r.pos
	switch c := r.peek(); {
	case c == '"':
		if !r.doubleQuoted() {
			return false
		}
	case c == '\'':
		if !r.singleQuoted() {
			return false
		}
	case isLetter(c):
		for isLetter(r.peek()) || r.peek() == '-' || '0' <= r.peek() && r.peek() <= '9' {
			r.pos++
		}
		if r.peek() == '"' { // only the opening quote is missing
			r.edit(start, start, `"`)
			r.pos++
			break
		}
		r.edit(start, r.pos, `"`+r.text[start:r.pos]+`"`)
	default:
		return false
	}
	if !r.skipSpace() || r.peek() != ':' {
		return false
	}
	r.pos++
	return r.skipSpace()
}

// number reads a JSON number. It refuses 1/6, .5 and 0x10, which JavaScript and Python do
// not all read as the same number.
func (r *repairer) number() bool {
	start := r.pos
	for r.pos < r.end && strings.IndexByte("+-.eE0123456789", r.text[r.pos]) >= 0 {
		r.pos++
	}
	doc, err := rawjson.Parse(r.text[start:r.pos], unlimited)
	if err != nil || doc.Root().Kind() != rawjson.Number {
		return false
	}
	r.strayQuote()
	return true
}

// strayQuote removes a quote directly after the last number, as in {"n": 5"}, if only
// closing brackets follow.
func (r *repairer) strayQuote() {
	if r.peek() != '"' {
		return
	}
	if rest := r.text[r.pos+1 : r.end]; strings.ContainsAny(rest, "}]") && strings.Trim(rest, " \t\r\n}]") == "" {
		r.edit(r.pos, r.pos+1, "")
		r.pos++
	}
}

// literals are the words for values in JSON and in Python, with their JSON text.
var literals = map[string]string{"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}

// literal reads one of the literals. Other words, such as NaN and undefined, have no value
// in JSON.
func (r *repairer) literal() bool {
	start := r.pos
	for isLetter(r.peek()) || '0' <= r.peek() && r.peek() <= '9' {
		r.pos++
	}
	word := r.text[start:r.pos]
	value, ok := literals[word]
	if ok && value != word {
		r.edit(start, r.pos, value)
	}
	return ok
}

// isLetter reports whether c may start a bare key.
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '$'
}

// skipClosers reads the text after the value and removes surplus closing brackets. It
// refuses any other text, which may be a second call or a part of this one.
func (r *repairer) skipClosers() bool {
	rest := r.text[r.pos:r.end]
	if r.end < len(r.text) {
		defer r.edit(r.end, len(r.text), "") // the fence
	}
	if strings.Trim(rest, " \t\r\n}]") != "" {
		return false
	}
	if start := strings.TrimLeft(rest, " \t\r\n"); start != "" {
		r.edit(r.pos, r.end, "")
	}
	return true
}

// maxChanges is the largest number of edits of one repair that are reported one by one.
const maxChanges = 16

// textChanges returns the changes that report edits: one for each, or one for the whole
// text if there are more than maxChanges. They have no pointer, because the text was not
// JSON.
func textChanges(rule Rule, text string, edits []rawjson.Edit) []middleware.Change {
	if len(edits) > maxChanges {
		fixed, _ := rawjson.Apply(text, edits)
		return []middleware.Change{{By: rule.by(), Before: text, After: fixed}}
	}
	var changes []middleware.Change
	for _, e := range edits {
		changes = append(changes, middleware.Change{By: rule.by(), Before: text[e.Start:e.End], After: e.Text})
	}
	return changes
}

// doubleQuoted reads a string in double quotes. It escapes raw control characters, and
// removes the backslash of \'. It refuses escapes that JSON does not have, as in "C:\dir",
// because the backslash may be part of the value.
func (r *repairer) doubleQuoted() bool {
	for r.pos++; r.pos < r.end; {
		switch c := r.text[r.pos]; {
		case c == '"':
			r.pos++
			return r.delimited()
		case c == '\\':
			if !r.escape() {
				return false
			}
		case c < ' ' && len(r.edits) > maxChanges:
			return r.restOfString()
		case c < ' ':
			r.edit(r.pos, r.pos+1, escaped(c))
			r.pos++
		default:
			r.pos++
		}
	}
	return false
}

// restOfString reads the rest of a string in double quotes as one edit. It is used after
// maxChanges edits, because a string may hold a million control characters.
func (r *repairer) restOfString() bool {
	start := r.pos
	var b strings.Builder
	for r.pos < r.end {
		switch c := r.text[r.pos]; {
		case c == '"':
			r.edit(start, r.pos, b.String())
			r.pos++
			return r.delimited()
		case c == '\\':
			n := escapeLen(r.text[r.pos:r.end])
			if n == 0 {
				return false
			}
			r.unescape(&b, n)
		case c < ' ':
			b.WriteString(escaped(c))
			r.pos++
		default:
			from := r.pos
			for r.pos < r.end && r.text[r.pos] >= ' ' && r.text[r.pos] != '"' && r.text[r.pos] != '\\' {
				r.pos++
			}
			b.WriteString(r.text[from:r.pos])
		}
	}
	return false
}

// unescape writes the next escape, which has n bytes, to b as JSON has it.
func (r *repairer) unescape(b *strings.Builder, n int) {
	if r.text[r.pos+1] == '\'' {
		b.WriteByte('\'')
	} else {
		b.WriteString(r.text[r.pos : r.pos+n])
	}
	r.pos += n
}

// escapes are the JSON escapes of the control characters, as rawjson.Quote writes them.
var escapes = func() (t [' ']string) {
	for c := range t {
		quoted := rawjson.Quote(string(rune(c)))
		t[c] = quoted[1 : len(quoted)-1]
	}
	return t
}()

// escaped returns the JSON escape of a control character or a double quote.
func escaped(c byte) string {
	if c == '"' {
		return `\"`
	}
	return escapes[c]
}

// escape reads an escape in a string in double quotes.
func (r *repairer) escape() bool {
	n := escapeLen(r.text[r.pos:r.end])
	if n == 0 {
		return false
	}
	if r.text[r.pos+1] == '\'' {
		r.edit(r.pos, r.pos+1, "")
	}
	r.pos += n
	return true
}

// escapeLen returns the length of the escape at the start of s. It is 0 for escapes that
// JSON does not have, except for \', which Python and JavaScript have.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't', '\'':
		return 2
	case 'u':
		if len(s) >= 6 && strings.Trim(s[2:6], "0123456789abcdefABCDEF") == "" {
			return 6
		}
	}
	return 0
}

// singleQuoted reads a string in single quotes and writes it in double quotes. It refuses a
// quote in the middle of a word, as in 'don't': see delimited.
func (r *repairer) singleQuoted() bool {
	start := r.pos
	var b strings.Builder
	b.WriteByte('"')
	for r.pos++; r.pos < r.end; {
		switch c := r.text[r.pos]; {
		case c == '\'':
			r.pos++
			b.WriteByte('"')
			r.edit(start, r.pos, b.String())
			return r.delimited()
		case c == '\\':
			n := escapeLen(r.text[r.pos:r.end])
			if n == 0 {
				return false
			}
			r.unescape(&b, n)
		case c < ' ' || c == '"':
			b.WriteString(escaped(c))
			r.pos++
		default:
			from := r.pos
			for r.pos < r.end && r.text[r.pos] >= ' ' && strings.IndexByte("'\\\"", r.text[r.pos]) < 0 {
				r.pos++
			}
			b.WriteString(r.text[from:r.pos])
		}
	}
	return false
}

// delimited reports whether the next character may follow a string. If not, the quote
// before it was not the end of the string.
func (r *repairer) delimited() bool {
	return r.pos == r.end || strings.IndexByte(" \t\r\n,:]}/#", r.text[r.pos]) >= 0 || strings.HasPrefix(r.text[r.pos:], "\u00a0")
}
