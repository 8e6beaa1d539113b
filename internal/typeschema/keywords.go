package typeschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"

	"github.com/invopop/jsonschema"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// setter writes the value of a keyword to the schema of a place that n plans.
// Its error names the value that it wants.
type setter func(s *jsonschema.Schema, n *node, value string) error

// keywords are those that a tag may hold, with the JSON types of the values
// that they apply to. Other keywords of JSON Schema would make the schema
// disagree with the Go type.
var keywords = map[string]struct {
	types []string // nil: all, also a value without a type
	set   setter
}{
	// of every value
	"title": {nil, func(s *jsonschema.Schema, _ *node, v string) error { s.Title = v; return nil }},

	// values; a tag has the keyword once for each of them
	"enum":    {[]string{"string", "integer", "number"}, setEnum},
	"example": {[]string{"string", "integer", "number"}, setExample},
	"default": {[]string{"string", "integer", "number", "boolean", "array"}, setDefault},

	// of strings
	"format":    {[]string{"string"}, setFormat},
	"pattern":   {[]string{"string"}, setPattern},
	"minLength": {[]string{"string"}, count(func(s *jsonschema.Schema) **uint64 { return &s.MinLength })},
	"maxLength": {[]string{"string"}, count(func(s *jsonschema.Schema) **uint64 { return &s.MaxLength })},
	"readOnly":  {[]string{"string"}, flag(func(s *jsonschema.Schema) *bool { return &s.ReadOnly })},
	"writeOnly": {[]string{"string"}, flag(func(s *jsonschema.Schema) *bool { return &s.WriteOnly })},

	// of arrays; the other keywords in the tag of an array apply to its elements
	"minItems":    {[]string{"array"}, count(func(s *jsonschema.Schema) **uint64 { return &s.MinItems })},
	"maxItems":    {[]string{"array"}, count(func(s *jsonschema.Schema) **uint64 { return &s.MaxItems })},
	"uniqueItems": {[]string{"array"}, flag(func(s *jsonschema.Schema) *bool { return &s.UniqueItems })},

	// of numbers
	"minimum":          {[]string{"integer", "number"}, bound(-1, func(s *jsonschema.Schema) *json.Number { return &s.Minimum })},
	"exclusiveMinimum": {[]string{"integer", "number"}, bound(-1, func(s *jsonschema.Schema) *json.Number { return &s.ExclusiveMinimum })},
	"maximum":          {[]string{"integer", "number"}, bound(1, func(s *jsonschema.Schema) *json.Number { return &s.Maximum })},
	"exclusiveMaximum": {[]string{"integer", "number"}, bound(1, func(s *jsonschema.Schema) *json.Number { return &s.ExclusiveMaximum })},
	"multipleOf":       {[]string{"integer", "number"}, setMultipleOf},
}

// applies reports whether a keyword applies to values of a JSON type.
func applies(keyword, typ string) bool {
	types := keywords[keyword].types
	return types == nil || slices.Contains(types, typ)
}

// apply writes the keywords in the tag of f to s, the schema of its type. A
// keyword that an array does not have is one of its elements.
func (f field) apply(s *jsonschema.Schema) error {
	for _, k := range f.tag.keywords {
		if f.kind == foreign && k.name != "title" {
			return fmt.Errorf("keyword %q does not apply to a type with a schema of its own", k.name)
		}
		target, n := s, f.node
		if !applies(k.name, s.Type) && s.Type == "array" {
			target, n = s.Items, f.elem.node
		}
		if !applies(k.name, target.Type) {
			return fmt.Errorf("keyword %q does not apply to a value of type %q", k.name, s.Type)
		}
		if err := keywords[k.name].set(target, n, k.value); err != nil {
			return fmt.Errorf("keyword %q: %w", k.name, err)
		}
	}
	return nil
}

// count sets a keyword whose value is a count.
func count(at func(*jsonschema.Schema) **uint64) setter {
	return func(s *jsonschema.Schema, _ *node, v string) error {
		n, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			return fmt.Errorf("want a count, got %q", v)
		}
		*at(s) = &n
		return nil
	}
}

