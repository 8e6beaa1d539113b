package rescue

import "strings"

// Mistral writes a list of calls, or since tokenizer v11 one call behind each
// mark:
//
//	[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}]
//	[TOOL_CALLS]get_weather[CALL_ID]123456789[ARGS]{"city": "Oslo"}
//
// A call has no closing mark. It ends with its JSON.
//
// Source: the tokenizers of mistralai/mistral-common.
const (
	mistralOpen   = "[TOOL_CALLS]"
	mistralCallID = "[CALL_ID]"
	mistralArgs   = "[ARGS]"
)

func readMistral(s *source, at int) reading {
	from := s.space(at + len(mistralOpen))
	if from == len(s.text) {
		return waiting(false)
	}
	if s.text[from] == '[' {
		v, end, ok := s.json(from)
		switch ok {
		case more:
			return waiting(s.tools.mentioned(s.text[from:]))
		case broken:
			return brokenBy("unreadable", "the list of calls is not JSON")
		}
		calls, wrong := s.tools.inJSON(v)
		if wrong.code != "" {
			return reading{verdict: broken, issue: wrong}
		}
		return reading{verdict: whole, end: end, calls: calls}
	}
	i := from
	for i < len(s.text) && i-from <= maxName && identifier(s.text[i]) {
		i++
	}
	written := s.text[from:i]
	name, ok := s.tools.find(written)
	if i < len(s.text) && s.text[i] != '{' {
		n, v := s.either(i, mistralArgs, mistralCallID)
		switch {
		case v == more:
			return waiting(ok)
		case v == notCall:
			return reading{}
		case n == 0:
			i += len(mistralArgs)
		default:
			_, after, v := s.until(i+len(mistralCallID), mistralArgs)
			if v != whole {
				return reading{verdict: v, named: ok}
			}
			i = after
		}
		i = s.space(i)
	}
	if i == len(s.text) {
		return waiting(ok)
	}
	if !ok {
		return reading{verdict: broken, issue: unknown(written)}
	}
	return s.callWith(name, i, from)
}

// callWith reads the arguments of a call at i, up to the end of their JSON.
func (s *source) callWith(name string, i, from int) reading {
	if i < len(s.text) && s.text[i] != '{' {
		return brokenBy("unreadable", "the arguments are not a JSON object")
	}
	v, end, ok := s.json(i)
	switch ok {
	case more:
		return waiting(true)
	case broken:
		return brokenBy("unreadable", "the arguments are not JSON")
	}
	return reading{verdict: whole, end: end, calls: []call{{name: name, arguments: v.Raw(), body: s.text[from:end]}}}
}

// identifier reports whether a byte may stand in the name of a tool.
func identifier(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || strings.IndexByte("_-.:/", c) >= 0
}
