package gemini

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

const (
	listKey   = "functionDeclarations"
	schemaKey = "parametersJsonSchema" // of JSON Schema
	ownKey    = "parameters"           // of a schema in the provider's own form
)

// readTools reads the tools. An element of the list has functions under one key,
// and a tool of the provider, such as googleSearch, under any other:
//
//	"tools": [{"functionDeclarations": [{"name": "wind"}, {"name": "tide"}]}, {"googleSearch": {}}]
//
// Tools of the provider come first in the neutral list, in the order of their
// elements. The functions of all elements follow, so that a tool that a middleware
// appends follows a function.
func (h *request) readTools(root rawjson.Value, in *codec.Input) error {
	list, err := on.List(root, "tools", rawjson.Object)
	if err != nil {
		return err
	}
	var functions []middleware.Tool
	var functionsAt []int
	for i, element := range list {
		for m := range element.Each() {
			if !isName(m.Key(), listKey) && m.Kind() != rawjson.Null {
				h.is.Tools, h.toolsAt = append(h.is.Tools, readHosted(m)), append(h.toolsAt, i)
			}
		}
		declared, err := lens.ReadList(on, element, listKey, readTool)
		if err != nil {
			return err
		}
		declared = append(in.Tools(on.Get(element, listKey)), declared...)
		functions, functionsAt = append(functions, declared...), append(functionsAt, slices.Repeat([]int{i}, len(declared))...)
	}
	h.is.Tools, h.toolsAt = append(h.is.Tools, functions...), append(h.toolsAt, functionsAt...)
	return nil
}

// readHosted reads a tool of the provider, which is one member of an element. Its
// Native is an object of its own with that member. The client runs what computerUse
// declares, so that its calls are built-in ones.
func readHosted(m rawjson.Value) middleware.Tool {
	t := middleware.Tool{Name: m.Key(), Kind: middleware.KindHosted, Native: on.Native(codec.Object(lens.Raw(m.Key(), m.Raw())))}
	if isName(m.Key(), "computerUse") {
		t.Kind = middleware.KindBuiltin
	}
	if isName(m.Key(), "mcpServers") {
		t.Loads = middleware.LoadsToolset
	}
	return t
}

// readTool reads a function. Its schema has one of two keys. A schema in the provider's own
// form is translated; the text in the request stays as it is.
func readTool(v rawjson.Value) (t middleware.Tool, err error) {
	in := on.Reader()
	t.Name, t.Description, t.Native = in.Text(v, "name"), in.Text(v, "description"), on.Native(v.Raw())
	if schema := on.Get(v, schemaKey); schema.Exists() {
		t.Parameters = []byte(schema.Raw())
		return t, in.Err
	}
	own := in.Kind(v, ownKey, rawjson.Object)
	if in.Err != nil || !own.Exists() {
		return t, in.Err
	}
	text, err := jsonSchema(own)
	t.Parameters = []byte(text)
	return t, err
}

// builtinsOf returns a function that reports whether a call is one to a tool
// that declares its functions itself; nil if there is no such tool. computerUse is
// one: its calls, such as click_at, have names that no tool of the request has.
func builtinsOf(tools []middleware.Tool) func(name string) bool {
	if !slices.ContainsFunc(tools, func(t middleware.Tool) bool { return t.Kind == middleware.KindBuiltin }) {
		return nil
	}
	declared := map[string]bool{}
	for _, t := range tools {
		declared[t.Name] = t.Kind == middleware.KindFunction
	}
	return func(name string) bool { return !declared[name] }
}

// element is an element of tools, and what is to be in it. It keeps its other text:
// an edit takes out what is not in it any more, and sets the list of functions.
type element struct {
	v         rawjson.Value
	functions []string
	hosted    map[string]bool // the keys that stay
}

