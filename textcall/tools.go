package textcall

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// toolset is the function tools of a request.
type toolset struct {
	declared []middleware.Tool
	callable []middleware.Tool // the offered tools; if there are none, the instructions have no tools
	only     string            // the tool that must be called
	must     bool              // a tool must be called
}

// newToolset reads the tools and the tool choice. A forced tool is the only one that is offered,
// and a list of allowed tools limits what is.
// If the provider forces a tool of another kind, no function tool is offered.
func newToolset(req *middleware.Request) toolset {
	var t toolset
	for _, tool := range req.Tools {
		if tool.Kind == middleware.KindFunction {
			t.declared = append(t.declared, tool)
		}
	}
	switch only, known := t.find(req.ToolChoice.Name); {
	case req.ToolChoice.Name != "" && known:
		t.callable, t.only, t.must = []middleware.Tool{only}, req.ToolChoice.Name, true
	case req.ToolChoice.Name != "":
	default:
		t.callable = slices.DeleteFunc(slices.Clone(t.declared), func(tool middleware.Tool) bool { return !req.Allows(tool) })
		t.must = len(t.callable) > 0 && req.ToolChoice.Mode == middleware.ToolRequired
	}
	return t
}

// find looks a tool up by its exact name.
func (t toolset) find(name string) (middleware.Tool, bool) {
	i := slices.IndexFunc(t.declared, func(d middleware.Tool) bool { return d.Name == name })
	if i < 0 {
		return middleware.Tool{}, false
	}
	return t.declared[i], true
}

// names is a line with the names of the tools that may be called. It is outside the
// form, because small models copy the lines of the form.
func (t toolset) names() string {
	all := make([]string, len(t.callable))
	for i, tool := range t.callable {
		all[i] = oneLine(tool.Name)
	}
	return "Names of the tools: " + strings.Join(all, ", ")
}

// placeholder returns the words for the name of a tool in the form: the name itself if there is
// only one tool.
func (t toolset) placeholder() string {
	if len(t.callable) == 1 {
		return oneLine(t.callable[0].Name)
	}
	return "name of the tool"
}

// described describes the tools, one after the other, and lists their names. Descriptions
// are not trusted: they cannot leave the lines of their own tool.
func (t toolset) described() string {
	var b strings.Builder
	b.WriteString("You have these tools:\n\n")
	for _, tool := range t.callable {
		b.WriteString(oneLine(tool.Name) + ":")
		if d := strings.TrimSpace(tool.Description); d != "" {
			b.WriteString(" " + indented(d))
		}
		b.WriteString("\n" + signatureOf(tool.Parameters))
	}
	b.WriteString("\n" + t.names() + "\n\n")
	return b.String()
}

// mustUse returns the demand for a tool call, after before, or "" if the model may choose.
func (t toolset) mustUse(before string) string {
	switch {
	case t.only != "":
		return before + "You must use the tool " + oneLine(t.only) + " now."
	case t.must:
		return before + "You must use a tool now."
	}
	return ""
}

// named returns the tool name that a model has written, without the quotes, brackets and
// emphasis around it, unless these are part of a declared name. For "one of [search]" it is
// search, if that is declared.
func (t toolset) named(written string) string {
	written = strings.TrimSpace(written)
	if _, ok := t.find(written); ok {
		return written
	}
	bare := strings.Trim(written, " \t*`\"'“”[]")
	for _, decorated := range []string{bare, strings.TrimRight(bare, "."), strings.Trim(bare, "_"), strings.TrimSuffix(bare, "()")} {
		if _, ok := t.find(decorated); ok {
			return decorated
		}
	}
	if before, list, ok := strings.Cut(bare, "["); ok && strings.HasSuffix(strings.ToLower(strings.TrimRight(before, " ")), "one of") {
		if only := strings.Trim(list, " \t*`\"'“”[]."); t.declares(only) {
			return only
		}
	}
	return bare
}

// declares reports whether a tool has exactly that name.
func (t toolset) declares(name string) bool {
	_, ok := t.find(name)
	return ok
}

// has reports whether a model has written the name of a tool.
func (t toolset) has(written string) bool {
	_, ok := t.find(t.named(written))
	return ok
}

// takesNothing reports whether a tool declares an object without properties, so that a call
// needs no input.
func (t toolset) takesNothing(name string) bool {
	root, ok := t.schema(name)
	return ok && root.Get("properties").Len() == 0 && !root.Get("required").Exists() &&
		(root.Get("type").Str() == "object" || root.Len() == 0)
}

// schema returns the schema of a tool, and whether it is an object. It is not cached, because a
// text needs the schema of one tool, once or twice.
func (t toolset) schema(name string) (rawjson.Value, bool) {
	tool, _ := t.find(name)
	doc, _ := rawjson.Parse(string(tool.Parameters), anySize)
	return doc.Root(), doc.Root().Kind() == rawjson.Object
}

// anySize is for texts whose size is limited elsewhere. rawjson takes linear time
// and never recurses.
var anySize = rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1}

// arguments returns the arguments for the input text of a call: {"p": text} if the tool has only
// the string property p; the text itself if the tool is not declared or has no schema; or else
// written, the text as it is in the answer.
func (t toolset) arguments(name, text, written string) string {
	if !utf8.ValidString(text) {
		return written
	}
	if doc, err := rawjson.Parse(text, anySize); err == nil && doc.Root().Kind() == rawjson.Object {
		return strings.TrimSpace(text) // arguments in a string
	}
	if p, ok := t.onlyString(name); ok {
		return "{" + rawjson.Quote(p) + ": " + rawjson.Quote(text) + "}"
	}
	if tool, ok := t.find(name); !ok || len(tool.Parameters) == 0 {
		return text
	}
	return written
}

// onlyString returns the one property of a tool that has no other, if it is a
// string.
func (t toolset) onlyString(name string) (string, bool) {
	root, ok := t.schema(name)
	properties := root.Get("properties")
	if !ok || properties.Kind() != rawjson.Object || properties.Len() != 1 {
		return "", false
	}
	p := slices.Collect(properties.Each())[0]
	ok = p.Get("type").Str() == "string"
	for r := range root.Get("required").Each() {
		ok = ok && r.Str() == p.Key()
	}
	return p.Key(), ok
}

// oneLine replaces line breaks by spaces.
func oneLine(s string) string { return strings.Join(strings.FieldsFunc(s, isBreak), " ") }

// blank reports whether s has only white space.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
