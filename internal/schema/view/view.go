// Package view answers questions about a place in an instance of a JSON Schema: what is
// declared there, what is required, and which types are wanted.
//
// A View reads a schema once. Each subschema becomes a Node, with its
// references resolved and its keywords sorted by what they apply to. Repairs,
// stripping and feedback walk the nodes; none of them reads the schema's text
// for keywords that hold schemas.
//
// The package validates nothing, and depends on no validator. Its answers are
// hints where branches of a union differ: the first branch that names a
// property counts. Code that needs certainty, such as package strip, weighs
// the fields of the nodes itself.
package view

import (
	"fmt"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Limits are the limits of a schema's text. Numbers of any length are read: nothing
// is computed with them.
var Limits = rawjson.Limits{Bytes: 1 << 20, Depth: 128, Number: -1, Exponent: -1}

// View is a JSON Schema of any draft, read once for any number of questions.
// It is safe for concurrent use. A nil View describes no place.
type View struct {
	root *Node

	mu    sync.Mutex
	known map[*Node]*Declared
	left  int // names that may still be remembered: schemas may refer to the same ones again and again
}

// Read reads the text of a schema. It returns an error for text that is not
// JSON or past the Limits, and for a number, a string or an array.
func Read(text []byte) (*View, error) {
	doc, err := rawjson.Parse(string(text), Limits)
	if err != nil {
		return nil, err
	}
	if k := doc.Root().Kind(); k != rawjson.Object && k != rawjson.Bool && k != rawjson.Null {
		return nil, fmt.Errorf("%s where an object should be", k)
	}
	return New(doc), nil
}

// New reads a schema.
func New(doc *rawjson.Doc) *View {
	doc = doc.Indexed()
	return &View{root: newReader(doc.Root()).node(doc.Root()), known: map[*Node]*Declared{}, left: 1000 + len(doc.Text())/8}
}

// Root returns the schema as a whole; nil for a nil View.
func (v *View) Root() *Node {
	if v == nil {
		return nil
	}
	return v.root
}

// At returns the schema that describes the value at a JSON Pointer into an
// instance; nil if the schema does not describe it. For a bare reference it
// returns the schema that is referred to.
func (v *View) At(pointer string) *Node {
	n := v.Root()
	for _, seg := range rawjson.Segments(pointer) {
		if n = n.Step(seg); n == nil {
			return nil
		}
	}
	if n != nil && n.Ref != nil {
		return n.Ref
	}
	return n
}
