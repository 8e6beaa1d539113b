package rescue

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// cursor reads a value of a notation that nests lists and objects, as JSON does.
type cursor struct {
	*source
	i     int
	depth int
}

// maxDepth is the deepest nesting of a value.
const maxDepth = 64

// nested reads the list or the object at i: its elements, or its members. A comma may
// follow the last one, and each key must occur once.
func (c *cursor) nested(closing byte, key, value func() (string, verdict)) (string, verdict) {
	if c.depth == maxDepth {
		return "", broken
	}
	c.depth++
	defer func() { c.depth-- }()
	var elements []string
	var o object
	v := c.each(closing, func() verdict {
		if closing == '}' {
			name, v := key()
			if v != whole {
				return v
			}
			text, v := value()
			if v == whole && !o.add(name, text) {
				return broken
			}
			return v
		}
		element, v := value()
		elements = append(elements, element)
		return v
	})
	switch {
	case closing == '}':
		return o.text(), v
	case closing == ')' && len(elements) == 1 && !strings.HasSuffix(strings.TrimRight(c.text[:c.i-1], white), ","):
		return elements[0], v // in parentheses, and no tuple
	}
	return "[" + strings.Join(elements, ", ") + "]", v
}

// each moves behind an opening mark, reads what commas separate, and moves behind
// closing.
func (c *cursor) each(closing byte, read func() verdict) verdict {
	c.i = c.space(c.i + 1)
	for c.i < len(c.text) {
		if c.text[c.i] == closing {
			c.i++
			return whole
		}
		if v := read(); v != whole {
			return v
		}
		c.i = c.space(c.i)
		switch {
		case c.i == len(c.text):
			return more
		case c.text[c.i] == ',':
			c.i = c.space(c.i + 1)
		case c.text[c.i] != closing:
			return broken
		}
	}
	return more
}

// named returns the key that a JSON string holds, and moves behind the colon at i.
func (c *cursor) named(text string, i int) (string, verdict) {
	switch c.literal(i, ":") {
	case more:
		return "", more
	case notCall:
		return "", broken
	}
	doc, err := rawjson.Parse(text, anySize)
	if err != nil {
		return "", broken
	}
	c.i = c.space(i + 1)
	return doc.Root().Str(), whole
}

// python reads calls that are written in Python, with keyword arguments that are
// literals: get_weather(city="Oslo", days=3).
type python struct{ cursor }

// pythonItem reads a call, or a list of calls; each may be printed.
func pythonItem(_ *form, s *source, i int) reading {
	p := &python{cursor{source: s, i: i}}
	var calls []call
	named := false
	var closing []byte
	for n, v := p.either(p.i, "print(", "["); v != notCall; n, v = p.either(p.i, "print(", "[") {
		if v == more || len(closing) == maxDepth {
			return waiting(false)
		}
		closing = append(closing, ")]"[n])
		p.i = p.space(p.i + []int{len("print("), len("[")}[n])
	}
	for {
		c, r := p.call()
		if r.verdict != whole {
			r.named = r.named || named
			return r
		}
		calls, named = append(calls, c), true
		if len(closing) == 0 {
			return reading{verdict: whole, end: p.i, calls: calls}
		}
		if p.i = p.space(p.i); p.i < len(p.text) && p.text[p.i] == ',' {
			if p.i = p.space(p.i + 1); p.i < len(p.text) && p.text[p.i] != closing[len(closing)-1] {
				continue
			}
		}
		for n := len(closing) - 1; n >= 0; n-- {
			switch p.i = p.space(p.i); {
			case p.i == len(p.text):
				return waiting(true)
			case p.text[p.i] != closing[n]:
				return brokenBy("unreadable", "the list of calls in Python cannot be read")
			}
			p.i++
		}
		return reading{verdict: whole, end: p.i, calls: calls}
	}
}

