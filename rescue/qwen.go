package rescue

import "strings"

// Qwen3-Coder and later models write XML in which values are raw text:
//
//	<tool_call>
//	<function=get_weather>
//	<parameter=city>
//	Oslo
//	</parameter>
//	</function>
//	</tool_call>
//
// One line break behind an opening mark and one before a closing mark do not
// belong to the value. The tool's schema says which values are strings. Models
// forget <tool_call>, </tool_call> and </parameter>.
//
// Source: the chat templates of Qwen/Qwen3-Coder-30B-A3B-Instruct and
// Qwen/Qwen3.5-9B.
const (
	functionOpen   = "<function="
	functionClose  = "</function>"
	parameterOpen  = "<parameter="
	parameterClose = "</parameter>"
)

func readQwenCoder(s *source, at int) reading {
	wrapped := strings.HasPrefix(s.text[at:], toolCallOpen)
	i := at
	if wrapped {
		i = s.space(at + len(toolCallOpen))
	}
	var calls []call
	for {
		switch s.literal(i, functionOpen) {
		case more:
			return waiting(len(calls) > 0)
		case notCall:
			return reading{} // no call yet: later ones were seen by either
		}
		c, end, r := s.qwenFunction(i, wrapped)
		if r.verdict != whole {
			return r
		}
		calls = append(calls, c)
		end = min(end, len(s.text))
		n, v := s.either(s.space(end), toolCallClose, functionOpen)
		switch {
		case v == whole && n == 0:
			return reading{verdict: whole, end: s.space(end) + len(toolCallClose), calls: calls}
		case v == whole && wrapped:
			i = s.space(end)
			continue
		case v == more && !s.final:
			return waiting(true)
		case v == more && wrapped && s.cut:
			return waiting(true)
		}
		return reading{verdict: whole, end: end, calls: calls}
	}
}

// qwenFunction reads one call from its mark on. The verdict is whole if there is
// one.
func (s *source) qwenFunction(at int, wrapped bool) (call, int, reading) {
	written, i, v := s.until(at+len(functionOpen), ">")
	if v != whole {
		return call{}, 0, reading{verdict: v}
	}
	name, ok := s.tools.find(strings.Trim(written, ` "'`))
	i = s.space(i)
	n, v := s.either(i, parameterOpen, functionClose, toolCallClose)
	switch {
	case v == more:
		return call{}, 0, waiting(ok)
	case v == notCall:
		return call{}, 0, reading{} // another form, or prose
	case !ok && !wrapped:
		return call{}, 0, reading{}
	case !ok:
		return call{}, 0, reading{verdict: broken, issue: unknown(written)}
	}
	var arguments object
	for n == 0 {
		key, from, v := s.until(i+len(parameterOpen), ">")
		if v == more {
			return call{}, 0, waiting(true)
		}
		if v == notCall {
			return call{}, 0, brokenBy("unreadable", "a parameter has no name")
		}
		key = strings.Trim(key, ` "'`)
		end, after, v := s.value(from, parameterClose, []string{parameterOpen, functionClose, toolCallClose}, s.qwenLoose(name, from))
		if v != whole {
			return call{}, 0, s.missing(v, twoEnds, true)
		}
		value := strings.TrimPrefix(s.text[from:max(end, from)], "\n")
		value = strings.TrimSuffix(value, "\n")
		if wrong := s.tools.raw(&arguments, name, key, s.tools.argument(name, key, value)); wrong.code != "" {
			return call{}, 0, reading{verdict: broken, issue: wrong}
		}
		i = s.space(after)
		if n, v = s.either(i, parameterOpen, functionClose, toolCallClose); v != whole {
			return call{}, 0, waiting(true)
		}
	}
	end := i
	if n == 1 {
		end += len(functionClose)
	}
	c := call{name: name, arguments: arguments.text()}
	if c.arguments != "{}" {
		c.body = s.text[at:end]
	}
	return c, end, reading{verdict: whole}
}

// qwenLoose accepts a value without its closing mark, where a new line starts
// with the next declared parameter or with the end of the call.
func (s *source) qwenLoose(name string, from int) func(at int) verdict {
	return func(at int) verdict {
		if at > from && s.text[at-1] != '\n' {
			return notCall
		}
		n, v := s.either(at, parameterOpen, functionClose)
		switch {
		case v != whole:
			return v
		case n == 0:
			key, _, v := s.until(at+len(parameterOpen), ">")
			if v == whole && !s.tools.declares(name, key) {
				return notCall
			}
			return v
		}
		after := s.space(at + len(functionClose))
		if after == len(s.text) {
			return more
		}
		if v := s.literal(after, toolCallClose); v != whole {
			return v
		}
		return s.closes(at, parameterClose)
	}
}

// twoEnds says why a raw value cannot be read.
const twoEnds = "a value has no closing mark, or holds the end of a call"