// tools returns the elements of tools of a request that is root now. A function that is new
// goes to the list of the function before it: a server may take one list only. A function with
// no list to go to, and a tool of the provider from elsewhere, get an element of their own.
func (h *request) tools(root rawjson.Value, now []middleware.Tool) (out []string, err error) {
	list, err := on.List(root, "tools", rawjson.Object)
	if err != nil {
		return nil, err
	}
	texts, at, err := on.Tools(h.is.Tools, now, toolText)
	if err != nil {
		return nil, err
	}
	elements := make([]element, len(list))
	for i, v := range list {
		elements[i] = element{v: v, hosted: map[string]bool{}}
	}
	// last is the element of the function before. For the tools in lead, functions, and in hosted, of
	// the provider, new elements are made.
	last := slices.IndexFunc(list, func(v rawjson.Value) bool { return on.Get(v, listKey).Exists() })
	var lead, hosted []string
	for i, text := range texts {
		home := -1
		if at[i] >= 0 {
			home = h.toolsAt[at[i]]
		}
		switch function := now[i].Kind == middleware.KindFunction; {
		case !function && home >= 0:
			elements[home].hosted[now[i].Name] = true
		case !function:
			hosted = append(hosted, text)
		case max(last, home) < 0:
			lead = append(lead, text)
		default:
			last = max(last, home)
			elements[last].functions = append(elements[last].functions, text)
		}
	}
	if out, err = lens.Convert(elements, element.text); err != nil {
		return nil, err
	}
	out = append(slices.DeleteFunc(out, func(text string) bool { return text == "" }), hosted...)
	if len(lead) > 0 {
		out = append(out, codec.Object(lens.List(listKey, lead)))
	}
	return out, nil
}

// text returns the element with the functions and the tools of the provider that
// it is to have, "" if nothing is left in it: an element without a tool is refused.
func (e element) text() (string, error) {
	if len(e.functions) == 0 && len(e.hosted) == 0 {
		return "", nil
	}
	edits := e.v.Cut(func(m rawjson.Value) bool {
		if isName(m.Key(), listKey) {
			return len(e.functions) == 0
		}
		return m.Kind() != rawjson.Null && !e.hosted[m.Key()]
	})
	if len(e.functions) > 0 {
		list, err := on.Elements(e.v, listKey, e.functions)
		if err != nil {
			return "", err
		}
		edits = append(edits, list...)
	}
	return codec.Within(e.v, edits)
}

// toolText writes a tool: a function, or one of the provider that did not change. A
// fresh function may be strict, which goes unsaid: the format has no word for it.
func toolText(t middleware.Tool) (string, error) {
	v, err := on.Value(t.Native)
	if err != nil {
		return "", err
	}
	var was middleware.Tool
	if t.Kind != middleware.KindFunction {
		for m := range v.Each() {
			was = readHosted(m)
		}
		if !v.Exists() || !codec.SameTool(t, was) {
			return "", codec.Unencodablef("a tool of kind %q", t.Kind)
		}
		return v.Raw(), nil
	}
	if v.Exists() {
		switch was, err = readTool(v); {
		case err != nil:
			return "", codec.Unencodablef("the Native of a tool is none: %v", err)
		case was.Name == "" && was.Description == "" && was.Parameters == nil:
			return "", codec.Unencodablef("the Native of a function declares none")
		case t.Strict:
			return "", codec.Unencodablef("a tool cannot be strict")
		}
	}
	members := toolMembers(t)
	if string(t.Parameters) != string(was.Parameters) {
		if _, err := codec.Parse(string(t.Parameters)); err != nil && len(t.Parameters) > 0 {
			return "", codec.Unencodablef("parameters that are not JSON")
		}
		members = append(members, lens.None(ownKey))
	}
	return on.Write(v, toolMembers(was), members)
}

// toolMembers projects a function. A schema in the provider's own form gives way
// to one of JSON Schema, which the server takes as it is.
func toolMembers(t middleware.Tool) []lens.Member {
	return []lens.Member{
		lens.Text("name", t.Name),
		lens.Word("description", t.Description),
		lens.Raw(schemaKey, string(t.Parameters)),
	}
}

// typeNames are the types of the provider's own schemas by their number.
var typeNames = map[string]string{"1": "string", "2": "number", "3": "integer", "4": "boolean", "5": "array", "6": "object", "7": "null"}

// holds is the kind of value of a keyword that is translated. The zero value belongs to a
// keyword that stays as it is, such as description.
type holds uint8

const (
	aSchema  holds = iota + 1
	schemas        // in a list
	named          // schemas by name
	count          // a number, which the provider writes as a string: it is an int64
	values         // of an enum
	typeWord       // a type, in capital letters or by number
)

// keywords are the keywords of the provider's own schemas, in camelCase, and some more
// that the provider accepts.
var keywords = map[string]holds{
	"items": aSchema, "additionalProperties": aSchema, "not": aSchema,
	"anyOf": schemas, "oneOf": schemas, "allOf": schemas, "prefixItems": schemas,
	"properties": named, "patternProperties": named, "defs": named, "$defs": named, "definitions": named,
	"minItems": count, "maxItems": count, "minLength": count, "maxLength": count, "minProperties": count, "maxProperties": count,
	"enum": values, "type": typeWord,
}

