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
func (c *cursor) nested(closing byte, key, value func() (string, match)) (string, match) {
	if c.depth == maxDepth {
		return "", malformed
	}
	c.depth++
	defer func() { c.depth-- }()
	var elements []string
	var o object
	v := c.each(closing, func() match {
		if closing == '}' {
			name, v := key()
			if v != complete {
				return v
			}
			text, v := value()
			if v == complete && !o.add(name, text) {
				return malformed
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

// each reads the values that commas separate, from the opening mark to the index after
// closing.
func (c *cursor) each(closing byte, read func() match) match {
	c.i = c.space(c.i + 1)
	for c.i < len(c.text) {
		if c.text[c.i] == closing {
			c.i++
			return complete
		}
		if v := read(); v != complete {
			return v
		}
		c.i = c.space(c.i)
		switch {
		case c.i == len(c.text):
			return partial
		case c.text[c.i] == ',':
			c.i = c.space(c.i + 1)
		case c.text[c.i] != closing:
			return malformed
		}
	}
	return partial
}

// named returns the key that a JSON string holds, and moves past the colon at i.
func (c *cursor) named(text string, i int) (string, match) {
	switch c.matchLiteral(i, ":") {
	case partial:
		return "", partial
	case none:
		return "", malformed
	}
	c.i = c.space(i + 1)
	return rawjson.Unquote(text), complete
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
	for n, v := p.matchAny(p.i, "print(", "["); v != none; n, v = p.matchAny(p.i, "print(", "[") {
		if v == partial || len(closing) == maxDepth {
			return waiting(false)
		}
		closing = append(closing, ")]"[n])
		p.i = p.space(p.i + []int{len("print("), len("[")}[n])
	}
	for {
		c, r := p.call()
		if r.match != complete {
			r.named = r.named || named
			return r
		}
		calls, named = append(calls, c), true
		if len(closing) == 0 {
			return reading{match: complete, end: p.i, calls: calls}
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
				return malformedCall("unreadable", "the list of calls in Python cannot be read")
			}
			p.i++
		}
		return reading{match: complete, end: p.i, calls: calls}
	}
}

// call reads a call at i. It matches none if there is no call.
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
	problem := issue{"unreadable", "the arguments of the call in Python cannot be read"}
	v := p.each(')', func() match {
		start := p.i
		p.i = p.identifier(p.i)
		key := p.text[start:p.i]
		if p.i = p.space(p.i); p.i == len(p.text) {
			return partial
		}
		if p.text[p.i] != '=' || key == "" {
			problem.what = "an argument of the call in Python has no name"
			return malformed
		}
		p.i = p.space(p.i + 1)
		value, v := p.value()
		switch {
		case v == malformed:
			problem.what = "an argument of the call in Python is not a literal"
		case v == complete && !arguments.add(key, value):
			problem = issue{"ambiguous", "an argument occurs twice"}
			return malformed
		}
		return v
	})
	switch {
	case v == partial:
		return call{}, waiting(ok)
	case v != complete:
		return call{}, reading{match: malformed, issue: problem}
	case !ok:
		return call{}, reading{match: malformed, issue: unknown(written)}
	}
	return call{name: name, arguments: arguments.text(), body: p.text[from:p.i]}, reading{match: complete}
}

// words are the names of values in Python and in JSON.
var words = []struct{ python, json string }{
	{"True", "true"}, {"False", "false"}, {"None", "null"}, {"true", "true"}, {"false", "false"}, {"null", "null"},
}

// value reads a literal at i, and returns it as JSON.
func (p *python) value() (string, match) {
	if p.i == len(p.text) {
		return "", partial
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
		switch p.matchLiteral(p.i, w.python) {
		case complete:
			p.i += len(w.python)
			return w.json, complete
		case partial:
			return "", partial
		}
	}
	return "", malformed
}

// number reads a number in the spelling of Python: with underscores, a plus sign,
// or without digits on one side of the point. JSON has none of these.
func (p *python) number() (string, match) {
	from := p.i
	for p.i < len(p.text) && strings.IndexByte("+-.eE_0123456789", p.text[p.i]) >= 0 {
		p.i++
	}
	if p.i == len(p.text) {
		return "", partial
	}
	text := strings.ReplaceAll(p.text[from:p.i], "_", "")
	if doc, err := rawjson.Parse(text, anySize); err == nil && doc.Root().Kind() == rawjson.Number {
		return text, complete
	}
	f, err := strconv.ParseFloat(text, 64)
	if digits := strings.TrimLeft(text, "+-"); err != nil || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return "", malformed // 007 is not a number in Python
	}
	return strconv.FormatFloat(f, 'g', -1, 64), complete
}

// key reads the key of a dictionary and its colon. The key must be a string, as in JSON.
func (p *python) key() (string, match) {
	if c := p.text[p.i]; c != '"' && c != '\'' {
		return "", malformed
	}
	text, v := p.str(p.text[p.i])
	if v != complete {
		return "", v
	}
	return p.named(text, p.space(p.i))
}

// str reads a string, and returns it as JSON. Three quotation marks in a row begin
// a string of several lines. Prefixes such as r and f are not read: the value of
// such a string is not certain.
func (p *python) str(quote byte) (string, match) {
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
			return rawjson.Quote(b.String()), complete
		case c == '\n' && len(end) == 1:
			return "", malformed
		case c != '\\':
			b.WriteByte(c)
			p.i++
		default:
			if v := p.escape(&b); v != complete {
				return "", v
			}
		}
	}
	return "", partial
}

