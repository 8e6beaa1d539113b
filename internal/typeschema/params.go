package typeschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ParamType is the type of a [Param].
type ParamType string

// The types of parameters.
const (
	String   ParamType = "string"
	Integer  ParamType = "integer"
	Number   ParamType = "number"
	Boolean  ParamType = "boolean"
	Array    ParamType = "array"
	ObjectOf ParamType = "object"
)

// Param is one parameter of a tool, for tools that are put together at run
// time.
//
// Source: LangChain for Elixir, LangChain.FunctionParam.
type Param struct {
	Name        string // required, unique among its siblings
	Type        ParamType
	Description string
	Required    bool
	Enum        []any     // of strings, integers or numbers: the only values
	Item        ParamType // of arrays: the type of the elements; "" for any
	Properties  []Param   // of objects and of arrays of objects: at least one
}

// Object returns the schema of an object with those properties, in order, and
// no others; for none, of an empty object. The error names the parameter that
// makes no sense.
func Object(params ...Param) (json.RawMessage, error) {
	o, err := objectOf("", params)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(render(o)), nil
}

// objectOf returns the schema of an object; path leads to it.
func objectOf(path string, params []Param) (*ordered, error) {
	properties, required := newOrdered(), []any{}
	for i, p := range params {
		if strings.TrimSpace(p.Name) == "" {
			return nil, fmt.Errorf("parameter %d of %q: a name is required", i, path)
		}
		if properties.has(p.Name) {
			return nil, fmt.Errorf("parameter %q: the name stands twice", path+p.Name)
		}
		s, err := p.schema(path)
		if err != nil {
			return nil, err
		}
		properties.set(p.Name, s)
		if p.Required {
			required = append(required, p.Name)
		}
	}
	o := newOrdered()
	o.set("type", "object")
	o.set("properties", properties)
	o.set("required", required)
	o.set("additionalProperties", false)
	return o, nil
}

// schema returns the schema of p, whose siblings and parents path leads to.
func (p Param) schema(path string) (*ordered, error) {
	path += p.Name
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("parameter %q: %w", path, err)
	}
	o := newOrdered()
	o.set("type", string(p.Type))
	var err error
	switch {
	case p.Type == ObjectOf:
		o, err = objectOf(path+".", p.Properties)
	case p.Item == ObjectOf:
		var items *ordered
		items, err = objectOf(path+".", p.Properties)
		o.set("items", items)
	case p.Item != "":
		items := newOrdered()
		items.set("type", string(p.Item))
		o.set("items", items)
	}
	if err != nil {
		return nil, err
	}
	if p.Description != "" {
		o.set("description", p.Description)
	}
	if p.Enum != nil {
		values, err := p.values()
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", path, err)
		}
		o.set("enum", values)
	}
	return tidy(o).(*ordered), nil
}

// valid reports whether t is one of the six types.
func valid(t ParamType) bool {
	switch t {
	case String, Integer, Number, Boolean, Array, ObjectOf:
		return true
	}
	return false
}

// check refuses what does not go together.
func (p Param) check() error {
	scalar := p.Type == String || p.Type == Integer || p.Type == Number
	ofObjects := p.Type == ObjectOf || p.Type == Array && p.Item == ObjectOf
	switch {
	case !valid(p.Type):
		return fmt.Errorf("unknown type %q", p.Type)
	case p.Enum != nil && !scalar:
		return fmt.Errorf("only a string, an integer or a number has an enum, not %s", p.Type)
	case p.Enum != nil && len(p.Enum) == 0:
		return errors.New("an enum without values allows nothing")
	case p.Item != "" && p.Type != Array:
		return fmt.Errorf("only an array has an item type, not %s", p.Type)
	case p.Item != "" && !valid(p.Item):
		return fmt.Errorf("unknown item type %q", p.Item)
	case ofObjects && len(p.Properties) == 0:
		return errors.New("an object needs properties")
	case !ofObjects && len(p.Properties) > 0:
		return errors.New("only an object and an array of objects have properties")
	}
	return nil
}

// values returns the enum as it stands in the schema.
func (p Param) values() ([]any, error) {
	var values []any
	for _, v := range p.Enum {
		value, err := p.value(v)
		if err != nil {
			return nil, err
		}
		if slices.Contains(values, value) {
			return nil, fmt.Errorf("enum value %v stands twice", v)
		}
		values = append(values, value)
	}
	return values, nil
}

// value returns one value of the enum, as it stands in the schema.
func (p Param) value(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("enum value %v: %w", v, err)
	}
	parsed, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("enum value %v: %w", v, err)
	}
	ok := false
	switch parsed := parsed.(type) {
	case string:
		ok = p.Type == String
	case json.Number:
		r, err := decimal(parsed.String())
		ok = err == nil && (p.Type == Number || p.Type == Integer && r.IsInt())
	}
	if !ok {
		return nil, fmt.Errorf("enum value %s is not %s", b, p.Type)
	}
	return parsed, nil
}

// Names returns the properties that a schema declares, in its order, and those
// of them and of others that it requires; none for a schema that says nothing
// or cannot be read.
func Names(schema json.RawMessage) (declared, required []string) {
	parsed, err := parse(schema)
	if err != nil {
		return nil, nil
	}
	root, _ := parsed.(*ordered)
	if properties := root.object("properties"); properties != nil {
		declared = append(declared, properties.keys...)
	}
	for _, name := range root.list("required") {
		if s, ok := name.(string); ok {
			required = append(required, s)
		}
	}
	return declared, required
}
