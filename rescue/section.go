package rescue

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// readAt reads the form at one of its openers.
func (f *form) readAt(s *source, at int) reading {
	if f.read != nil {
		return f.read(f, s, at)
	}
	return section(f, s, at)
}

// section reads the calls between two marks. The closing mark may be missing if the model
// stopped there, or if the section is not strict.
func section(f *form, s *source, at int) reading {
	i := at
	if n, v := s.matchAny(at, f.opens...); v == complete {
		i = s.space(at + len(f.opens[n]))
	}
	item := f.item
	if item == nil {
		item = items
	}
	var calls []call
	end, separated := i, false // the end of the last call, and whether a semicolon follows it
	for {
		if len(calls) > 0 && !separated {
			if r := f.sectionEnd(s, i, end, calls); r.match != none {
				return r
			}
		}
		switch r := item(f, s, i); r.match {
		case partial:
			return s.rest(calls, r.named)
		case malformed:
			return r
		case none:
			return f.otherText(s, i, end, calls, separated)
		default:
			calls, end, separated = append(calls, r.calls...), r.end, false
		}
		if i = s.space(end); i < len(s.text) && s.text[i] == ';' {
			i, separated = s.space(i+1), true
		}
	}
}

// sectionEnd reads the end of a section at i, after calls that end at end. The reading matches
// none if the section goes on.
func (f *form) sectionEnd(s *source, i, end int, calls []call) reading {
	switch n, v := s.matchAny(i, append(f.closes, f.opens...)...); {
	case v == complete && n < len(f.closes):
		return reading{match: complete, end: i + len(f.closes[n]), calls: calls}
	case v == complete:
		return reading{match: complete, end: end, calls: calls}
	case s.stops(i):
		return reading{match: complete, end: i, calls: calls}
	case v == partial || i == len(s.text):
		return s.rest(calls, true)
	}
	return reading{}
}

// otherText is the reading of a section with a text at i that is neither a call nor the end.
func (f *form) otherText(s *source, i, end int, calls []call, separated bool) reading {
	switch {
	case len(calls) == 0 && f.shared:
		return reading{}
	case len(calls) == 0 || separated:
		return malformedCall("unreadable", "the text between the marks is neither JSON nor a call in Python or XML")
	case f.strict:
		if _, v := s.matchAny(i, append(f.marks(), tails...)...); v != complete {
			return s.missing(v, "text follows the calls before their closing mark", true)
		}
	}
	return reading{match: complete, end: end, calls: calls}
}

// items reads calls in JSON, a list of calls in Python, or one call in Python, which
// may be printed.
func items(f *form, s *source, i int) reading {
	if i < len(s.text) && s.text[i] == '{' {
		return jsonItem(f, s, i)
	}
	if next := s.space(i + 1); i < len(s.text) && s.text[i] == '[' {
		if next == len(s.text) {
			return waiting(false)
		}
		if s.text[next] == '{' {
			return jsonItem(f, s, i)
		}
	}
	return pythonItem(f, s, i)
}

// jsonItem reads an object or a list of objects, perhaps after a word.
func jsonItem(f *form, s *source, i int) reading {
	if f.call != "" && s.matchLiteral(i, f.call) == complete {
		i += len(f.call)
	}
	if i == len(s.text) {
		return waiting(false)
	}
	if s.text[i] != '{' && s.text[i] != '[' {
		return reading{}
	}
	v, end, fixed, ok := s.json(i, append(f.closes, f.marks()...)...)
	if ok != complete {
		return s.missing(ok, "the text between the marks is not JSON", ok == partial && s.tools.mentioned(s.text[i:]))
	}
	r := s.tools.inJSON(v, end, f.keyed)
	for n := range r.calls {
		if fixed {
			r.calls[n].body = s.text[i:end]
		}
	}
	return r
}