// call reads a call at i. The verdict is notCall if there is no call at all.
func (p *python) call() (call, reading) {
	from := p.i
	p.i = p.identifier(p.i)
	written := p.text[from:p.i]
	if p.i == len(p.text) {
		return call{}, waiting(false)
	}
	if written == "" || p.text[p.i] != '(' {
		return call{}, reading{}
	}
	name, ok := p.tools.find(written)
	if !ok { // Gemma calls its tools by a module, Llama its built-in ones by a method
		name, ok = p.tools.find(strings.TrimSuffix(strings.TrimPrefix(written, "default_api."), ".call"))
	}
	var arguments object
	wrong := issue{"unreadable", "the arguments of the call in Python cannot be read"}
	v := p.each(')', func() verdict {
		start := p.i
		p.i = p.identifier(p.i)
		key := p.text[start:p.i]
		if p.i = p.space(p.i); p.i == len(p.text) {
			return more
		}
		if p.text[p.i] != '=' || key == "" {
			wrong.what = "an argument of the call in Python has no name"
			return broken
		}
		p.i = p.space(p.i + 1)
		value, v := p.value()
		switch {
		case v == broken:
			wrong.what = "an argument of the call in Python is not a literal"
		case v == whole && !arguments.add(key, value):
			wrong = issue{"ambiguous", "an argument occurs twice"}
			return broken
		}
		return v
	})
	switch {
	case v == more:
		return call{}, waiting(ok)
	case v != whole:
		return call{}, reading{verdict: broken, issue: wrong}
	case !ok:
		return call{}, reading{verdict: broken, issue: unknown(written)}
	}
	return call{name: name, arguments: arguments.text(), body: p.text[from:p.i]}, reading{verdict: whole}
}

// words are the names of values in Python and in JSON.
var words = []struct{ python, json string }{
	{"True", "true"}, {"False", "false"}, {"None", "null"}, {"true", "true"}, {"false", "false"}, {"null", "null"},
}

// value reads a literal at i, and returns it as JSON.
func (p *python) value() (string, verdict) {
	if p.i == len(p.text) {
		return "", more
	}
	switch c := p.text[p.i]; {
	case c == '"' || c == '\'':
		return p.str(c)
	case c == '[' || c == '(' || c == '{':
		return p.nested(map[byte]byte{'[': ']', '(': ')', '{': '}'}[c], p.key, p.value)
	case c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, w := range words {
		switch p.literal(p.i, w.python) {
		case whole:
			p.i += len(w.python)
			return w.json, whole
		case more:
			return "", more
		}
	}
	return "", broken
}

// number reads a number in the spelling of Python: with underscores, a plus sign,
// or without digits on one side of the point. JSON has none of these.
func (p *python) number() (string, verdict) {
	from := p.i
	for p.i < len(p.text) && strings.IndexByte("+-.eE_0123456789", p.text[p.i]) >= 0 {
		p.i++
	}
	if p.i == len(p.text) {
		return "", more
	}
	text := strings.ReplaceAll(p.text[from:p.i], "_", "")
	if doc, err := rawjson.Parse(text, anySize); err == nil && doc.Root().Kind() == rawjson.Number {
		return text, whole
	}
	f, err := strconv.ParseFloat(text, 64)
	if digits := strings.TrimLeft(text, "+-"); err != nil || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return "", broken // 007 is not a number in Python
	}
	return strconv.FormatFloat(f, 'g', -1, 64), whole
}

// key reads the key of a dictionary and its colon. It must be a string, as that of a
// JSON object is.
func (p *python) key() (string, verdict) {
	if c := p.text[p.i]; c != '"' && c != '\'' {
		return "", broken
	}
	text, v := p.str(p.text[p.i])
	if v != whole {
		return "", v
	}
	return p.named(text, p.space(p.i))
}

// str reads a string, and returns it as JSON. Three quotation marks in a row begin
// a string of several lines. Prefixes such as r and f are not read: the value of
// such a string is not certain.
func (p *python) str(quote byte) (string, verdict) {
	end := string(quote)
	if strings.HasPrefix(p.text[p.i:], strings.Repeat(end, 3)) {
		end = strings.Repeat(end, 3)
	}
	p.i += len(end)
	var b strings.Builder
	for p.i < len(p.text) {
		switch c := p.text[p.i]; {
		case strings.HasPrefix(p.text[p.i:], end):
			p.i += len(end)
			return rawjson.Quote(b.String()), whole
		case c == '\n' && len(end) == 1:
			return "", broken
		case c != '\\':
			b.WriteByte(c)
			p.i++
		default:
			if v := p.escape(&b); v != whole {
				return "", v
			}
		}
	}
	return "", more
}

