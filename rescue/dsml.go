package rescue

// DeepSeek V3.2 and later write XML with a token before each name. A value is
// raw text, or JSON with string="false":
//
//	<｜DSML｜function_calls>
//	<｜DSML｜invoke name="get_weather">
//	<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>
//	</｜DSML｜invoke>
//	</｜DSML｜function_calls>
//
// V4 calls the section tool_calls. V4.1 calls it calls, and has a space behind
// each token.
//
// Source: encoding/encoding_dsv32.py of deepseek-ai/DeepSeek-V3.2, and its
// successors.
const (
	dsmlOpen  = "<｜DSML｜"
	dsmlClose = "</｜DSML｜"
)

// dsmlSections are the marks around all calls, without dsmlOpen.
var dsmlSections = []string{"function_calls>", "tool_calls>", " calls>"}

func readDSML(s *source, at int) reading {
	n, v := s.either(at+len(dsmlOpen), dsmlSections...)
	if v != whole {
		return reading{verdict: v}
	}
	space := ""
	if n == 2 {
		space = " "
	}
	closing := dsmlClose + dsmlSections[n]
	invoke := dsmlOpen + space + `invoke name="`
	var calls []call
	i := s.space(at + len(dsmlOpen) + len(dsmlSections[n]))
	for {
		n, v := s.either(i, closing, invoke)
		switch {
		case v == more && len(calls) > 0 && s.stops(i):
			return reading{verdict: whole, end: i, calls: calls}
		case v == more:
			return s.rest(calls, false)
		case v == notCall || n == 0 && len(calls) == 0:
			return brokenBy("unreadable", "the section of calls cannot be read")
		case n == 0:
			return reading{verdict: whole, end: i + len(closing), calls: calls}
		}
		c, end, r := s.dsmlInvoke(i, i+len(invoke), space)
		if r.verdict == more {
			return s.rest(calls, r.named)
		}
		if r.verdict != whole {
			return r
		}
		calls, i = append(calls, c), s.space(end)
	}
}

// dsmlInvoke reads one call from its name at i on. The call starts at from.
func (s *source) dsmlInvoke(from, i int, space string) (call, int, reading) {
	written, i, v := s.until(i, `"`)
	if v != whole {
		return call{}, 0, s.missing(v, "a call has no name", false)
	}
	name, ok := s.tools.find(written)
	if !ok {
		return call{}, 0, reading{verdict: broken, issue: unknown(written)}
	}
	n, v := s.either(i, "/>", ">")
	switch {
	case v != whole:
		return call{}, 0, s.missing(v, "a call's mark is not closed", true)
	case n == 0:
		return call{name: name, arguments: "{}"}, i + len("/>"), reading{verdict: whole}
	}
	parameter, closing := dsmlOpen+space+`parameter name="`, dsmlClose+space+"invoke>"
	i = s.space(i + len(">"))
	var arguments object
	for {
		n, v := s.either(i, closing, parameter)
		switch {
		case v != whole:
			return call{}, 0, s.missing(v, "a call holds text that is not a parameter", true)
		case n == 0:
			c := call{name: name, arguments: arguments.text()}
			if c.arguments != "{}" {
				c.body = s.text[from : i+len(closing)]
			}
			return c, i + len(closing), reading{verdict: whole}
		}
		key, after, v := s.until(i+len(parameter), `" string="`)
		if v != whole {
			return call{}, 0, s.missing(v, "a parameter's mark cannot be read", true)
		}
		form, v := s.either(after, `true">`, `false">`)
		if v != whole {
			return call{}, 0, s.missing(v, "a parameter's mark cannot be read", true)
		}
		after += len([]string{`true">`, `false">`}[form])
		end, next, v := s.value(after, dsmlClose+space+"parameter>", []string{parameter, closing}, strict)
		if v != whole {
			return call{}, 0, waiting(true)
		}
		value, ok := quotedOr(s.text[after:end], form == 0)
		if !ok {
			return call{}, 0, brokenBy("unreadable", "a parameter is not JSON")
		}
		if wrong := s.tools.raw(&arguments, name, key, value); wrong.code != "" {
			return call{}, 0, reading{verdict: broken, issue: wrong}
		}
		i = s.space(next)
	}
}

// missing is the reading of a text that ends, or goes on in another way than the
// markup does.
func (s *source) missing(v verdict, what string, named bool) reading {
	if v == more {
		return waiting(named)
	}
	return brokenBy("unreadable", what)
}