// namedItem reads a name and the arguments of its call in JSON.
func namedItem(f *form, s *source, i int) reading {
	if v := s.matchLiteral(i, f.call); v != complete {
		return reading{match: v}
	}
	from := i + len(f.call)
	written, i, v := s.findStop(s.space(from), f.head)
	if v != complete && f.shared {
		return reading{match: v}
	}
	fenced := false // the type of the call comes first, and the arguments are in a code block
	if strings.TrimSpace(written) == "function" {
		if _, isTool := s.tools.find(clean(written)); !isTool {
			written, i, v = s.findStop(i, "\n")
			fenced = true
		}
	}
	if v != complete {
		return s.missing(v, "a call has no name", false)
	}
	name, ok := s.tools.find(clean(written))
	if i = s.space(i); fenced {
		switch s.matchLiteral(i, "```json") {
		case complete:
			i = s.space(i + len("```json"))
		case partial:
			return waiting(ok)
		}
	}
	switch {
	case i == len(s.text):
		return waiting(ok)
	case f.shared && (!ok || s.text[i] != '{'):
		return reading{}
	case !ok:
		return reading{match: malformed, issue: unknown(clean(written))}
	}
	r := s.callWith(name, i, from, append(append(f.closes, f.marks()...), f.end, "```")...)
	if r.match != complete || f.end == "" {
		return r
	}
	return f.callEnd(s, r, fenced)
}

// callEnd reads the closing mark of a call after its arguments, and the end of their code
// block. The mark may be missing if the model stopped there.
func (f *form) callEnd(s *source, r reading, fenced bool) reading {
	end := s.space(r.end)
	if fenced {
		switch v := s.matchLiteral(end, "```"); {
		case v == complete:
			end = s.space(end + len("```"))
		case v == partial && !s.final:
			return waiting(true)
		}
	}
	switch v := s.matchLiteral(end, f.end); {
	case v == complete:
		r.end = end + len(f.end)
	case v == partial && !s.stops(end):
		return waiting(true)
	case v == none:
		return malformedCall("unreadable", "text follows the arguments")
	}
	return r
}

// clean returns the name in a name with white space, quotes or a number, such as
// functions.get_weather:0.
func clean(written string) string {
	name := strings.TrimPrefix(strings.Trim(written, white+`"'`), "functions.")
	if n := strings.LastIndexByte(name, ':'); n > 0 && strings.Trim(name[n+1:], "0123456789") == "" {
		name = name[:n]
	}
	return name
}

// mistralItem reads a list of calls, or a name, perhaps an id, and arguments.
func mistralItem(f *form, s *source, i int) reading {
	if i == len(s.text) || s.text[i] == '[' {
		return jsonItem(f, s, i)
	}
	const id, args = "[CALL_ID]", "[ARGS]"
	from := i
	i = s.identifier(i)
	written := s.text[from:i]
	name, ok := s.tools.find(written)
	if i < len(s.text) && s.text[i] != '{' {
		switch n, v := s.matchAny(i, args, id); {
		case v != complete:
			return reading{match: v, named: ok}
		case n == 0:
			i += len(args)
		default:
			if _, i, v = s.findStop(i+len(id), args); v != complete {
				return reading{match: v, named: ok}
			}
		}
		i = s.space(i)
	}
	switch {
	case i == len(s.text):
		return waiting(ok)
	case written == "":
		return reading{}
	case !ok:
		return reading{match: malformed, issue: unknown(written)}
	}
	return s.callWith(name, i, from, append(f.closes, f.opens...)...)
}

// readTail reads an answer whose opening tag was lost: servers drop it as a
// control token. The closing tag shows what it was.
func readTail(f *form, s *source, at int) reading {
	r := jsonItem(&form{}, s, at)
	switch {
	case r.match == partial && begins(s.text[at:]):
		return r
	case r.match != complete:
		return reading{}
	}
	end := s.space(r.end)
	switch s.matchLiteral(end, f.closes[0]) {
	case partial:
		if !s.final {
			return waiting(true)
		}
		return reading{}
	case none:
		return reading{}
	}
	r.end = end + len(f.closes[0])
	return r
}

