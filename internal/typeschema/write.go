package typeschema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// writer turns a plan into a schema. A node that is used once is written where
// it is used, which models and people read best. A node that is used more often,
// or that holds itself, is written once, as a definition, and referred to.
type writer struct {
	root  *node            // referred to as "#"
	names map[*node]string // of definitions
	taken map[string]bool  // names of definitions
	defs  jsonschema.Definitions
}

// write returns the schema of a plan. The keywords are in the order of tidy, and
// properties in the order of the plan: equal plans have equal bytes.
func write(root *node) (json.RawMessage, error) {
	w := writer{root: root, names: map[*node]string{}, taken: map[string]bool{}, defs: jsonschema.Definitions{}}
	s, err := w.whole(root)
	if err != nil {
		return nil, err
	}
	s.Definitions = w.defs
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", root.typ, err)
	}
	tree, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", root.typ, err)
	}
	return json.RawMessage(render(tidy(tree))), nil
}

// place returns the schema of a slot.
func (w *writer) place(s slot) (*jsonschema.Schema, error) {
	js, err := w.of(s.node)
	if err == nil && s.nullable {
		js = orNull(js, s.node)
	}
	return js, err
}

// orNull returns a schema that accepts what js accepts, and null. Strict providers take
// anyOf and not oneOf.
func orNull(js *jsonschema.Schema, n *node) *jsonschema.Schema {
	if n.kind == anything {
		return js
	}
	either := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{js, {Type: "null"}}, Title: js.Title, Description: js.Description}
	js.Title, js.Description = "", ""
	return either
}

// of returns a schema for n that nothing else holds: a reference where n has a
// definition.
func (w *writer) of(n *node) (*jsonschema.Schema, error) {
	switch {
	case !n.shared:
		return w.whole(n)
	case n == w.root:
		return &jsonschema.Schema{Ref: "#"}, nil
	}
	name, ok := w.names[n]
	if !ok {
		name = w.name(n.typ)
		w.names[n] = name
		s, err := w.whole(n)
		if err != nil {
			return nil, err
		}
		w.defs[name] = s
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + name}, nil
}

// qualifier is the package path of a type argument, which Type.Name has in full;
// notWord is what providers refuse in the name of a definition.
var (
	qualifier = regexp.MustCompile(`[^\[\],]*[./]`)
	notWord   = regexp.MustCompile(`[^A-Za-z0-9_]+`)
)

// name returns a unique name for the definition of t: the name of the type, with its package if
// another type has that name, with a number if that is still not unique.
func (w *writer) name(t reflect.Type) string {
	clean := func(s string) string { return strings.Trim(notWord.ReplaceAllString(s, "_"), "_") }
	own := cmp.Or(clean(qualifier.ReplaceAllString(t.Name(), "")), "Object")
	name := own
	if w.taken[name] {
		name = clean(t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:] + "_" + own)
	}
	for i := 2; w.taken[name]; i++ {
		name = own + "_" + strconv.Itoa(i)
	}
	w.taken[name] = true
	return name
}

// whole returns the schema of n itself, without a reference to it.
func (w *writer) whole(n *node) (*jsonschema.Schema, error) {
	switch n.kind {
	case object:
		return w.object(n)
	case mapping:
		elem, err := w.place(n.elem)
		s := &jsonschema.Schema{Type: "object", AdditionalProperties: elem}
		if n.pattern != nil {
			s.PropertyNames = &jsonschema.Schema{Pattern: n.pattern.String()}
		}
		return s, err
	case array:
		elem, err := w.place(n.elem)
		s := &jsonschema.Schema{Type: "array", Items: elem}
		if n.size >= 0 {
			s.MinItems, s.MaxItems = new(uint64(n.size)), new(uint64(n.size))
		}
		return s, err
	case integer:
		s := &jsonschema.Schema{Type: "integer"}
		n.writeRange(s)
		return s, nil
	case number:
		return &jsonschema.Schema{Type: "number"}, nil
	case boolean:
		return &jsonschema.Schema{Type: "boolean"}, nil
	case text:
		s := &jsonschema.Schema{Type: "string"}
		if n.pattern != nil {
			s.Pattern = n.pattern.String()
		}
		if n.format == "base64" {
			s.ContentEncoding = n.format
		} else {
			s.Format = n.format
		}
		return s, nil
	case foreign:
		own := *n.own
		own.Version, own.ID = "", ""
		return &own, nil
	}
	return &jsonschema.Schema{}, nil
}

// writeRange writes the bounds of an integer that a model may come to. Those of
// 64 bits it never does, and many readers of a schema round them to a float64.
func (n *node) writeRange(s *jsonschema.Schema) {
	if n.min != nil && (n.bits < 64 || n.min.Sign() == 0) {
		s.Minimum = json.Number(n.min.Num().String())
	}
	if n.max != nil && n.bits < 64 {
		s.Maximum = json.Number(n.max.Num().String())
	}
}

// object returns the schema of a struct.
func (w *writer) object(n *node) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	for _, f := range n.fields {
		property, err := w.of(f.node)
		if err != nil {
			return nil, err
		}
		if err := f.apply(property); err != nil {
			return nil, fmt.Errorf("%v.%s: %w", n.typ, f.goName, err)
		}
		property.Description = f.describe()
		if f.nullable {
			property = orNull(property, f.node)
		}
		s.Properties.Set(f.name, property)
		if f.required {
			s.Required = append(s.Required, f.name)
		}
	}
	if x, ok := reflect.New(n.typ).Interface().(interface{ JSONSchemaExtend(*jsonschema.Schema) }); ok {
		x.JSONSchemaExtend(s)
	}
	return s, nil
}

// describe returns the description of a field, with the unit that a model
// must know.
func (f field) describe() string {
	d := f.tag.description
	switch {
	case f.unit == "" || strings.Contains(d, f.unit):
		return d
	case d == "":
		return "in " + f.unit
	}
	return d + " (in " + f.unit + ")"
}
