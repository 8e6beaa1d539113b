package rescue

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// python reads calls that are written in Python, with keyword arguments that are
// literals: get_weather(city="Oslo", days=3).
type python struct{ cursor }

// call reads a call at i. The verdict is notCall if there is no call at all.
func (p *python) call() (call, reading) {
	from := p.i
	for p.i < len(p.text) && p.i-from <= maxName && identifier(p.text[p.i]) {
		p.i++
	}
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
	p.i = p.space(p.i + 1)
	var arguments object
	for {
		if p.i == len(p.text) {
			return call{}, waiting(ok)
		}
		if p.text[p.i] == ')' {
			break
		}
		start := p.i
		for p.i < len(p.text) && p.i-start <= maxName && identifier(p.text[p.i]) {
			p.i++
		}
		key := p.text[start:p.i]
		p.i = p.space(p.i)
		if p.i == len(p.text) {
			return call{}, waiting(ok)
		}
		if p.text[p.i] != '=' || key == "" {
			return call{}, brokenBy("unreadable", "an argument has no name")
		}
		p.i = p.space(p.i + 1)
		value, v := p.literalValue()
		if v == more {
			return call{}, waiting(ok)
		}
		if v != whole {
			return call{}, brokenBy("unreadable", "an argument is not a literal")
		}
		if !arguments.add(key, value) {
			return call{}, brokenBy("ambiguous", "an argument occurs twice")
		}
		if v := p.comma(')'); v == more {
			return call{}, waiting(ok)
		} else if v == notCall {
			return call{}, brokenBy("unreadable", "the arguments are not separated by commas")
		}
	}
	p.i++
	if !ok {
		return call{}, reading{verdict: broken, issue: unknown(written)}
	}
	return call{name: name, arguments: arguments.text(), body: p.text[from:p.i]}, reading{verdict: whole}
}

// words are the names of values in Python and in JSON.
var words = []struct{ python, json string }{
	{"True", "true"}, {"False", "false"}, {"None", "null"}, {"true", "true"}, {"false", "false"}, {"null", "null"},
}

// literalValue reads a literal at i, and returns it as JSON.
func (p *python) literalValue() (string, verdict) {
	if p.i == len(p.text) {
		return "", more
	}
	switch c := p.text[p.i]; {
	case c == '"' || c == '\'':
		return p.str(c)
	case c == '[' || c == '(':
		return p.nested(func() (string, verdict) { return p.list(map[byte]byte{'[': ']', '(': ')'}[c], p.literalValue) })
	case c == '{':
		return p.nested(func() (string, verdict) { return p.object(p.key, p.literalValue) })
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
