package mend

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// Bounds of the search below a union.
const (
	maxBelow      = 128 // values
	maxDescribing = 16  // schemas that describe one of them
)

// below returns the fixes of values whose type no branch of a union of objects
// accepts. Validation names the whole union there, or takes one branch for the
// one that was meant. It is asked where no place has a fix. A value of the wrong
// type without exactly one fix leaves nothing certain. For example, with
//
//	{"anyOf": [{"properties": {"n": {"type": "integer"}}}, {"properties": {"n": {"type": "null"}}}]}
//
// and {"n": "5"}, the issue is at the object, and the fix at n.
func (m *mender) below(doc *rawjson.Doc) []fix {
	var fixes []fix
	var pointers rawjson.Pointers
	seen := 0
	var walk func(v rawjson.Value, schemas []*view.Node) bool
	walk = func(v rawjson.Value, schemas []*view.Node) bool {
		if seen++; seen > maxBelow {
			return false
		}
		if refusedByAll(v, schemas) {
			one := m.fixes(doc, place{pointer: pointers.Of(v), codes: []string{"type"}})
			if len(one) == 1 {
				fixes = add(fixes, one[0])
			}
			return len(one) == 1
		}
		for child := range v.Each() {
			if !walk(child, describing(schemas, pointers.Of(child))) {
				return false
			}
		}
		return true
	}
	if !walk(doc.Root(), []*view.Node{m.schema.Root()}) {
		return nil
	}
	return fixes
}

// describing returns the schemas that describe a child of what schemas
// describe, in whatever branch they stand; none where they are too many.
func describing(schemas []*view.Node, pointer string) []*view.Node {
	_, key, _ := cutLast(pointer)
	var all []*view.Node
	for _, s := range schemas {
		for _, a := range s.Alternatives() {
			if c := a.Child(key); c != nil && !slices.Contains(all, c) {
				if all = append(all, c); len(all) > maxDescribing {
					return nil
				}
			}
		}
	}
	return all
}

// refusedByAll reports whether there are schemas, and all of them refuse the
// type of v. A value that no schema describes is not refused.
func refusedByAll(v rawjson.Value, schemas []*view.Node) bool {
	for _, s := range schemas {
		if s.Wants().Has(view.KindsOf(v.Kind())) {
			return false
		}
	}
	return len(schemas) > 0
}
