package rescue

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// elementItem reads a call whose parameters are elements with raw values:
//
//	<function=get_weather>
//	<parameter=city>
//	Oslo
//	</parameter>
//	</function>
//
// A value is a string if the schema of the tool or an attribute declares one: DeepSeek
// writes string="true", Kimi K3 type="string". The closing marks of values and calls may
// be missing, because models forget them.
func elementItem(f *form, s *source, i int) reading {
	e := element{f: f, s: s, from: i, pos: i, next: append([]string{f.param, f.end}, f.closes...)}
	if r := e.head(); r.match != complete || r.calls != nil {
		return r
	}
	var arguments object
	for e.mark == paramMark {
		if r := e.parameter(&arguments); r.match != complete {
			return r
		}
	}
	return e.close(arguments.text())
}

// element is a cursor over one call whose parameters are elements.
type element struct {
	f    *form
	s    *source
	from int      // where the call begins
	pos  int      // the text before it was read
	name string   // of an offered tool
	next []string // the marks that may follow a head or a parameter
	mark int      // which of them is at pos
}

// The marks in element.next; after them come those that close the section.
const (
	paramMark = iota
	endMark
)

// head reads the name, up to the mark after it. A complete reading has a call only if the
// element has no content.
func (e *element) head() reading {
	if v := e.s.matchLiteral(e.pos, e.f.call); v != complete {
		return reading{match: v}
	}
	e.pos += len(e.f.call)
	written, r := e.written()
	if r.match != complete {
		return r
	}
	written, kind := attribute(written)
	name, ok := e.s.tools.find(written)
	e.name = name
	if kind == "/" {
		if !ok {
			return reading{match: malformed, issue: unknown(written)}
		}
		return reading{match: complete, end: e.pos, calls: []call{{name: name, arguments: "{}"}}}
	}
	e.pos = e.s.space(e.pos)
	n, v := e.s.matchAny(e.pos, e.next...)
	e.mark = n
	switch {
	case v == partial:
		return waiting(ok)
	case v == none && (e.f.shared || !ok):
		return reading{} // another form, or prose
	case v == none:
		return malformedCall("unreadable", "a call holds text that is not a parameter")
	case !ok && n != paramMark && e.f.shared:
		return reading{}
	case !ok:
		return reading{match: malformed, issue: unknown(written)}
	}
	return reading{match: complete}
}

// written returns the name in the head, as the model wrote it.
func (e *element) written() (name string, r reading) {
	if e.f.head != "" {
		name, after, v := e.s.findStop(e.pos, e.f.head)
		e.pos = after
		return name, reading{match: v}
	}
	begin := e.s.space(e.pos)
	e.pos = e.s.identifier(begin)
	if name = e.s.text[begin:e.pos]; name == "" && e.pos < len(e.s.text) {
		return "", reading{}
	}
	return name, reading{match: complete}
}

// parameter reads one parameter and adds it to the arguments.
func (e *element) parameter(arguments *object) reading {
	head, begin, v := e.s.findStop(e.pos+len(e.f.param), e.f.keyEnd)
	if v == complete && e.f.value != "" {
		begin = e.s.space(begin)
		v = e.s.matchLiteral(begin, e.f.value)
		begin += len(e.f.value)
	}
	if v != complete {
		return e.s.missing(v, "the mark of a parameter cannot be read", true)
	}
	key, kind := attribute(head)
	var loose func(int) match
	if e.f.loose != nil {
		loose = e.f.loose(e.f, e.s, e.name, begin)
	}
	end, after, v := e.s.raw(begin, e.f.valueEnd, e.next, loose)
	if v != complete {
		return e.s.missing(v, "a value has no closing mark, or holds the end of a call", true)
	}
	value, ok := e.s.tools.typed(e.name, key, e.f.inside(e.s.text[begin:max(end, begin)]), kind)
	if !ok {
		return malformedCall("unreadable", "a parameter is not JSON")
	}
	if problem := e.s.tools.add(arguments, e.name, key, value); problem.code != "" {
		return reading{match: malformed, issue: problem}
	}
	e.pos = e.s.space(after)
	if e.mark, v = e.s.matchAny(e.pos, e.next...); v != complete {
		return e.s.missing(v, "a call holds text that is not a parameter", true)
	}
	return reading{match: complete}
}

