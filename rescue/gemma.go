package rescue

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Gemma 3 writes Python in a block of its own. FunctionGemma and Gemma 4 write a
// notation with tokens, in which keys have no quotes:
//
//	<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>
//	<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:3}<tool_call|>
//
// The last closing token is missing where the server stops at it.
//
// Source: ai.google.dev/gemma/docs, function calling with Gemma 3, FunctionGemma
// and Gemma 4.
const (
	gemmaBlock = "```tool_code"
	gemmaCall  = "call:"
)

// gemmaMarks are the tokens around a call and around a string.
var gemmaMarks = []struct{ open, close, quote string }{
	{"<|tool_call>", "<tool_call|>", `<|"|>`},
	{"<start_function_call>", "<end_function_call>", "<escape>"},
}

// readGemma reads one call.
func readGemma(s *source, at int) reading {
	marks := gemmaMarks[0]
	if s.literal(at, marks.open) != whole {
		marks = gemmaMarks[1]
	}
	from := s.space(at + len(marks.open))
	if v := s.literal(from, gemmaCall); v != whole {
		return s.missing(v, "the call does not begin with call:", false)
	}
	written, i, v := s.until(from+len(gemmaCall), "{")
	if v != whole {
		return s.missing(v, "the call has no arguments", false)
	}
	name, ok := s.tools.find(strings.TrimSpace(written))
	if !ok {
		return reading{verdict: broken, issue: unknown(written)}
	}
	g := gemma{cursor{source: s, i: i - 1}, marks.quote}
	arguments, v := g.value()
	if v != whole {
		return s.missing(v, "the arguments cannot be read", true)
	}
	end := s.space(g.i)
	switch s.literal(end, marks.close) {
	case whole:
		end += len(marks.close)
	case more:
		if !s.stops(end) {
			return waiting(true)
		}
	case notCall:
		if s.literal(end, marks.open) != whole && s.literal(end, "<|tool_response>") != whole {
			return brokenBy("unreadable", "text follows the arguments")
		}
	}
	return reading{verdict: whole, end: end, calls: []call{{name: name, arguments: arguments, body: s.text[from:g.i]}}}
}

// gemma reads a value in Gemma's notation.
type gemma struct {
	cursor
	quote string
}

// value returns the value at i as JSON. A word without quotes must be a number,
// true, false or null: a string without quotes has no certain end.
func (g *gemma) value() (string, verdict) {
	g.i = g.space(g.i)
	if g.i == len(g.text) {
		return "", more
	}
	switch g.text[g.i] {
	case '{':
		return g.nested(func() (string, verdict) { return g.object(g.key, g.value) })
	case '[':
		return g.nested(func() (string, verdict) { return g.list(']', g.value) })
	case '"':
		v, end, ok := g.json(g.i)
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

// readGemmaBlock reads calls in a block of Python: plain, inside of print, in a
// list, or one a line. Some models write JSON there.
func readGemmaBlock(s *source, at int) reading {
	var calls []call
	p := python{cursor{source: s, i: s.space(at + len(gemmaBlock))}}
	if p.i < len(s.text) && s.text[p.i] == '{' {
		r := s.llamaJSON(p.i)
		if r.verdict != whole {
			return r
		}
		calls, p.i = r.calls, s.space(r.end)
	}
	for {
		switch s.literal(p.i, "```") {
		case more:
			return waiting(len(calls) > 0)
		case whole:
			if len(calls) == 0 {
				return brokenBy("unreadable", "the block has no call")
			}
			return reading{verdict: whole, end: p.i + len("```"), calls: calls}
		}
		var closing string
		for n, v := s.either(p.i, "print(", "["); v == whole; n, v = s.either(p.i, "print(", "[") {
			p.i, closing = s.space(p.i+len([]string{"print(", "["}[n])), []string{")", "]"}[n]+closing
		}
		for {
			c, r := p.call()
			switch {
			case r.verdict == more:
				return waiting(r.named || len(calls) > 0)
			case r.verdict != whole:
				return brokenBy("unreadable", "the block holds Python that is not a call")
			}
			calls = append(calls, c)
			if p.i = s.space(p.i); p.i == len(s.text) {
				return waiting(true)
			}
			if closing == "" || p.text[p.i] != ',' {
				break
			}
			p.i = s.space(p.i + 1)
		}
		for _, c := range []byte(closing) {
			if p.i = s.space(p.i); p.i == len(s.text) {
				return waiting(true)
			}
			if p.text[p.i] != c {
				return brokenBy("unreadable", "the block holds Python that is not a call")
			}
			p.i++
		}
		p.i = s.space(p.i)
	}
}