// escapes are the escapes of one letter.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': `"`, 'b': "\b", 'f': "\f", 'a': "\a", 'v': "\v", '0': "\x00", '\n': ""}

// escape reads a backslash and its escape. Python keeps the backslash of
// an escape that it does not know.
func (p *python) escape(b *strings.Builder) match {
	if p.i+1 == len(p.text) {
		return partial
	}
	c := p.text[p.i+1]
	if digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; digits > 0 {
		if p.i+2+digits > len(p.text) {
			return partial
		}
		n, err := strconv.ParseUint(p.text[p.i+2:p.i+2+digits], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return malformed
		}
		b.WriteRune(rune(n))
		p.i += 2 + digits
		return complete
	}
	if text, ok := escapes[c]; ok {
		b.WriteString(text)
	} else {
		b.WriteString(p.text[p.i : p.i+2])
	}
	p.i += 2
	return complete
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
	n, v := s.matchAny(i, "call:", ":")
	if v != complete {
		return s.missing(v, "the call does not begin with call:", false)
	}
	written, i, v := s.findStop(i+len([]string{"call:", ":"}[n]), "{")
	if v != complete {
		return s.missing(v, "the call has no arguments", false)
	}
	name, ok := s.tools.find(strings.TrimSpace(written))
	if !ok {
		return reading{match: malformed, issue: unknown(written)}
	}
	g := gemma{cursor{source: s, i: i - 1}, f.value}
	arguments, v := g.read()
	if v != complete {
		return s.missing(v, "the arguments cannot be read", true)
	}
	return reading{match: complete, end: g.i, calls: []call{{name: name, arguments: arguments, body: s.text[from:g.i]}}}
}

// read returns the value at i as JSON. A word without quotes must be a number,
// true, false or null: a string without quotes has no certain end.
func (g *gemma) read() (string, match) {
	g.i = g.space(g.i)
	if g.i == len(g.text) {
		return "", partial
	}
	switch c := g.text[g.i]; c {
	case '{', '[':
		return g.nested(c+2, g.key, g.read)
	case '"':
		v, end, _, ok := g.json(g.i)
		g.i = end
		if ok != complete {
			return "", ok
		}
		return v.Raw(), complete
	}
	if v := g.matchLiteral(g.i, g.quote); v != none {
		return g.str(v)
	}
	from := g.i
	for g.i < len(g.text) && strings.IndexByte(",]}", g.text[g.i]) < 0 && g.i-from <= maxName {
		g.i++
	}
	if g.i == len(g.text) {
		return "", partial
	}
	text := strings.TrimSpace(g.text[from:g.i])
	if doc, err := rawjson.Parse(text, anySize); err != nil || doc.Root().Kind() == rawjson.String {
		return "", malformed
	}
	return text, complete
}

// str reads a string between two quotes. There are no escapes: a quote is a token that no
// text has. v is the match of the first quote.
func (g *gemma) str(v match) (string, match) {
	if v == partial {
		return "", partial
	}
	from := g.i + len(g.quote)
	n := strings.Index(g.text[from:], g.quote)
	if n < 0 {
		return "", partial
	}
	g.i = from + n + len(g.quote)
	return rawjson.Quote(g.text[from : from+n]), complete
}

// key reads a key and the colon after it.
func (g *gemma) key() (string, match) {
	if v := g.matchLiteral(g.i, g.quote); v != none {
		text, v := g.str(v)
		if v != complete {
			return "", v
		}
		return g.named(text, g.i)
	}
	key, after, v := g.findStop(g.i, ":")
	if v == none {
		return "", malformed
	}
	g.i = after
	return strings.Trim(strings.TrimSpace(key), `"`), v
}
