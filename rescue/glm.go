package rescue

import "strings"

// GLM 4.5 and later write the name, and then pairs of keys and raw values:
//
//	<tool_call>get_weather
//	<arg_key>city</arg_key>
//	<arg_value>Oslo</arg_value>
//	</tool_call>
//
// GLM 4.7 and later leave out the line breaks. The white space inside a value
// belongs to it. The tool's schema says which values are strings.
//
// Source: the chat templates of zai-org/GLM-4.5 and zai-org/GLM-4.7.
const (
	argKeyOpen    = "<arg_key>"
	argKeyClose   = "</arg_key>"
	argValueOpen  = "<arg_value>"
	argValueClose = "</arg_value>"
)

func readGLM(s *source, at int) reading {
	from := s.space(at + len(toolCallOpen))
	i := from
	for i < len(s.text) && i-from <= maxName && identifier(s.text[i]) {
		i++
	}
	written := s.text[from:i]
	if i < len(s.text) && written == "" {
		return reading{}
	}
	i = s.space(i)
	n, v := s.either(i, toolCallClose, argKeyOpen)
	name, ok := s.tools.find(written)
	switch {
	case v == more:
		return waiting(ok)
	case v == notCall || !ok && n == 0:
		return reading{}
	case !ok:
		return reading{verdict: broken, issue: unknown(written)}
	}
	var arguments object
	for n == 1 {
		key, after, v := s.until(i+len(argKeyOpen), argKeyClose)
		if v == notCall {
			return brokenBy("unreadable", "an argument has no key")
		}
		if v == whole {
			after = s.space(after)
			v = s.literal(after, argValueOpen)
		}
		if v == more {
			return waiting(true)
		}
		if v == notCall {
			return brokenBy("unreadable", "an argument has no value")
		}
		after += len(argValueOpen)
		end, i2, v := s.value(after, argValueClose, []string{argKeyOpen, toolCallClose}, s.glmLoose)
		if v != whole {
			return s.missing(v, twoEnds, true)
		}
		key = strings.TrimSpace(key)
		if wrong := s.tools.raw(&arguments, name, key, s.tools.argument(name, key, s.text[after:end])); wrong.code != "" {
			return reading{verdict: broken, issue: wrong}
		}
		i = s.space(i2)
		if n, v = s.either(i, toolCallClose, argKeyOpen); v != whole {
			return waiting(true)
		}
	}
	end := i + len(toolCallClose)
	c := call{name: name, arguments: arguments.text()}
	if c.arguments != "{}" {
		c.body = s.text[from:i]
	}
	return reading{verdict: whole, end: end, calls: []call{c}}
}

// glmLoose accepts a last value without its closing mark, where the call ends
// and the text or another call of an offered tool follows.
func (s *source) glmLoose(at int) verdict {
	if v := s.literal(at, toolCallClose); v != whole {
		return v
	}
	after := s.space(at + len(toolCallClose))
	if after == len(s.text) {
		return s.closes(at, argValueClose)
	}
	if v := s.literal(after, toolCallOpen); v != whole {
		return v
	}
	from := after + len(toolCallOpen)
	i := from
	for i < len(s.text) && i-from <= maxName && identifier(s.text[i]) {
		i++
	}
	_, v := s.either(s.space(i), argKeyOpen, toolCallClose)
	if _, ok := s.tools.find(s.text[from:i]); v == whole && !ok {
		return notCall
	}
	if v != whole {
		return v
	}
	return s.closes(at, argValueClose)
}
