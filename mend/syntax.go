package mend

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// repair returns the edits that make JSON of text, none for JSON; those that
// add closers at its end apart. It changes how a value is written and never
// what it is: false for anything whose meaning is not certain, such as text
// that ends inside of a string or a number, arithmetic, a word that is no
// literal, a missing comma or value. Work is linear in the text.
func repair(text string) (edits, closers []rawjson.Edit, ok bool) {
	if !utf8.ValidString(text) {
		return nil, nil, false
	}
	r := repairer{text: text, end: len(text)}
	r.fence()
	r.emptyBefore()
	if !r.space() || r.pos == r.end || strings.IndexByte("{[\"'", r.text[r.pos]) < 0 {
		return nil, nil, false
	}
	if !r.value(0) || !r.space() || !r.surplus() {
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

// JSON returns text as JSON, the way the rule Syntax reads it: an object or an array
// whose spelling has one meaning. ok is false for any other text, also for one that
// lacks brackets at its end.
func JSON(text string) (json string, ok bool) {
	edits, closers, ok := repair(text)
	if !ok || len(closers) > 0 {
		return "", false
	}
	json, err := rawjson.Apply(text, edits)
	return json, err == nil
}

// repairer reads what models write in place of JSON: what JavaScript and
// Python would read as the same value.
//
//	{'city': 'Oslo', }            single quotes, a trailing comma
//	{city: True} // the city      a bare key, a literal of Python, a comment
//	```json {"a": 1}```           a Markdown fence
//	{"a": [1, {"b": "c"}          missing ends, which are told apart: see Close
type repairer struct {
	text     string
	pos, end int // end: where the value must have ended
	edits    []rawjson.Edit
	closers  []rawjson.Edit // added at the end
	cut      bool           // a comment ran to the end: what stands in it may be the closers
}

// edit notes an edit; deletions side by side become one.
func (r *repairer) edit(start, end int, text string) {
	if n := len(r.edits); text == "" && n > 0 && r.edits[n-1].Text == "" && r.edits[n-1].End == start {
		r.edits[n-1].End = end
		return
	}
	r.edits = append(r.edits, rawjson.Edit{Start: start, End: end, Text: text})
}

// peek returns the next byte, 0 at the end.
func (r *repairer) peek() byte {
	if r.pos < r.end {
		return r.text[r.pos]
	}
	return 0
}

// fence takes off a Markdown fence around the whole text.
func (r *repairer) fence() {
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

// emptyBefore takes off an empty object that stands before another one: the
// start of a call that some servers send before its arguments, and that clients join to
// them.
func (r *repairer) emptyBefore() {
	const white = " \t\r\n"
	text := r.text[:r.end]
	body := strings.TrimLeft(text[r.pos:], white)
	rest, ok := strings.CutPrefix(body, "{}")
	if ok && strings.HasPrefix(strings.TrimLeft(rest, white), "{") {
		r.edit(len(text)-len(body), len(text)-len(rest), "")
		r.pos = len(text) - len(rest)
	}
}

// space passes over white space and comments. White space that JSON does not
// have goes, and so do comments; false for one without an end.
func (r *repairer) space() bool {
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
				n, r.cut = len(rest), true
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

// value reads one value of any kind. Depth is bounded, because it recurses.
func (r *repairer) value(depth int) bool {
	if depth > rawjson.DefaultDepth {
		return false
	}
	switch c := r.peek(); {
	case c == '{', c == '[':
		return r.container(c, depth)
	case c == '"':
		return r.double()
	case c == '\'':
		return r.single()
	case c == '-' || '0' <= c && c <= '9':
		return r.number()
	}
	return r.literal()
}

// container reads an object or an array, trailing comma and missing end
// included.
func (r *repairer) container(open byte, depth int) bool {
	r.pos++
	comma := -1 // where the last one is
	for first := true; ; first = false {
		if !r.space() {
			return false
		}
		switch c := r.peek(); {
		case r.pos == r.end:
			return !first && comma < 0 && r.closer(open)
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
		if open == '{' && !r.key() || !r.value(depth+1) || !r.space() {
			return false
		}
		if r.peek() == ',' {
			comma = r.pos
			r.pos++
		}
	}
}

// closer puts in an end that the text lacks, where it ends after a string or
// a container. A number or a word may have been cut short, and a string that
// ends in a closer has probably swallowed it.
func (r *repairer) closer(open byte) bool {
	body := strings.TrimRight(r.text[:r.end], " \t\r\n")
	inner := strings.TrimRight(body, "\"'")
	if r.cut || !strings.ContainsAny(body[len(body)-1:], "\"'}]") || inner != body && strings.ContainsAny(inner[len(inner)-1:], "}]") {
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
		if !r.double() {
			return false
		}
	case c == '\'':
		if !r.single() {
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
	if !r.space() || r.peek() != ':' {
		return false
	}
	r.pos++
	return r.space()
}

// number reads a JSON number. Anything else, such as 1/6, .5 or 0x10, is not
// followed by what may follow a value, or is not a number for rawjson. Both languages read
// some of them, but not as the same number.
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

// strayQuote takes off a quote right behind the last number, where nothing but
// closers follows it, as in {"n": 5"}.
func (r *repairer) strayQuote() {
	if r.peek() != '"' {
		return
	}
	if rest := r.text[r.pos+1 : r.end]; strings.ContainsAny(rest, "}]") && strings.Trim(rest, " \t\r\n}]") == "" {
		r.edit(r.pos, r.pos+1, "")
		r.pos++
	}
}

// literals are the words that stand for a value, in JSON and in Python.
var literals = map[string]string{"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}

// literal reads one of the literals, whole. Other words, such as NaN and undefined, have
// no value in JSON.
func (r *repairer) literal() bool {
	start := r.pos
	for isLetter(r.peek()) || '0' <= r.peek() && r.peek() <= '9' {
		r.pos++
	}
	word := r.text[start:r.pos]
	meant, ok := literals[word]
	if ok && meant != word {
		r.edit(start, r.pos, meant)
	}
	return ok
}

// isLetter reports whether c may start a bare key.
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '$'
}

// surplus reads what follows the value: nothing, or closers too many. They
// hold no value that could get lost. Anything else may be a second call, or a part of
// this one.
func (r *repairer) surplus() bool {
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

// mostChanges is how many edits of one repair are told one by one.
const mostChanges = 16

// textChanges says what edits do, one change for each as long as that helps a
// reader. They have no pointer: the text had no places yet.
func textChanges(rule Rule, text string, edits []rawjson.Edit) []middleware.Change {
	if len(edits) > mostChanges {
		fixed, _ := rawjson.Apply(text, edits)
		return []middleware.Change{{By: rule.by(), Before: text, After: fixed}}
	}
	var changes []middleware.Change
	for _, e := range edits {
		changes = append(changes, middleware.Change{By: rule.by(), Before: text[e.Start:e.End], After: e.Text})
	}
	return changes
}
