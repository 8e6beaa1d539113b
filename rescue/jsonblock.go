package rescue

import "strings"

// readJSONBlock reads an answer that is one code block with a call in JSON:
//
//	```json
//	{"name": "get_weather", "arguments": {"city": "Oslo"}}
//	```
func readJSONBlock(s *source, at int) reading {
	i := at + len("```")
	switch s.literal(i, "json") {
	case more:
		return waiting(false)
	case whole:
		i += len("json")
	}
	i = s.space(i)
	if i == len(s.text) {
		return waiting(false)
	}
	if s.text[i] != '{' && s.text[i] != '[' {
		return reading{}
	}
	r := s.llamaJSON(i)
	if r.verdict == more && (!s.final || r.named) {
		return r
	}
	if r.verdict == broken {
		return s.intended(r, i, "```")
	}
	if r.verdict != whole {
		return reading{}
	}
	end := s.space(r.end)
	switch v := s.literal(end, "```"); {
	case v == notCall:
		return reading{}
	case v == more:
		return waiting(true)
	}
	end += len("```")
	switch {
	case !blank(s.text[end:]):
		return reading{}
	case !s.final:
		return waiting(true)
	}
	r.end = len(strings.TrimRight(s.text, " \t\r\n"))
	return r
}