// readBare reads an answer that is nothing but calls, without any mark.
func readBare(f *form, s *source, at int) reading {
	from := at
	if n, v := s.matchAny(at, f.opens...); v == complete {
		from += len(f.opens[n])
	}
	if name := s.text[from:s.identifier(from)]; len(f.inner) == 0 { // the name of a tool begins it
		if _, exact := s.tools.byName[name]; !exact && (s.final || from+len(name) < len(s.text)) {
			return reading{}
		}
	}
	r := section(f, s, at)
	switch {
	case r.match == malformed && len(f.inner) > 0:
		return s.intended(r, at, "")
	case r.match == malformed, r.match == partial && s.final && !r.named:
		return reading{}
	case r.match == complete && s.space(r.end) < len(s.text):
		switch _, v := s.matchAny(s.space(r.end), append(tails, thoughtEnds...)...); {
		case v == complete: // it ends a reasoning
			return r
		case v == partial && !s.final:
			return waiting(true)
		}
		return reading{}
	case r.match == complete && !s.final:
		return waiting(true)
	}
	return r
}

// notJSON is the issue of a call in JSON that cannot be parsed.
var notJSON = issue{"unreadable", "it is not JSON"}

// bareItem reads calls without marks: in JSON, or a list in Python. An object without
// arguments is no call, because data in an answer may have a name too.
func bareItem(f *form, s *source, i int) reading {
	if i == len(s.text) {
		return waiting(false)
	}
	if next := s.space(i + 1); s.text[i] == '[' && (next == len(s.text) || s.text[next] != '{') {
		return pythonItem(f, s, i)
	}
	if s.text[i] != '{' && s.text[i] != '[' {
		return reading{}
	}
	v, end, _, ok := s.json(i)
	around := v.Get("tool_calls").Exists()
	switch {
	case ok == partial && begins(s.text[i:]):
		return waiting(s.tools.mentioned(s.text[i:]))
	case ok == malformed:
		return reading{match: malformed, issue: notJSON}
	case ok == partial, around == (len(f.models) == 0):
		return reading{}
	case v.Kind() == rawjson.Object && !around && !hasArguments(v):
		return malformedCall("unreadable", "it has no arguments")
	}
	return s.tools.inJSON(v, end, false)
}

// intended decides whether an answer of nothing but JSON was meant as a call: it has the form
// of a call to a tool that is not offered, or it is not JSON and names an offered tool. Any
// other JSON, and long JSON, is the answer. mark must follow it.
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
	return malformedCall("uncertain", "it has the form of a call, but "+r.issue.what)
}

// begins reports whether incomplete JSON may be a call: its first key is a member of a call.
func begins(text string) bool {
	text = strings.TrimLeft(text, "[{"+white)
	key, _, ok := strings.Cut(strings.TrimPrefix(text, `"`), `"`)
	_, known := envelope[key]
	return !ok || known || slices.Contains(wrappers, key) || key == "tool_calls"
}

// readJSONBlock reads an answer that is one code block with a call in JSON:
//
//	```json
//	{"name": "get_weather", "arguments": {"city": "Oslo"}}
//	```
func readJSONBlock(f *form, s *source, at int) reading {
	i := at + len("```")
	switch s.matchLiteral(i, "json") {
	case partial:
		return waiting(false)
	case complete:
		i += len("json")
	}
	i = s.space(i)
	if i == len(s.text) {
		return waiting(false)
	}
	if s.text[i] != '{' && s.text[i] != '[' {
		return reading{}
	}
	r := bareItem(f, s, i)
	switch {
	case r.match == malformed:
		return s.intended(r, i, "```")
	case r.match == partial && (!s.final || r.named):
		return r
	case r.match != complete:
		return reading{}
	}
	end := s.space(r.end)
	switch v := s.matchLiteral(end, "```"); {
	case v == none || !blank(s.text[min(len(s.text), end+len("```")):]):
		return reading{}
	case v == partial || !s.final:
		return waiting(true)
	}
	r.end = len(strings.TrimRight(s.text, white))
	return r
}
