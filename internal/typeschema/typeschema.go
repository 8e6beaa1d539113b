package typeschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/toolmend/toolmend/internal/schema"
)

// For returns the JSON Schema of t, a struct type or a pointer to one, for
// validation on this side: all of what [Decode] needs is in it, in the order of
// the struct's fields, without $schema and $id. Equal types have equal bytes. A
// type with a JSONSchema method may be used like a struct if that schema is of an object.
//
// The error names the field that has no schema. Results are cached for ever;
// the caller owns its copy. Safe for concurrent use.
func For(t reflect.Type) (json.RawMessage, error) {
	k := of(t)
	if k.err != nil {
		return nil, k.err
	}
	if k.root.kind != object && (k.root.kind != foreign || k.root.own.Type != "object") {
		return nil, fmt.Errorf("%v: no schema of arguments: a struct is needed", t)
	}
	return bytes.Clone(k.text), nil
}

// known is what of finds out about one type, the error included: a type without
// a schema never gets one.
type known struct {
	root   *node
	text   json.RawMessage
	schema *schema.Schema // text, compiled
	err    error
}

// types holds what is known of each type. It only grows with the types in the
// program.
var types sync.Map

// of returns the plan and the schema of t, or of what it points to.
func of(t reflect.Type) known {
	if k, ok := types.Load(t); ok {
		return k.(known)
	}
	k, _ := types.LoadOrStore(t, read(t))
	return k.(known)
}

// read plans a type, writes its schema and compiles it. It turns a panic, such as a panic of a
// JSONSchema method, into an error.
func read(t reflect.Type) (k known) {
	defer func() {
		if p := recover(); p != nil {
			k = known{err: fmt.Errorf("%v: no schema: %v", t, p)}
		}
	}()
	if t == nil {
		return known{err: errors.New("no schema of a nil type: a struct is needed")}
	}
	p := planner{structs: map[reflect.Type]*node{}, open: map[reflect.Type]*node{}}
	root, err := p.slot(t, t.String())
	if err != nil {
		return known{err: err}
	}
	text, err := write(root.node)
	if err != nil {
		return known{err: err}
	}
	compiled, err := schema.Compile(text, schema.Options{})
	if err != nil {
		return known{err: fmt.Errorf("%v: %w", t, err)}
	}
	return known{root: root.node, text: text, schema: compiled}
}
