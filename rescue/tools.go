package rescue

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/repair"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// tools are the function tools that a request offers. They serve one step, on
// one goroutine at a time.
type tools struct {
	names  []string
	byName map[string]middleware.Tool
	meant  *repair.Names
	views  map[string]*view.View
}

// newTools reads the tool choice too: a forced tool is the only one offered.
func newTools(req *middleware.Request) *tools {
	t := &tools{}
	for _, tool := range req.Tools {
		choice := req.ToolChoice
		forced := choice.Name == "" && choice.Mode != middleware.ToolNone || choice.Name == tool.Name
		if tool.Kind == middleware.KindFunction && forced && tool.Name != "" {
			t.names = append(t.names, tool.Name)
		}
	}
	if len(t.names) == 0 {
		return t
	}
	t.byName = make(map[string]middleware.Tool, len(t.names))
	for _, tool := range req.Tools {
		if slices.Contains(t.names, tool.Name) && tool.Kind == middleware.KindFunction {
			t.byName[tool.Name] = tool
		}
	}
	return t
}

// find returns the offered tool that a model means by a name.
func (t *tools) find(name string) (string, bool) {
	if _, ok := t.byName[name]; ok {
		return name, true
	}
	if name == "" || len(name) > maxName {
		return "", false
	}
	if t.meant == nil {
		t.meant = repair.NewNames(t.names)
	}
	return t.meant.Meant(name)
}

// schema returns what the tool declares; nil if it declares nothing that can be
// read.
func (t *tools) schema(name string) *view.View {
	v, known := t.views[name]
	if !known {
		v, _ = view.Read(t.byName[name].Parameters) // a nil View says nothing
		if t.views == nil {
			t.views = map[string]*view.View{}
		}
		t.views[name] = v
	}
	return v
}

// declares reports whether a tool declares the parameter.
func (t *tools) declares(name, parameter string) bool {
	v := t.schema(name)
	return slices.ContainsFunc(v.Root().Alternatives(), func(n *view.Node) bool { return n.Props[parameter] != nil })
}

// argument returns a value that the model wrote without quotes, as JSON text. The
// schema of the tool says what it is. Of a value whose type the schema does
// not say, JSON that is not a string is taken as it is.
func (t *tools) argument(name, parameter, raw string) string {
	kinds := view.Any
	if v := t.schema(name); v != nil {
		kinds = v.At("/" + rawjson.Escape(parameter)).Wants()
	}
	text := strings.TrimSpace(raw)
	switch {
	case text == "null" && kinds.Has(view.Null):
		return text
	case kinds != view.Any && kinds.Has(view.String):
		return rawjson.Quote(raw)
	case kinds.Has(view.Bool) && (text == "True" || text == "False"):
		return strings.ToLower(text)
	case kinds.Has(view.Null) && text == "None":
		return "null"
	}
	doc, err := rawjson.Parse(text, anySize)
	if err != nil || doc.Root().Kind() == rawjson.String && kinds == view.Any {
		return rawjson.Quote(raw)
	}
	return text
}

// raw adds an argument that the model wrote without quotes. A value may hold
// markup, so that an argument which the tool does not declare, or which occurs
// twice, may be a part of another value. A tool that declares nothing takes all.
func (t *tools) raw(o *object, name, key, value string) issue {
	v := t.schema(name)
	switch {
	case len(v.Declared(v.Root()).Names) > 0 && !v.Declares("/"+rawjson.Escape(key)):
		return issue{"ambiguous", "it has a parameter that the tool does not declare"}
	case !o.add(key, value):
		return issue{"ambiguous", "a parameter occurs twice"}
	}
	return issue{}
}

// emptyRequired returns a required parameter that is an empty string in a call, or
// "".
func (t *tools) emptyRequired(c call) string {
	doc, err := rawjson.Parse(c.arguments, anySize)
	if err != nil {
		return ""
	}
	v := t.schema(c.name)
	for _, name := range v.Declared(v.Root()).Required {
		if arg := doc.Root().Get(name); arg.Kind() == rawjson.String && arg.Str() == "" {
			return name
		}
	}
	return ""
}

// object writes arguments as a JSON object.
type object struct {
	b    strings.Builder
	keys map[string]bool
}

// add reports whether the object has no member of that name yet.
func (o *object) add(key, value string) bool {
	if o.keys[key] {
		return false
	}
	if o.keys == nil {
		o.keys = map[string]bool{}
		o.b.WriteString("{")
	} else {
		o.b.WriteString(", ")
	}
	o.keys[key] = true
	o.b.WriteString(rawjson.Quote(key) + ": " + value)
	return true
}

// text returns the object.
func (o *object) text() string {
	if o.keys == nil {
		return "{}"
	}
	return o.b.String() + "}"
}

// mentioned reports whether JSON that has not arrived in full names an offered
// tool.
func (t *tools) mentioned(text string) bool {
	return slices.ContainsFunc(t.names, func(name string) bool { return strings.Contains(text, rawjson.Quote(name)) })
}

// quotedOr returns a raw value as JSON text: a string, or the JSON that it is.
func quotedOr(raw string, isString bool) (value string, ok bool) {
	if isString {
		return rawjson.Quote(raw), true
	}
	doc, err := rawjson.Parse(raw, anySize)
	if err != nil {
		return "", false
	}
	return doc.Root().Raw(), true
}
