package rescue

import "strings"

// DeepSeek V3, R1 and V3.1 write calls with tokens of their own:
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
//	```json
//	{"city": "Oslo"}
//	```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//
// V3.1 writes get_weather<｜tool▁sep｜>{"city": "Oslo"} between the tokens of a
// call.
//
// Source: the chat templates of deepseek-ai/DeepSeek-V3-0324 and V3.1.
const (
	deepSeekOpen      = "<｜tool▁calls▁begin｜>"
	deepSeekClose     = "<｜tool▁calls▁end｜>"
	deepSeekCallOpen  = "<｜tool▁call▁begin｜>"
	deepSeekCallClose = "<｜tool▁call▁end｜>"
	deepSeekSeparator = "<｜tool▁sep｜>"
)

func readDeepSeek(s *source, at int) reading {
	var calls []call
	i := s.space(at + len(deepSeekOpen))
	for {
		n, v := s.either(i, deepSeekCallOpen, deepSeekClose)
		switch {
		case v == more && len(calls) > 0 && s.stops(i):
			return reading{verdict: whole, end: i, calls: calls}
		case v == more:
			return s.rest(calls, false)
		case v == whole && n == 0:
			c, end, r := s.deepSeekCall(i + len(deepSeekCallOpen))
			if r.verdict == more {
				return s.rest(calls, r.named)
			}
			if r.verdict != whole {
				return r
			}
			calls, i = append(calls, c), s.space(end)
			continue
		case len(calls) == 0:
			return brokenBy("unreadable", "the section of calls has no call")
		case v == notCall:
			return reading{verdict: whole, end: i, calls: calls}
		}
		return reading{verdict: whole, end: i + len(deepSeekClose), calls: calls}
	}
}

// rest ends a section of calls at the end of the text. If the length limit cut the
// text, the whole calls stay.
func (s *source) rest(calls []call, named bool) reading {
	if len(calls) > 0 && s.final && s.cut {
		return reading{verdict: whole, end: len(s.text), calls: calls, half: true}
	}
	return waiting(named || len(calls) > 0)
}

// deepSeekCall reads a call between its tokens.
func (s *source) deepSeekCall(at int) (call, int, reading) {
	written, i, v := s.until(at, deepSeekSeparator)
	switch v {
	case more:
		return call{}, 0, waiting(false)
	case notCall:
		return call{}, 0, brokenBy("unreadable", "a call has no name")
	}
	fenced := false
	if _, ok := s.tools.find(written); !ok && strings.TrimSpace(written) == "function" {
		if written, i, v = s.restOfLine(i); v != whole {
			return call{}, 0, waiting(false)
		}
		fenced = true
	}
	name, ok := s.tools.find(strings.TrimSpace(written))
	if !ok {
		return call{}, 0, reading{verdict: broken, issue: unknown(written)}
	}
	i = s.space(i)
	if fenced {
		switch s.literal(i, "```json") {
		case whole:
			i = s.space(i + len("```json"))
		case more:
			return call{}, 0, waiting(true)
		}
	}
	r := s.callWith(name, i, at)
	if r.verdict != whole {
		return call{}, 0, r
	}
	end := s.space(r.end)
	if fenced {
		if v := s.literal(end, "```"); v == whole {
			end = s.space(end + len("```"))
		} else if v == more {
			return call{}, 0, waiting(true)
		}
	}
	switch s.literal(end, deepSeekCallClose) {
	case more:
		return call{}, 0, waiting(true)
	case notCall:
		return call{}, 0, brokenBy("unreadable", "text follows the arguments")
	}
	return r.calls[0], end + len(deepSeekCallClose), r
}