// escapes are those of one letter.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': `"`, 'b': "\b", 'f': "\f", 'a': "\a", 'v': "\v", '0': "\x00", '\n': ""}

// escape reads a backslash and what belongs to it. Python keeps the backslash of
// an escape that it does not know.
func (p *python) escape(b *strings.Builder) verdict {
	if p.i+1 == len(p.text) {
		return more
	}
	c := p.text[p.i+1]
	if digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; digits > 0 {
		if p.i+2+digits > len(p.text) {
			return more
		}
		n, err := strconv.ParseUint(p.text[p.i+2:p.i+2+digits], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return broken
		}
		b.WriteRune(rune(n))
		p.i += 2 + digits
		return whole
	}
	if text, ok := escapes[c]; ok {
		b.WriteString(text)
	} else {
		b.WriteString(p.text[p.i : p.i+2])
	}
	p.i += 2
	return whole
}

// gemma reads a value in Gemma's notation, in which keys have no quotes, and strings
// have tokens for quotes:
//
//	call:get_weather{city:<|"|>Oslo<|"|>,days:3}
type gemma struct {
	cursor
	quote string
}

// gemmaItem reads one call. Some models leave out the word call.
func gemmaItem(f *form, s *source, i int) reading {
	from := i
	n, v := s.either(i, "call:", ":")
	if v != whole {
		return s.missing(v, "the call does not begin with call:", false)
	}
	written, i, v := s.until(i+len([]string{"call:", ":"}[n]), "{")
	if v != whole {
		return s.missing(v, "the call has no arguments", false)
	}
	name, ok := s.tools.find(strings.TrimSpace(written))
	if !ok {
		return reading{verdict: broken, issue: unknown(written)}
	}
	g := gemma{cursor{source: s, i: i - 1}, f.value}
	arguments, v := g.read()
	if v != whole {
		return s.missing(v, "the arguments cannot be read", true)
	}
	return reading{verdict: whole, end: g.i, calls: []call{{name: name, arguments: arguments, body: s.text[from:g.i]}}}
}

// read returns the value at i as JSON. A word without quotes must be a number,
// true, false or null: a string without quotes has no certain end.
func (g *gemma) read() (string, verdict) {
	g.i = g.space(g.i)
	if g.i == len(g.text) {
		return "", more
	}
	switch c := g.text[g.i]; c {
	case '{', '[':
		return g.nested(c+2, g.key, g.read)
	case '"':
		v, end, _, ok := g.json(g.i)
		g.i = end
		if ok != whole {
			return "", ok
		}
		return v.Raw(), whole
	}
	if v := g.literal(g.i, g.quote); v != notCall {
		return g.str(v)
	}
	from := g.i
	for g.i < len(g.text) && strings.IndexByte(",]}", g.text[g.i]) < 0 && g.i-from <= maxName {
		g.i++
	}
	if g.i == len(g.text) {
		return "", more
	}
	text := strings.TrimSpace(g.text[from:g.i])
	if doc, err := rawjson.Parse(text, anySize); err != nil || doc.Root().Kind() == rawjson.String {
		return "", broken
	}
	return text, whole
}

// str reads a string between two quotes. There are no escapes: a quote is a token
// that no text has. v says whether the first one has arrived.
func (g *gemma) str(v verdict) (string, verdict) {
	if v == more {
		return "", more
	}
	from := g.i + len(g.quote)
	n := strings.Index(g.text[from:], g.quote)
	if n < 0 {
		return "", more
	}
	g.i = from + n + len(g.quote)
	return rawjson.Quote(g.text[from : from+n]), whole
}

// key reads a key and the colon behind it.
func (g *gemma) key() (string, verdict) {
	if v := g.literal(g.i, g.quote); v != notCall {
		text, v := g.str(v)
		if v != whole {
			return "", v
		}
		return g.named(text, g.i)
	}
	key, after, v := g.until(g.i, ":")
	if v == notCall {
		return "", broken
	}
	g.i = after
	return strings.Trim(strings.TrimSpace(key), `"`), v
}
