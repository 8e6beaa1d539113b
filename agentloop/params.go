package agentloop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// ParamType is the type of a Param.
type ParamType string

// The types of parameters.
const (
	StringParam  ParamType = "string"
	IntegerParam ParamType = "integer"
	NumberParam  ParamType = "number"
	BooleanParam ParamType = "boolean"
	ArrayParam   ParamType = "array"
	ObjectParam  ParamType = "object"
)

// Param is one parameter of a tool that is defined at run time.
//
// Source: LangChain for Elixir, LangChain.FunctionParam.
type Param struct {
	Name        string // required, unique among its siblings
	Type        ParamType
	Description string
	Required    bool
	Enum        []any     // of strings, integers or numbers: the only values
	Item        ParamType // of arrays: the type of the elements; "" for any, or for objects if there are Properties
	Properties  []Param   // of objects and of arrays of objects: at least one
}

// Parameters returns the JSON Schema of an object with exactly these
// properties, in order, for RawTool. The error names the parameter that is
// invalid.
func Parameters(params ...Param) (json.RawMessage, error) {
	s, err := objectSchema("", params)
	if err != nil {
		return nil, err
	}
	return rawjson.Marshal(s)
}

// paramSchema is the schema of a parameter. Its fields stand in the order in
// which people read them.
type paramSchema struct {
	Type        ParamType         `json:"type"`
	Description string            `json:"description,omitempty"`
	Enum        []json.RawMessage `json:"enum,omitempty"`
	Items       *paramSchema      `json:"items,omitempty"`

	// Of objects alone.
	Properties           json.RawMessage `json:"properties,omitempty"`
	Required             []string        `json:"required,omitzero"`
	AdditionalProperties *bool           `json:"additionalProperties,omitempty"`
}

// objectSchema returns the schema of an object with those properties; path leads to it.
func objectSchema(path string, params []Param) (*paramSchema, error) {
	s := &paramSchema{Type: ObjectParam, Required: []string{}, AdditionalProperties: new(bool)}
	properties := make([]string, len(params))
	for i, p := range params {
		switch {
		case strings.TrimSpace(p.Name) == "":
			return nil, fmt.Errorf("parameter %d of %q: a name is required", i, path)
		case slices.ContainsFunc(params[:i], func(before Param) bool { return before.Name == p.Name }):
			return nil, fmt.Errorf("parameter %q: duplicate name", path+p.Name)
		}
		schema, err := p.schema(path + p.Name)
		if err != nil {
			return nil, err
		}
		text, err := rawjson.Marshal(schema)
		if err != nil {
			return nil, err
		}
		properties[i] = rawjson.Quote(p.Name) + ":" + string(text)
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	s.Properties = json.RawMessage("{" + strings.Join(properties, ",") + "}")
	return s, nil
}

// schema returns the schema of p; path leads to it.
func (p Param) schema(path string) (*paramSchema, error) {
	if p.Type == ArrayParam && p.Item == "" && len(p.Properties) > 0 {
		p.Item = ObjectParam
	}
	enum, err := p.check()
	if err != nil {
		return nil, fmt.Errorf("parameter %q: %w", path, err)
	}
	s := &paramSchema{Type: p.Type}
	switch {
	case p.Type == ObjectParam:
		s, err = objectSchema(path+".", p.Properties)
	case p.Item == ObjectParam:
		s.Items, err = objectSchema(path+".", p.Properties)
	case p.Item != "":
		s.Items = &paramSchema{Type: p.Item}
	}
	if err != nil {
		return nil, err
	}
	s.Description, s.Enum = p.Description, enum
	return s, nil
}

// paramTypes are the known types.
var paramTypes = []ParamType{StringParam, IntegerParam, NumberParam, BooleanParam, ArrayParam, ObjectParam}

// check refuses members that do not fit together. It returns the values of the schema's enum.
func (p Param) check() ([]json.RawMessage, error) {
	ofObjects := p.Type == ObjectParam || p.Type == ArrayParam && p.Item == ObjectParam
	switch {
	case !slices.Contains(paramTypes, p.Type):
		return nil, fmt.Errorf("unknown type %q", p.Type)
	case p.Enum != nil && !slices.Contains([]ParamType{StringParam, IntegerParam, NumberParam}, p.Type):
		return nil, fmt.Errorf("only a string, an integer or a number has an enum, not %s", p.Type)
	case p.Enum != nil && len(p.Enum) == 0:
		return nil, errors.New("an enum without values allows nothing")
	case p.Item != "" && p.Type != ArrayParam:
		return nil, fmt.Errorf("only an array has an item type, not %s", p.Type)
	case p.Item != "" && !slices.Contains(paramTypes, p.Item):
		return nil, fmt.Errorf("unknown item type %q", p.Item)
	case ofObjects && len(p.Properties) == 0:
		return nil, errors.New("an object needs properties")
	case !ofObjects && len(p.Properties) > 0:
		return nil, errors.New("only an object and an array of objects have properties")
	}
	return p.enumTexts()
}

// enumTexts returns the values of Enum as JSON texts.
func (p Param) enumTexts() ([]json.RawMessage, error) {
	var enum []json.RawMessage
	for _, v := range p.Enum {
		text, err := rawjson.Marshal(v)
		switch {
		case err != nil:
			return nil, fmt.Errorf("enum value %v: %w", v, err)
		case !p.Type.holds(string(text)):
			return nil, fmt.Errorf("enum value %s is not %s", text, p.Type)
		case slices.ContainsFunc(enum, func(before json.RawMessage) bool { return bytes.Equal(before, text) }):
			return nil, fmt.Errorf("duplicate enum value %s", text)
		}
		enum = append(enum, text)
	}
	return enum, nil
}

// holds reports whether a JSON text is a value of the scalar type t.
func (t ParamType) holds(text string) bool {
	doc, err := rawjson.Parse(text, rawjson.Limits{})
	if err != nil {
		return false
	}
	_, whole := doc.Root().Integer()
	kind := doc.Root().Kind()
	return t == StringParam && kind == rawjson.String || t == NumberParam && kind == rawjson.Number || t == IntegerParam && whole
}