// flag sets a keyword whose value is true or false.
func flag(at func(*jsonschema.Schema) *bool) setter {
	return func(s *jsonschema.Schema, _ *node, v string) (err error) {
		if *at(s), err = strconv.ParseBool(v); err != nil {
			return fmt.Errorf("want true or false, got %q", v)
		}
		return nil
	}
}

// bound sets a lower (side -1) or an upper bound (side 1). One that is wider
// than the range of the Go type changes nothing; one that leaves no value of
// the Go type is an error.
func bound(side int, at func(*jsonschema.Schema) *json.Number) setter {
	return func(s *jsonschema.Schema, n *node, v string) error {
		r, err := decimal(v)
		switch {
		case err != nil:
			return fmt.Errorf("want a number, got %q", v)
		case n.inRange(r):
			*at(s) = json.Number(v)
		case n.max != nil && r.Cmp(n.max) > 0 != (side > 0):
			return fmt.Errorf("the bound %s leaves no value of the Go type", v)
		}
		return nil
	}
}

func setMultipleOf(s *jsonschema.Schema, _ *node, v string) error {
	if r, err := decimal(v); err != nil || r.Sign() <= 0 {
		return fmt.Errorf("want a number above 0, got %q", v)
	}
	s.MultipleOf = json.Number(v)
	return nil
}

// errPattern: bytes, times and addresses already have a pattern: of what decodes.
var errPattern = errors.New("the Go type has a pattern of its own")

func setFormat(s *jsonschema.Schema, n *node, v string) error {
	if n.pattern != nil {
		return errPattern
	}
	s.Format = v
	return nil
}

func setPattern(s *jsonschema.Schema, n *node, v string) error {
	if n.pattern != nil {
		return errPattern
	}
	s.Pattern = v
	_, err := regexp.Compile(v)
	return err
}

func setEnum(s *jsonschema.Schema, n *node, v string) error {
	value, err := n.value(v)
	s.Enum = append(s.Enum, value)
	return err
}

func setExample(s *jsonschema.Schema, n *node, v string) error {
	value, err := n.value(v)
	s.Examples = append(s.Examples, value)
	return err
}

// setDefault sets the default. The default of an array has one element for each time that the
// keyword occurs in the tag.
func setDefault(s *jsonschema.Schema, n *node, v string) error {
	if n.kind != array {
		value, err := n.value(v)
		s.Default = value
		return err
	}
	if n.elem.kind != text || n.elem.nullable {
		return errors.New("only an array of strings has one in a tag")
	}
	before, _ := s.Default.([]any)
	s.Default = append(before, v)
	return nil
}

// value reads a value in a tag: one of the scalar that n plans.
func (n *node) value(v string) (any, error) {
	switch n.kind {
	case boolean:
		if v != "true" && v != "false" {
			return nil, fmt.Errorf("want true or false, got %q", v)
		}
		return v == "true", nil
	case text:
		if n.pattern != nil && !n.pattern.MatchString(v) {
			return nil, fmt.Errorf("%q does not decode: want %s", v, n.words)
		}
		return v, nil
	}
	if r, err := decimal(v); err != nil || n.kind == integer && !r.IsInt() || !n.inRange(r) {
		return nil, fmt.Errorf("want a number in the range of the Go type, got %q", v)
	}
	return json.Number(v), nil
}

// decimal reads a JSON number, exactly. Its limits keep big.Rat from taking
// seconds over an exponent.
func decimal(s string) (*big.Rat, error) {
	doc, err := rawjson.Parse(s, rawjson.Limits{})
	if err != nil || doc.Root().Kind() != rawjson.Number || doc.Root().Raw() != s {
		return nil, errors.New("not a number")
	}
	r, _ := new(big.Rat).SetString(s)
	return r, nil
}

// inRange reports whether r is between the bounds of n.
func (n *node) inRange(r *big.Rat) bool {
	return (n.min == nil || r.Cmp(n.min) >= 0) && (n.max == nil || r.Cmp(n.max) <= 0)
}
