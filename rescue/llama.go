package rescue

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Llama 3 and 4 write JSON, a list of calls in Python, or a tag:
//
//	<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}
//	[get_weather(city="Oslo"), get_time()]
//	<function=get_weather>{"city": "Oslo"}</function>
//
// The control tokens <|python_tag|>, <|python_start|> and <|python_end|> are often
// missing. Without one, JSON and Python count only if they are the whole answer.
// Several JSON objects are separated by semicolons.
//
// Source: the model cards and prompt formats of meta-llama/Llama-3.1, 3.2 and 4.
const (
	llamaTag   = "<|python_tag|>"
	llamaStart = "<|python_start|>"
	llamaEnd   = "<|python_end|>"
)

// llamaStops are the tokens behind a call that some servers leave in the text.
var llamaStops = []string{"<|eom_id|>", "<|eot_id|>", "<|eot|>"}

// readLlamaTag reads what follows a control token.
func readLlamaTag(s *source, at int) reading {
	i := at + len(llamaTag)
	if s.literal(at, llamaStart) == whole {
		i = at + len(llamaStart)
	}
	i = s.space(i)
	if i == len(s.text) {
		return waiting(false)
	}
	r := s.llamaCalls(i)
	if r.verdict == notCall {
		return brokenBy("unreadable", "the text behind the token is neither JSON nor a call in Python")
	}
	return r
}

// readLlamaBare reads an answer that is nothing but calls.
func readLlamaBare(s *source, at int) reading {
	r := s.llamaCalls(at)
	switch {
	case r.verdict == broken:
		return s.intended(r, at, "")
	case r.verdict == more && s.final && !r.named:
		return reading{}
	case r.verdict == whole && s.space(r.end) < len(s.text):
		switch _, v := s.either(s.space(r.end), thoughtEnds...); {
		case v == whole: // it ends a reasoning
			return r
		case v == more && !s.final:
			return waiting(true)
		}
		return reading{}
	case r.verdict == whole && !s.final:
		return waiting(true)
	}
	return r
}

// intended decides about an answer of nothing but JSON that is not a call. It may
// be meant as one: it has the form of a call, of a tool that is not offered, or it
// is not JSON and names an offered tool. Otherwise, and if it is long, it is the
// answer. mark must follow it.
func (s *source) intended(r reading, at int, mark string) reading {
	if len(s.text)-at > maxHeld { // each opener reads a bounded text
		return reading{}
	}
	text, closed := strings.CutSuffix(strings.TrimSpace(s.text[at:]), mark)
	switch {
	case r.issue.code == "unknown_tool" && r.end > 0:
		rest := strings.TrimSpace(s.text[r.end:])
		if !strings.HasPrefix(mark, rest) {
			return reading{}
		}
		closed = closed && rest == mark
	case r.issue == notJSON && begins(text) && s.tools.mentioned(text) && !strings.Contains(text, "```"):
		closed = closed && strings.HasSuffix(strings.TrimSpace(text), "}")
	default:
		return reading{}
	}
	switch {
	case !s.final:
		return waiting(r.issue == notJSON)
	case !closed:
		return reading{}
	}
	return brokenBy("uncertain", "it has the form of a call, but "+r.issue.what)
}

// llamaCalls reads calls in JSON or in Python.
func (s *source) llamaCalls(i int) reading {
	from := i
	var calls []call
	for {
		if i == len(s.text) {
			return waiting(len(calls) > 0)
		}
		r := reading{}
		switch s.text[i] {
		case '{':
			r = s.llamaJSON(i)
		case '[':
			if next := s.space(i + 1); next == len(s.text) {
				r = waiting(false)
			} else if s.text[next] == '{' {
				r = s.llamaJSON(i)
			} else {
				r = s.llamaList(next)
			}
		default:
			p := python{cursor{source: s, i: i}}
			c, got := p.call()
			r = got
			r.end, r.calls = p.i, []call{c}
		}
		if r.verdict != whole {
			if r.verdict == notCall && len(calls) > 0 {
				return brokenBy("unreadable", "text follows a separator of calls")
			}
			return r
		}
		calls = append(calls, r.calls...)
		end := r.end
		if n, v := s.either(s.space(end), append(llamaStops, llamaEnd)...); v == whole {
			end = s.space(end) + len(append(llamaStops, llamaEnd)[n])
		} else if v == more && !s.final && s.space(end) < len(s.text) {
			return waiting(true)
		}
		i = s.space(end)
		if i < len(s.text) && s.text[i] == ';' {
			i = s.space(i + 1)
			continue
		}
		if i < len(s.text) && s.text[i] == '{' && s.text[from] == '{' {
			continue // one object a line
		}
		if i == len(s.text) && !s.final {
			return waiting(true)
		}
		return reading{verdict: whole, end: end, calls: calls}
	}
}

// notJSON is the issue of a call in JSON that cannot be parsed.
var notJSON = issue{"unreadable", "it is not JSON"}

// llamaJSON reads a call in JSON, or a list of calls. An object without arguments
// is not read: an answer that is data may well have a name.
func (s *source) llamaJSON(i int) reading {
	v, end, ok := s.json(i)
	switch ok {
	case more:
		if !begins(s.text[i:]) {
			return reading{}
		}
		return waiting(s.tools.mentioned(s.text[i:]))
	case broken:
		return reading{verdict: broken, issue: notJSON}
	}
	if v.Kind() == rawjson.Object && !hasArguments(v) {
		return brokenBy("unreadable", "it has no arguments")
	}
	calls, wrong := s.tools.inJSON(v)
	if wrong.code != "" {
		return reading{verdict: broken, issue: wrong, end: end}
	}
	return reading{verdict: whole, end: end, calls: calls}
}

// begins reports whether JSON that has not arrived in full may be a call: its
// first key is a member of one.
func begins(text string) bool {
	text = strings.TrimLeft(text, "[{ \t\r\n")
	key, _, ok := strings.Cut(strings.TrimPrefix(text, `"`), `"`)
	_, known := envelope[key]
	return !ok || known || slices.Contains(wrappers, key)
}

// llamaList reads a list of calls in Python, behind its bracket.
func (s *source) llamaList(i int) reading {
	var calls []call
	p := python{cursor{source: s, i: i}}
	for {
		c, r := p.call()
		if r.verdict != whole {
			return r
		}
		calls = append(calls, c)
		switch p.comma(']') {
		case more:
			return waiting(true)
		case notCall:
			return brokenBy("unreadable", "the list of calls cannot be read")
		}
		if p.i == len(p.text) {
			return waiting(true)
		}
		if p.text[p.i] == ']' {
			return reading{verdict: whole, end: p.i + 1, calls: calls}
		}
	}
}

// readLlamaFunction reads JSON in a tag. Qwen3-Coder has the same tag, with
// parameters instead of JSON in it.
func readLlamaFunction(s *source, at int) reading {
	written, i, v := s.until(at+len(functionOpen), ">")
	if v != whole {
		return reading{verdict: v}
	}
	name, ok := s.tools.find(written)
	if i = s.space(i); i == len(s.text) {
		return waiting(ok)
	}
	if s.text[i] != '{' || !ok {
		return reading{}
	}
	r := s.callWith(name, i, at)
	if r.verdict != whole {
		return r
	}
	end := s.space(r.end)
	switch s.literal(end, functionClose) {
	case more:
		if s.stops(end) {
			return r
		}
		return waiting(true)
	case notCall:
		return brokenBy("unreadable", "text follows the arguments")
	}
	r.end = end + len(functionClose)
	return r
}
