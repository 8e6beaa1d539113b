// Package typeschema makes JSON Schemas from Go types, decodes what satisfies
// them, and reduces a schema to what a provider takes.
//
// # One plan, two readers
//
// A type is read once, by the rules of encoding/json, into a plan: what [For]
// writes as a schema and what [Decode] checks. So a text satisfies the schema
// of a type exactly when it decodes into the type, with the exceptions below.
// The keywords in struct tags (minimum, enum, …) belong to the schema alone.
// invopop/jsonschema applies them, one struct at a time: it never walks types,
// so its faults there (recursion that kills the process, two types of one name
// that share a definition, keys that break references) cannot occur.
//
// # Decisions
//
//   - A field is required unless it has omitempty or omitzero, or comes through
//     an embedded pointer; jsonschema:"required" makes it required again.
//   - null is a value of a pointer that is not optional, of an element or map
//     value that is a pointer, of an interface, and of what has the tag
//     jsonschema:"nullable". A slice, a map and []byte are never null: the
//     model is asked for [] or {}.
//   - Undeclared properties are refused, so that encoding/json's matching of
//     keys regardless of case never applies.
//   - An integer is a whole number in the range of its Go type, however it is
//     spelled: 5.0 and 1e2 are integers.
//   - time.Duration is an integer, and its description says "nanoseconds".
//   - A type with UnmarshalText is a string, one with UnmarshalJSON is any
//     value, unless its method JSONSchema says more.
//   - url.URL, channels, functions, complex numbers, interfaces with methods
//     and unknown tag keywords are errors that name the field.
//
// # Where a text satisfies the schema and does not decode
//
//   - Types with UnmarshalText or UnmarshalJSON refuse what they like.
//   - A number past the range of float64 satisfies the schema of any.
//
// Decode reports both with the path. A key that stands twice in an object
// counts once, the last time, in both.
package typeschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// For returns the JSON Schema of t, a struct type or a pointer to one, for
// validation on this side: all of what [Decode] needs is in it, in the order of
// the struct's fields, without $schema and $id. Equal types have equal bytes. A
// type with a JSONSchema method is as good as a struct where that says object.
//
// The error names the field that has no schema. Results are cached for ever;
// the caller owns its copy. Safe for concurrent use.
func For(t reflect.Type) (json.RawMessage, error) {
	if cached, ok := schemas.Load(t); ok {
		return cached.(result).copy()
	}
	r := result{}
	r.text, r.err = generate(t)
	cached, _ := schemas.LoadOrStore(t, r)
	return cached.(result).copy()
}

// result is what For gives for one type, the error included: a type without a
// schema never gets one.
type result struct {
	text json.RawMessage
	err  error
}

func (r result) copy() (json.RawMessage, error) { return bytes.Clone(r.text), r.err }

// schemas and plans hold what was made of a type. Both only grow with the
// types in the program.
var schemas, plans sync.Map

// generate turns a panic, such as that of a JSONSchema method, into an error.
func generate(t reflect.Type) (text json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = nil, fmt.Errorf("%v: no schema: %v", t, p)
		}
	}()
	if t == nil {
		return nil, errors.New("no schema of a nil type: a struct is needed")
	}
	root, err := planOf(t)
	if err != nil {
		return nil, err
	}
	if root.kind != object && (root.kind != foreign || root.own.Type != "object") {
		return nil, fmt.Errorf("%v: no schema of arguments: a struct is needed", t)
	}
	return write(root)
}

// planned is what planOf gives for one type.
type planned struct {
	root *node
	err  error
}

// planOf returns the plan of t, or of what it points to.
func planOf(t reflect.Type) (*node, error) {
	if cached, ok := plans.Load(t); ok {
		p := cached.(planned)
		return p.root, p.err
	}
	p := planner{structs: map[reflect.Type]*node{}, open: map[reflect.Type]*node{}}
	s, err := p.slot(t, t.String())
	cached, _ := plans.LoadOrStore(t, planned{s.node, err})
	return cached.(planned).root, cached.(planned).err
}