// jsonSchema returns a schema in the provider's own form, a subset of OpenAPI
// 3.0, as JSON Schema: types in small letters, nullable as a type, counts as
// numbers, names in camelCase. The rest stays as it is written.
// Source: https://ai.google.dev/api/caching#Schema.
func jsonSchema(v rawjson.Value) (string, error) {
	var edits []rawjson.Edit
	for todo := []rawjson.Value{v}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch s.Kind() {
		case rawjson.Object:
			e, below := translate(s)
			edits, todo = append(edits, e...), append(todo, below...)
		case rawjson.Array: // items in the old form
			todo = slices.AppendSeq(todo, s.Each())
		}
	}
	return codec.Within(v, edits)
}

// translate returns the edits for one schema, and the schemas below it. For example,
//
//	{"type": "STRING", "nullable": true, "max_length": "10"}
//
// becomes {"type": ["string","null"], "maxLength": 10}.
func translate(s rawjson.Value) (edits []rawjson.Edit, below []rawjson.Value) {
	name := typeName(on.Get(s, "type"))
	nullable := on.Get(s, "nullable").Raw() == "true"
	for m := range s.Each() {
		key := camel(m.Key())
		switch keywords[key] {
		case aSchema:
			below = append(below, m)
		case schemas:
			below = slices.AppendSeq(below, m.Each())
			if key == "anyOf" && nullable && m.Kind() == rawjson.Array {
				edits = append(edits, codec.Append(m, `{"type":"null"}`))
			}
		case named:
			if m.Kind() == rawjson.Object {
				below = slices.AppendSeq(below, m.Each())
			}
		case count:
			if isNumber(m.Str()) {
				edits = append(edits, codec.Replace(m, m.Str()))
			}
		case values:
			edits = append(edits, enumEdits(m, name, nullable)...)
		case typeWord:
			if name != "" {
				edits = append(edits, codec.Replace(m, typeText(name, nullable)))
			}
		default:
			continue
		}
		if key != m.Key() {
			start, end := m.KeySpan()
			edits = append(edits, rawjson.Edit{Start: start, End: end, Text: rawjson.Quote(key)})
		}
	}
	return append(edits, s.Cut(func(m rawjson.Value) bool {
		return m.Key() == "nullable" || isName(m.Key(), "propertyOrdering") || m.Key() == "type" && isUnspecified(m)
	})...), below
}

// camel returns a key in camelCase, if it is in snake_case.
func camel(key string) string {
	before, after, ok := strings.Cut(key, "_")
	if !ok || after == "" || after[0] < 'a' {
		return key
	}
	return before + strings.ToUpper(after[:1]) + camel(after[1:])
}

// typeName returns the type's JSON Schema name, "" for anything but one word
// or number.
func typeName(v rawjson.Value) string {
	if v.Kind() == rawjson.Number {
		return typeNames[v.Raw()]
	}
	if isUnspecified(v) {
		return ""
	}
	return strings.ToLower(v.Str())
}

// isUnspecified reports whether a type is the first value of its enum, which means no type.
func isUnspecified(v rawjson.Value) bool { return v.Str() == "TYPE_UNSPECIFIED" || v.Raw() == "0" }

// typeText returns the type of a schema, which may allow null as well.
func typeText(name string, nullable bool) string {
	if nullable && name != "null" {
		return codec.Array([]string{rawjson.Quote(name), `"null"`})
	}
	return rawjson.Quote(name)
}

// enumEdits adds null where it is allowed, and makes numbers of the strings
// that the provider writes for those.
func enumEdits(m rawjson.Value, name string, nullable bool) []rawjson.Edit {
	if m.Kind() != rawjson.Array {
		return nil
	}
	var edits []rawjson.Edit
	null := false
	for e := range m.Each() {
		null = null || e.Kind() == rawjson.Null
		if (name == "integer" || name == "number") && e.Kind() == rawjson.String && isNumber(e.Str()) {
			edits = append(edits, codec.Replace(e, e.Str()))
		}
	}
	if nullable && !null {
		edits = append(edits, codec.Append(m, "null"))
	}
	return edits
}

// isNumber reports whether s is a JSON number, and nothing around it.
func isNumber(s string) bool {
	doc, err := codec.Parse(s)
	return err == nil && doc.Root().Kind() == rawjson.Number && doc.Root().Raw() == s
}
