package rescue

// Hermes and Qwen write one JSON object between tags:
//
//	<tool_call>
//	{"name": "get_weather", "arguments": {"city": "Oslo"}}
//	</tool_call>
//
// Source: the chat templates of NousResearch/Hermes-2-Pro and Qwen/Qwen3.
const (
	toolCallOpen  = "<tool_call>"
	toolCallClose = "</tool_call>"
)

// readHermes also reads several objects between two tags, a list of them, and
// a call whose closing tag is missing because the text or the next call follows.
func readHermes(s *source, at int) reading {
	var calls []call
	i := s.space(at + len(toolCallOpen))
	for {
		if i == len(s.text) {
			if len(calls) > 0 && s.stops(i) {
				return reading{verdict: whole, end: i, calls: calls}
			}
			return waiting(len(calls) > 0)
		}
		if s.text[i] != '{' && s.text[i] != '[' {
			break
		}
		v, end, ok := s.json(i)
		switch ok {
		case more:
			return waiting(s.tools.mentioned(s.text[i:]))
		case broken:
			return brokenBy("unreadable", "the text between the tags is not JSON")
		}
		found, wrong := s.tools.inJSON(v)
		if wrong.code != "" {
			return reading{verdict: broken, issue: wrong}
		}
		calls = append(calls, found...)
		i = s.space(end)
	}
	if len(calls) == 0 {
		return reading{}
	}
	switch n, v := s.either(i, toolCallClose, toolCallOpen); {
	case v == more:
		return waiting(true)
	case n == 0:
		return reading{verdict: whole, end: i + len(toolCallClose), calls: calls}
	case n == 1:
		return reading{verdict: whole, end: i, calls: calls}
	}
	return brokenBy("unreadable", "text follows the JSON before "+toolCallClose)
}

// readHermesTail reads an answer whose opening tag was lost: servers drop it as
// a control token. The closing tag shows what it was.
func readHermesTail(s *source, at int) reading {
	v, end, ok := s.json(at)
	if ok == more && begins(s.text[at:]) {
		return waiting(s.tools.mentioned(s.text[at:]))
	}
	if ok != whole {
		return reading{}
	}
	calls, wrong := s.tools.inJSON(v)
	if wrong.code != "" {
		return reading{}
	}
	end = s.space(end)
	switch s.literal(end, toolCallClose) {
	case more:
		if s.final {
			return reading{}
		}
		return waiting(true)
	case notCall:
		return reading{}
	}
	return reading{verdict: whole, end: end + len(toolCallClose), calls: calls}
}
