package view

import (
	"net/url"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// reader turns a schema's text into nodes.
type reader struct {
	root   rawjson.Value
	legacy bool // draft 7 or earlier
	nodes  map[rawjson.Value]*Node
}

func newReader(root rawjson.Value) *reader {
	r := &reader{root: root, nodes: map[rawjson.Value]*Node{}}
	draft := root.Get("$schema").Str()
	for _, old := range []string{"draft-03", "draft-04", "draft-05", "draft-06", "draft-07"} {
		r.legacy = r.legacy || strings.Contains(draft, old)
	}
	return r
}

// node reads the subschema at v; nil if there is none. A value that is neither an object nor a
// boolean has no keywords.
func (r *reader) node(v rawjson.Value) *Node {
	if !v.Exists() {
		return nil
	}
	if n, ok := r.nodes[v]; ok {
		return n
	}
	n := &Node{Value: v, ID: len(r.nodes)}
	r.nodes[v] = n
	if v.Kind() != rawjson.Object {
		return n
	}
	if ref := v.Get("$ref"); ref.Exists() {
		n.Ref = r.node(r.resolve(ref))
		n.Lost, n.hidden = n.Ref == nil, r.legacy
	}
	if !n.hidden {
		r.keywords(n)
	}
	return n
}

func (r *reader) list(v rawjson.Value) []*Node {
	var list []*Node
	for e := range v.Each() {
		list = append(list, r.node(e))
	}
	return list
}

// keywords reads the keywords of a schema object.
func (r *reader) keywords(n *Node) {
	for m := range n.Value.Each() {
		r.sameValue(n, m)
		r.object(n, m)
		r.array(n, m)
	}
	if items := n.Value.Get("items"); items.Kind() == rawjson.Array { // a tuple, up to draft 2019-09
		n.Prefix, n.Items = r.list(items), r.node(n.Value.Get("additionalItems"))
	}
}

// sameValue reads a keyword whose schemas apply to the value itself.
func (r *reader) sameValue(n *Node, m rawjson.Value) {
	switch m.Key() {
	case "$dynamicRef", "$recursiveRef":
		n.Lost = true
	case "type":
		n.Types = typesIn(m)
	case "allOf":
		n.AllOf = r.list(m)
	case "anyOf":
		n.AnyOf = r.list(m)
	case "oneOf":
		n.OneOf = r.list(m)
	case "if":
		n.If = r.node(m)
	case "not":
		n.Not = r.node(m)
	case "then", "else":
		n.Then = append(n.Then, r.node(m))
	case "dependentSchemas", "dependentRequired", "dependencies":
		for dependent := range m.Each() {
			if dependent.Kind() == rawjson.Array {
				n.Dependent = append(n.Dependent, names(dependent)...)
			} else {
				n.Then = append(n.Then, r.node(dependent))
			}
		}
	}
}

// object reads a keyword about the members of an object.
func (r *reader) object(n *Node, m rawjson.Value) {
	switch m.Key() {
	case "required":
		n.Required = names(m)
	case "properties":
		if m.Kind() == rawjson.Object {
			n.Props = make(map[string]*Node)
			for p := range m.Each() {
				n.Props[p.Key()] = r.node(p)
			}
		}
	case "additionalProperties":
		n.Rest = r.node(m)
	case "patternProperties":
		n.Patterns = append(n.Patterns, r.list(m)...)
	case "unevaluatedProperties":
		n.Patterns = append(n.Patterns, r.node(m))
	}
}

// array reads a keyword about the elements of an array.
func (r *reader) array(n *Node, m rawjson.Value) {
	switch m.Key() {
	case "prefixItems":
		n.Prefix = r.list(m)
	case "items":
		n.Items = r.node(m)
	case "contains", "unevaluatedItems":
		n.Some = append(n.Some, r.node(m))
	}
}

// names returns the strings of a list.
func names(v rawjson.Value) []string {
	var list []string
	for name := range v.Each() {
		if name.Kind() == rawjson.String {
			list = append(list, name.Str())
		}
	}
	return slices.Clip(list)
}

// resolve returns the target of a $ref: the same document, and no anchors. The
// reference is relative to the closest schema around it that has an $id.
func (r *reader) resolve(ref rawjson.Value) rawjson.Value {
	fragment, ok := strings.CutPrefix(ref.Str(), "#")
	if !ok || fragment != "" && fragment[0] != '/' {
		return rawjson.Value{}
	}
	base := ref.Parent()
	for base != r.root {
		if id := base.Get("$id").Str(); id != "" && id[0] != '#' {
			break
		}
		base = base.Parent()
	}
	if unescaped, err := url.PathUnescape(fragment); err == nil {
		fragment = unescaped
	}
	return base.At(fragment)
}
