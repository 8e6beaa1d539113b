package gemini

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const (
	listKey   = "functionDeclarations"
	schemaKey = "parametersJsonSchema" // of JSON Schema
	ownKey    = "parameters"           // of a schema in the provider's own form
	computer  = "computerUse"          // the client runs what it declares
)

// tool is the handle behind a tool: a declaration, or a member of an element
// of tools, such as googleSearch.
type tool struct {
	native middleware.Native
	of     *request // nil: none
	v      rawjson.Value
	at     int // of its element
	was    middleware.Tool
}

// readTools reads the tools: those that the server runs first.
func (h *request) readTools(root rawjson.Value) error {
	list, _, err := getList(root, "tools")
	if err != nil {
		return err
	}
	var functions []middleware.Tool
	for i, element := range list {
		for m := range element.Each() {
			switch {
			case isName(m.Key(), listKey):
			case m.Kind() == rawjson.Null:
			default:
				h.was.Tools = append(h.was.Tools, newHosted(m, h, i))
			}
		}
		declared, _, err := getList(element, listKey)
		if err != nil {
			return err
		}
		for _, v := range declared {
			t, err := newFunction(v, h, i)
			if err != nil {
				return err
			}
			functions = append(functions, t)
		}
	}
	h.was.Tools = append(h.was.Tools, functions...)
	return nil
}

func newHosted(m rawjson.Value, of *request, at int) middleware.Tool {
	t := &tool{of: of, v: m, at: at, was: middleware.Tool{Name: m.Key(), Kind: middleware.KindHosted}}
	if isName(m.Key(), computer) {
		t.was.Kind = middleware.KindBuiltin
	}
	t.native = middleware.Native{Dialect: dialect, Raw: codec.Object(codec.Member{Key: m.Key(), Raw: m.Raw()}), Ref: t}
	t.was.Native = &t.native
	return t.was
}

func newFunction(v rawjson.Value, of *request, at int) (middleware.Tool, error) {
	t := &tool{of: of, v: v, at: at}
	t.native = middleware.Native{Dialect: dialect, Raw: v.Raw(), Ref: t}
	t.was.Native = &t.native
	var err error
	if t.was.Name, err = getText(v, "name"); err != nil {
		return t.was, err
	}
	if t.was.Description, err = getText(v, "description"); err != nil {
		return t.was, err
	}
	if schema := get(v, schemaKey); schema.Exists() {
		t.was.Parameters = []byte(schema.Raw())
		return t.was, nil
	}
	own, err := getKind(v, ownKey, rawjson.Object)
	if err != nil || !own.Exists() {
		return t.was, err
	}
	text, err := jsonSchema(own)
	t.was.Parameters = []byte(text)
	return t.was, err
}

// readTool reads a tool again that was stored.
func readTool(raw string) (*tool, error) {
	v, err := codec.ParseObject(raw)
	if err != nil {
		return nil, codec.Unencodablef("a Native that is no tool")
	}
	if get(v, "name").Kind() != rawjson.String {
		for m := range v.Each() {
			return newHosted(m, nil, anew).Native.Ref.(*tool), nil
		}
	}
	t, err := newFunction(v, nil, anew)
	if err != nil {
		return nil, codec.Unencodablef("a Native that is no tool")
	}
	return t.Native.Ref.(*tool), nil
}

// builtinsOf returns which calls are to a tool that declares its functions
// itself; nil if there is no such tool.
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
