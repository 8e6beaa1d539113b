package rescue

import "strings"

// Kimi K2 writes a section of calls. An id holds the name and a number:
//
//	<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0
//	<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>
//
// Source: docs/tool_call_guidance.md of moonshotai/Kimi-K2-Instruct. Some models
// of the family leave out the s of calls.
const (
	kimiCall     = "<|tool_call_begin|>"
	kimiCallEnd  = "<|tool_call_end|>"
	kimiArgument = "<|tool_call_argument_begin|>"
)

var (
	kimiSections    = []string{"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"}
	kimiSectionEnds = []string{"<|tool_calls_section_end|>", "<|tool_call_section_end|>"}
)

// readKimi also reads calls without a section around them.
func readKimi(s *source, at int) reading {
	i := at
	if n, v := s.either(at, kimiSections...); v == whole {
		i = s.space(at + len(kimiSections[n]))
	}
	var calls []call
	for {
		n, v := s.either(i, append(kimiSectionEnds, kimiCall)...)
		switch {
		case v == more && len(calls) > 0 && s.stops(i):
			return reading{verdict: whole, end: i, calls: calls}
		case v == more:
			return s.rest(calls, false)
		case len(calls) == 0 && (v == notCall || n < len(kimiSectionEnds)):
			return brokenBy("unreadable", "the section of calls has no call")
		case v == notCall:
			return reading{verdict: whole, end: i, calls: calls}
		case n < len(kimiSectionEnds):
			return reading{verdict: whole, end: i + len(kimiSectionEnds[n]), calls: calls}
		}
		from := i + len(kimiCall)
		id, body, v := s.until(s.space(from), kimiArgument)
		if v == notCall { // the id may stand on a line of its own
			id, body, v = s.until(s.space(from), "\n")
			if v == whole {
				body = s.space(body)
				if v = s.literal(body, kimiArgument); v == whole {
					body += len(kimiArgument)
				}
			}
		}
		switch v {
		case more:
			return s.rest(calls, false)
		case notCall:
			return brokenBy("unreadable", "a call has no name")
		}
		name, ok := s.tools.find(kimiName(id))
		if !ok {
			return reading{verdict: broken, issue: unknown(kimiName(id))}
		}
		r := s.callWith(name, s.space(body), from)
		if r.verdict == more {
			return s.rest(calls, true)
		}
		if r.verdict != whole {
			return r
		}
		end := s.space(r.end)
		switch s.literal(end, kimiCallEnd) {
		case more:
			if s.stops(end) {
				return reading{verdict: whole, end: end, calls: append(calls, r.calls...)}
			}
			return s.rest(calls, true)
		case notCall:
			return brokenBy("unreadable", "text follows the arguments")
		}
		calls, i = append(calls, r.calls...), s.space(end+len(kimiCallEnd))
	}
}

// kimiName returns the name in an id such as functions.get_weather:0.
func kimiName(id string) string {
	id = strings.TrimPrefix(strings.TrimSpace(id), "functions.")
	if n := strings.LastIndexByte(id, ':'); n > 0 && strings.Trim(id[n+1:], "0123456789") == "" {
		id = id[:n]
	}
	return id
}