// close reads the closing mark of the call. It may be missing before a mark that closes the section.
func (e *element) close(arguments string) reading {
	if e.mark == endMark {
		e.pos += len(e.f.end)
	} else if v := e.s.closes(e.pos, e.f.valueEnd); v != complete { // the last value may go on
		return e.s.missing(v, "a call has no closing mark, and there is a later one", true)
	}
	c := call{name: e.name, arguments: arguments}
	if c.arguments != "{}" {
		c.body = e.s.text[e.from:e.pos]
	}
	return reading{match: complete, end: e.pos, calls: []call{c}}
}

// inside returns a raw value without the line breaks and the CDATA that the markup adds.
// A line break at the end is removed only if there is one at the beginning: vLLM removes
// both, and llama.cpp removes the line breaks of the model's template.
func (f *form) inside(value string) string {
	const open, closing = "<![CDATA[", "]]>"
	if inner, ok := strings.CutPrefix(value, "\n"); ok && f.lines {
		value = strings.TrimSuffix(inner, "\n")
	}
	if inner, ok := strings.CutPrefix(value, open); ok && strings.HasSuffix(inner, closing) {
		return strings.TrimSuffix(inner, closing)
	}
	return value
}

// unescape undoes the escapes in an attribute.
var unescape = strings.NewReplacer("&quot;", `"`, "&lt;", "<", "&gt;", ">", "&amp;", "&")

// attribute returns the name in the head of an element, which may have quotes. kind is the
// type in its other attributes, "/" for an element without content, or "".
func attribute(head string) (name, kind string) {
	head = strings.TrimSpace(head)
	if head == "" || head[0] != '"' && head[0] != '\'' {
		return strings.Trim(head, ` "'`), ""
	}
	name, rest, _ := strings.Cut(head[1:], head[:1])
	rest = strings.TrimSpace(rest)
	key, value, _ := strings.Cut(rest, "=")
	switch value = strings.Trim(value, `"`); {
	case rest == "/":
		kind = "/"
	case key == "string" && value == "true":
		kind = "string"
	case key == "string" || key == "type":
		kind = value
	}
	return unescape.Replace(name), kind
}

// qwenLoose accepts a value without its closing mark, where a new line starts
// with the next declared parameter or with the end of the call.
func qwenLoose(f *form, s *source, name string, from int) func(at int) match {
	return func(at int) match {
		if at > from && s.text[at-1] != '\n' {
			return none
		}
		n, v := s.matchAny(at, f.param, f.end)
		switch {
		case v != complete:
			return v
		case n == 0:
			key, _, v := s.findStop(at+len(f.param), f.keyEnd)
			if v == complete && !s.tools.declares(name, key) {
				return none
			}
			return v
		}
		after := s.space(at + len(f.end))
		if after == len(s.text) {
			return partial
		}
		if v := s.matchLiteral(after, f.closes[0]); v != complete {
			return v
		}
		return s.closes(at, f.valueEnd)
	}
}

// glmLoose accepts a last value without its closing mark, where the call ends
// and the text or another call of an offered tool follows.
func glmLoose(f *form, s *source, _ string, _ int) func(at int) match {
	return func(at int) match {
		if v := s.matchLiteral(at, f.end); v != complete {
			return v
		}
		after := s.space(at + len(f.end))
		if after == len(s.text) {
			return s.closes(at, f.valueEnd)
		}
		if v := s.matchLiteral(after, f.call); v != complete {
			return v
		}
		from := after + len(f.call)
		i := s.identifier(from)
		_, v := s.matchAny(s.space(i), f.param, f.end)
		if _, ok := s.tools.find(s.text[from:i]); v == complete && !ok {
			return none
		}
		if v != complete {
			return v
		}
		return s.closes(at, f.valueEnd)
	}
}

