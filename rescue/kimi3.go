package rescue

import "strings"

// Kimi K3 writes a whole answer in elements whose marks are tokens:
//
//	<|open|>response<|sep|>Let me check.<|close|>response<|sep|>
//	<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>
//	<|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|>
//	<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>
//
// without the line breaks. A value is raw text if its type is string, else JSON.
//
// Source: the chat template of moonshotai/Kimi-K3, as canitoolcall 0.1.1 shows
// it. Its fixtures were read before this reader was written.
const (
	kimi3ResponseOpen  = "<|open|>response<|sep|>"
	kimi3ResponseClose = "<|close|>response<|sep|>"
	kimi3ToolsOpen     = "<|open|>tools<|sep|>"
	kimi3ToolsClose    = "<|close|>tools<|sep|>"
	kimi3MessageClose  = "<|close|>message<|sep|>"
	kimi3CallOpen      = `<|open|>call tool="`
	kimi3CallClose     = "<|close|>call<|sep|>"
	kimi3ArgumentOpen  = `<|open|>argument key="`
	kimi3ArgumentClose = "<|close|>argument<|sep|>"
	kimi3Separator     = "<|sep|>"
)

// readKimi3 reads all elements from the first one on. Elements without a call
// stay as they are.
func readKimi3(s *source, at int) reading {
	r := reading{verdict: whole}
	var text strings.Builder
	i := at
	for {
		next := s.space(i)
		n, v := s.either(next, kimi3ResponseOpen, kimi3ResponseClose, kimi3ToolsOpen, kimi3MessageClose)
		if next == len(s.text) && s.final || v == notCall {
			break
		}
		if v == more {
			return s.rest(r.calls, false)
		}
		switch i = next; n {
		case 0:
			from := i + len(kimi3ResponseOpen)
			length := strings.Index(s.text[from:], kimi3ResponseClose)
			if length < 0 {
				if s.final {
					return reading{verdict: whole, end: len(s.text), text: s.text[at:]}
				}
				return waiting(false)
			}
			text.WriteString(s.text[from : from+length])
			i = from + length + len(kimi3ResponseClose)
		case 1:
			i += len(kimi3ResponseClose)
		case 2:
			calls := s.kimi3Calls(i + len(kimi3ToolsOpen))
			if calls.verdict != whole || calls.half {
				calls.text = text.String()
				return calls
			}
			r.calls, i = append(r.calls, calls.calls...), calls.end
		case 3:
			i += len(kimi3MessageClose)
		}
	}
	r.end, r.text = i, text.String()
	if len(r.calls) == 0 {
		r.text = s.text[at:i]
	}
	return r
}

// kimi3Calls reads a section of calls behind its mark.
func (s *source) kimi3Calls(i int) reading {
	var calls []call
	for {
		i = s.space(i)
		n, v := s.either(i, kimi3ToolsClose, kimi3CallOpen)
		switch {
		case v == more:
			return s.rest(calls, false)
		case v == notCall || n == 0 && len(calls) == 0:
			return brokenBy("unreadable", "the section of calls cannot be read")
		case n == 0:
			return reading{verdict: whole, end: i + len(kimi3ToolsClose), calls: calls}
		}
		c, end, r := s.kimi3Call(i)
		if r.verdict == more {
			return s.rest(calls, r.named)
		}
		if r.verdict != whole {
			return r
		}
		calls, i = append(calls, c), end
	}
}

// kimi3Call reads one call from its mark on.
func (s *source) kimi3Call(at int) (call, int, reading) {
	written, i, v := s.until(at+len(kimi3CallOpen), `"`)
	if v != whole {
		return call{}, 0, s.missing(v, "a call has no name", false)
	}
	name, ok := s.tools.find(kimi3Attribute(written))
	if !ok {
		return call{}, 0, reading{verdict: broken, issue: unknown(written)}
	}
	if _, i, v = s.until(i, kimi3Separator); v != whole {
		return call{}, 0, s.missing(v, "a call's mark is not closed", true)
	}
	var arguments object
	for {
		i = s.space(i)
		n, v := s.either(i, kimi3CallClose, kimi3ArgumentOpen)
		switch {
		case v != whole:
			return call{}, 0, s.missing(v, "a call holds text that is not an argument", true)
		case n == 0:
			c := call{name: name, arguments: arguments.text()}
			if c.arguments != "{}" {
				c.body = s.text[at:i]
			}
			return c, i + len(kimi3CallClose), reading{verdict: whole}
		}
		key, after, v := s.until(i+len(kimi3ArgumentOpen), `" type="`)
		if v != whole {
			return call{}, 0, s.missing(v, "an argument's mark cannot be read", true)
		}
		kind, after, v := s.until(after, `"`+kimi3Separator)
		if v != whole {
			return call{}, 0, s.missing(v, "an argument's mark cannot be read", true)
		}
		end, next, v := s.value(after, kimi3ArgumentClose, []string{kimi3ArgumentOpen, kimi3CallClose}, strict)
		if v != whole {
			return call{}, 0, waiting(true)
		}
		value, ok := quotedOr(s.text[after:end], kind == "string")
		if !ok {
			return call{}, 0, brokenBy("unreadable", "an argument is not JSON")
		}
		if wrong := s.tools.raw(&arguments, name, kimi3Attribute(key), value); wrong.code != "" {
			return call{}, 0, reading{verdict: broken, issue: wrong}
		}
		i = next
	}
}

// kimi3Attribute undoes the escapes in an attribute.
func kimi3Attribute(text string) string {
	return strings.NewReplacer("&quot;", `"`, "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}
