package view

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Node is one subschema. It is read once, however often it is referred to, so
// nodes may form circles. Nothing in it may be changed. A nil Node behaves as the schema true.
type Node struct {
	Value rawjson.Value // the subschema as it is written
	ID    int           // unique in the View, from 0
	// Lost reports a reference that cannot be followed: it leads out of the
	// schema, to an anchor, or depends on the way that was taken. What else
	// applies is not known.
	Lost  bool
	Types Kinds // those that "type" names

	// Schemas of the same value.
	Ref                 *Node // $ref
	AllOf, AnyOf, OneOf []*Node
	If, Not             *Node
	Then                []*Node // then, else, dependentSchemas: each may apply

	// An object's properties.
	Required  []string
	Dependent []string // required if other properties are present
	Props     map[string]*Node
	Rest      *Node   // additionalProperties: names that are not in Props
	Patterns  []*Node // patternProperties, unevaluatedProperties: any name

	// An array's elements.
	Prefix []*Node // by index
	Items  *Node   // those after Prefix
	Some   []*Node // contains, unevaluatedItems: any element

	hidden bool // up to draft 7, the keywords next to a $ref do not count
}

// Get returns the value of a keyword; absent if it is not there, or does not
// count.
func (n *Node) Get(keyword string) rawjson.Value {
	if n == nil || n.hidden {
		return rawjson.Value{}
	}
	return n.Value.Get(keyword)
}

// Text returns the subschema as it is written; "" for a nil Node.
func (n *Node) Text() string {
	if n == nil {
		return ""
	}
	return n.Value.Raw()
}

// maxAlternatives bounds the schemas that one value is looked up in: doubled
// references grow exponentially. Schemas with more cannot be compiled.
const maxAlternatives = 1024

// Alternatives returns n and the schemas that apply to the same value: what n
// refers to, and its branches. The closest come first, each once.
func (n *Node) Alternatives() []*Node { return n.reach(false) }

// Speaking returns what Alternatives does, and the schemas that apply under a
// condition: they declare properties too. So does the condition itself, whose
// properties may be there when it holds.
func (n *Node) Speaking() []*Node { return n.reach(true) }

func (n *Node) reach(conditions bool) []*Node {
	if n == nil {
		return nil
	}
	found := []*Node{n}
	var seen map[*Node]bool // the nodes in found, where they are many
	add := func(all ...*Node) {
		for _, next := range all {
			if next == nil || next.Value.Kind() != rawjson.Object || len(found) == maxAlternatives {
				continue
			}
			if len(found) == 32 && seen == nil {
				seen = map[*Node]bool{}
				for _, f := range found {
					seen[f] = true
				}
			}
			if seen[next] || seen == nil && slices.Contains(found, next) {
				continue
			}
			if found = append(found, next); seen != nil {
				seen[next] = true
			}
		}
	}
	for i := 0; i < len(found); i++ {
		at := found[i]
		add(at.Ref)
		add(at.AllOf...)
		add(at.AnyOf...)
		add(at.OneOf...)
		if conditions {
			add(at.If)
			add(at.Then...)
		}
	}
	return found
}

// Wants returns the types that n may accept, through references and branches:
// Any if it names none. Validation may refuse some of them.
func (n *Node) Wants() Kinds {
	var k Kinds
	for _, a := range n.Alternatives() {
		k |= a.Types
	}
	if k == 0 {
		return Any
	}
	return k
}

// Child returns the schema that n by itself has for a property or an element; nil if it names
// none.
func (n *Node) Child(seg string) *Node {
	if p := n.Props[seg]; p != nil {
		return p
	}
	switch i := rawjson.Index(seg); {
	case i < 0:
		return nil
	case i < len(n.Prefix):
		return n.Prefix[i]
	}
	return n.Items
}

// Step returns the schema of a property or an element: from the first of n's alternatives
// that names it, else the first schema for other properties.
func (n *Node) Step(seg string) *Node {
	alternatives := n.Alternatives()
	for _, a := range alternatives {
		if next := a.Child(seg); next != nil {
			return next
		}
	}
	for _, a := range alternatives {
		if a.Rest != nil && a.Rest.Value.Kind() == rawjson.Object {
			return a.Rest
		}
	}
	return nil
}

// Steps returns the schemas that alternatives have for a property or an element: each its own for
// that, else its own for other properties.
func Steps(alternatives []*Node, seg string) (next []*Node) {
	for _, a := range alternatives {
		child := a.Child(seg)
		if child == nil {
			child = a.Rest
		}
		if child != nil && child.Value.Kind() == rawjson.Object {
			next = append(next, child)
		}
	}
	return next
}
