package view

import (
	"maps"
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// maxDeclares bounds the schemas that Declares visits.
const maxDeclares = 1000

// Declares reports whether the schema describes a value at a path, a JSON
// Pointer whose segment * means every child and ~* for the key "*". It is
// true if that is not certain: below a schema that does not mention its children, and
// below a reference that cannot be followed.
func (v *View) Declares(path string) bool {
	if path == "" || v.Root() == nil || v.root.Value.Kind() != rawjson.Object {
		return true
	}
	left := maxDeclares
	return declares(v.root, path, &left)
}

func declares(n *Node, path string, left *int) bool {
	if *left--; *left < 0 || n.Value.Kind() != rawjson.Object {
		return n.Text() != "false"
	}
	if path == "" {
		return true
	}
	seg, rest := rawjson.CutFirst(path)
	silent := true // no schema has a keyword about children
	for _, a := range n.Speaking() {
		if a.Lost {
			return true
		}
		next, describes := a.below(seg)
		silent = silent && !describes
		if slices.ContainsFunc(next, func(child *Node) bool { return declares(child, rest, left) }) {
			return true
		}
	}
	return silent
}

// below returns the schemas that n by itself has for a child, and whether n has any
// keyword about children.
func (n *Node) below(seg string) (next []*Node, describes bool) {
	for _, kw := range []string{"properties", "patternProperties", "prefixItems", "items", "additionalProperties", "unevaluatedProperties",
		"additionalItems", "unevaluatedItems"} {
		describes = describes || n.Get(kw).Exists()
	}
	describes = describes || n.Types != 0 && !n.Types.Has(Array|Object)
	for _, other := range slices.Concat(n.Patterns, n.Some, []*Node{n.Rest}) {
		if other != nil && other.Text() != "false" {
			next = append(next, other)
		}
	}
	if seg == "*" {
		next = append(slices.AppendSeq(next, maps.Values(n.Props)), n.Prefix...)
		if n.Items != nil {
			next = append(next, n.Items)
		}
		return next, describes
	}
	key := "*" // as ~* means
	if seg != "~*" {
		key = rawjson.Unescape(seg)
	}
	most, err := strconv.ParseFloat(n.Get("maxItems").Raw(), 64)
	if n.Props[key] == nil && err == nil && float64(rawjson.Index(seg)) >= most {
		return next, describes // past the last element
	}
	if child := n.Child(key); child != nil {
		next = append(next, child)
	}
	return next, describes
}