// stepItem reads a call between tokens, with its type in front of it.
func stepItem(f *form, s *source, i int) reading {
	const open, closing = "<｜tool_call_begin｜>", "<｜tool_call_end｜>"
	for _, mark := range []string{open, "function", "<｜tool_sep｜>"} {
		if v := s.matchLiteral(i, mark); v != complete {
			return reading{match: v}
		}
		i = s.space(i + len(mark))
	}
	r := elementItem(f, s, i)
	if r.match == complete {
		v := s.matchLiteral(s.space(r.end), closing)
		if v != complete {
			return s.missing(v, "text follows the parameters", true)
		}
		r.end = s.space(r.end) + len(closing)
	}
	return r
}

// minimaxToken precedes each tag of MiniMax M3.
const minimaxToken = "]<]minimax[>["

// minimaxItem reads a call of MiniMax M3. A tag has the name of the parameter, and
// values nest: objects have tags for members, and lists have item for each element.
func minimaxItem(_ *form, s *source, i int) reading {
	const open = minimaxToken + `<invoke name="`
	if v := s.matchLiteral(i, open); v != complete {
		return reading{match: v}
	}
	written, body, v := s.findStop(i+len(open), `">`)
	if v != complete {
		return s.missing(v, "a call has no name", false)
	}
	name, ok := s.tools.find(written)
	if !ok {
		return reading{match: malformed, issue: unknown(written)}
	}
	const closing = minimaxToken + "</invoke>"
	n := strings.Index(s.text[body:], closing)
	if n < 0 {
		return waiting(true)
	}
	end := body + n + len(closing)
	arguments := "{}"
	if inner := s.text[body : body+n]; !blank(inner) {
		arguments, ok = s.tools.nested(name, "", inner, 0)
	}
	doc, _ := rawjson.Parse(arguments, anySize)
	if !ok || doc.Root().Kind() != rawjson.Object {
		return malformedCall("unreadable", "the parameters cannot be read")
	}
	var declared object
	for m := range doc.Root().Each() {
		if problem := s.tools.add(&declared, name, m.Key(), m.Raw()); problem.code != "" {
			return reading{match: malformed, issue: problem}
		}
	}
	return reading{match: complete, end: end, calls: []call{{name: name, arguments: arguments, body: s.text[i:end]}}}
}

// nested returns the value between two tags of MiniMax M3 as JSON: an object or a list
// if it has tags, else a value of the type in the tool's schema.
func (t *tools) nested(name, pointer, text string, depth int) (string, bool) {
	const open, closing = minimaxToken + "<", minimaxToken + "</"
	if !strings.HasPrefix(strings.TrimLeft(text, white), open) || depth == maxDepth {
		return t.argument(name, pointer, text), !strings.Contains(text, minimaxToken)
	}
	var o object
	var list []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, white) {
		tag, rest, ok := strings.Cut(strings.TrimPrefix(text, open), ">")
		inner, rest, closed := strings.Cut(rest, closing+tag+">")
		if !strings.HasPrefix(text, open) || !ok || !closed || tag == "" || strings.Contains(inner, open+tag+">") {
			return "", false // or a tag in a tag of the same name
		}
		value, ok := t.nested(name, pointer+"/"+rawjson.Escape(tag), inner, depth+1)
		if tag == "item" && t.wants(name, pointer).Has(view.Array) {
			value, ok = t.nested(name, pointer+"/0", inner, depth+1)
			list = append(list, value)
		} else if !o.add(tag, value) {
			return "", false
		}
		if !ok || len(list) > 0 && o.keys != nil {
			return "", false
		}
		text = rest
	}
	if list != nil {
		return "[" + strings.Join(list, ", ") + "]", true
	}
	return o.text(), true
}
