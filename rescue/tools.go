package rescue

import (
	"slices"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// tools are the function tools that a request offers. They serve one step, on
// one goroutine at a time.
type tools struct {
	// wantsJSON reports whether the request asks for an answer in JSON.
	wantsJSON func() bool
	model     string // the name of the model, in small letters
	names     []string
	byName    map[string]middleware.Tool
	matcher   *mend.Names
	views     map[string]*view.View
}

// newTools reads the tool choice too: a forced tool is the only one offered, and a list of
// allowed tools limits what is.
func newTools(req *middleware.Request) *tools {
	t := &tools{model: strings.ToLower(req.Model), wantsJSON: sync.OnceValue(func() bool { return wantsJSON(req) })}
	choice := req.ToolChoice
	for _, tool := range req.Tools {
		offered := choice.Name == "" && req.Allows(tool) || choice.Name == tool.Name
		if tool.Kind != middleware.KindFunction || tool.Name == "" || !offered {
			continue
		}
		if t.byName == nil {
			t.byName = make(map[string]middleware.Tool, len(req.Tools))
		}
		t.names = append(t.names, tool.Name)
		t.byName[tool.Name] = tool
	}
	return t
}

// jsonModes are the places in which the formats ask for an answer in JSON.
var jsonModes = []string{"/response_format/type", "/text/format/type", "/generationConfig/responseMimeType", "/format", "/output_format/type", "/output_config/format/type"}

// wantsJSON reports whether a request asks for an answer in JSON.
func wantsJSON(req *middleware.Request) bool {
	bodies := []string{string(req.Params)}
	if req.Native != nil {
		bodies = append(bodies, req.Native.Raw)
	}
	return slices.ContainsFunc(bodies, func(body string) bool {
		doc, err := rawjson.Parse(body, anySize)
		return err == nil && slices.ContainsFunc(jsonModes, func(place string) bool {
			v := doc.Root().At(place)
			return v.Kind() == rawjson.Object || strings.Contains(v.Str(), "json")
		})
	})
}

// find returns the offered tool that a name in a text means.
func (t *tools) find(name string) (string, bool) {
	if _, ok := t.byName[name]; ok {
		return name, true
	}
	if name == "" || len(name) > maxName {
		return "", false
	}
	if t.matcher == nil {
		t.matcher = mend.NewNames(t.names)
	}
	return t.matcher.Match(name)
}

// schema returns the schema of a tool, or nil if it has none that can be read.
func (t *tools) schema(name string) *view.View {
	v, known := t.views[name]
	if !known {
		v, _ = view.Read(t.byName[name].Parameters) // a nil View declares nothing
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

// wants returns what the schema of a tool expects at a pointer.
func (t *tools) wants(name, pointer string) view.Kinds {
	if v := t.schema(name); v != nil {
		return v.At(pointer).Wants()
	}
	return view.Any
}

// argument returns a value that the model wrote without quotes, as JSON text. The type
// in the tool's schema decides: a value is a string if it must be one, or if it may be
// one and is JSON of no other type that is allowed, as in llama.cpp. If the schema has
// no type, JSON is used unchanged, except for a JSON string, which is quoted.
func (t *tools) argument(name, pointer, raw string) string {
	kinds := t.wants(name, pointer)
	text := strings.TrimSpace(raw)
	switch {
	case kinds == view.String:
		return rawjson.Quote(raw)
	case kinds != view.Any && kinds.Has(view.String):
		if !isOtherKind(text, kinds) {
			return rawjson.Quote(raw)
		}
		return text
	case kinds.Has(view.Bool) && (text == "True" || text == "False"):
		return strings.ToLower(text)
	case kinds.Has(view.Null) && text == "None":
		return "null"
	}
	if json, ok := mend.JSON(text); ok && kinds != view.Any {
		text = json
	}
	doc, err := rawjson.Parse(text, anySize)
	if err != nil || kinds == view.Any && doc.Root().Kind() == rawjson.String {
		return rawjson.Quote(raw)
	}
	return text
}

// isOtherKind reports whether text is JSON of one of the kinds and not a JSON string. A
// number with a fraction or an exponent needs view.Number.
func isOtherKind(text string, kinds view.Kinds) bool {
	doc, _ := rawjson.Parse(text, anySize)
	kind := doc.Root().Kind()
	fraction := kind == rawjson.Number && strings.ContainsAny(text, ".eE") && !kinds.Has(view.Number)
	return kind != rawjson.String && kinds.Has(view.KindsOf(kind)) && !fraction
}

// typed is argument for a value whose type may be in the markup. ok is false if the value does
// not have that type.
func (t *tools) typed(name, key, raw, kind string) (value string, ok bool) {
	switch kind {
	case "":
		return t.argument(name, "/"+rawjson.Escape(key), raw), true
	case "string":
		return rawjson.Quote(raw), true
	}
	text := strings.TrimSpace(raw)
	if json, ok := mend.JSON(text); ok {
		text = json
	}
	_, err := rawjson.Parse(text, anySize)
	return text, err == nil
}

// add adds an argument that the model wrote without quotes. An argument that the tool does not
// declare, or that occurs twice, is an issue: it may be a part of another value that holds
// markup. A tool that declares nothing accepts every argument.
func (t *tools) add(o *object, name, key, value string) issue {
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
	doc, _ := rawjson.Parse(c.arguments, anySize)
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

// mentioned reports whether incomplete JSON names an offered tool.
func (t *tools) mentioned(text string) bool {
	return slices.ContainsFunc(t.names, func(name string) bool {
		return strings.Contains(text, rawjson.Quote(name)) || strings.Contains(text, "'"+name+"'")
	})
}
