package mend

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
)

// Bounds of the search below a union.
const (
	maxBelow      = 128 // values
	maxDescribing = 16  // schemas that describe one of them
)

// below returns the fixes of values whose type no branch of a union of objects
// accepts. Validation names the whole union there, or takes one branch for the
// one that was meant. It is asked where no place has a fix. A value of the wrong
// type without exactly one fix leaves nothing certain.
func (m *mender) below(doc *rawjson.Doc) []fix {
	var fixes []fix
	var pointers rawjson.Pointers
	seen := 0
	var walk func(v rawjson.Value, schemas []rawjson.Value) bool
	walk = func(v rawjson.Value, schemas []rawjson.Value) bool {
		if seen++; seen > maxBelow {
			return false
		}
		if m.refusedByAll(v, schemas) {
			one := m.fixes(doc, place{pointer: pointers.Of(v), codes: []string{"type"}})
			if len(one) == 1 {
				fixes = add(fixes, one[0])
			}
			return len(one) == 1
		}
		for child := range v.Each() {
			if !walk(child, m.describing(schemas, pointers.Of(child))) {
				return false
			}
		}
		return true
	}
	if !walk(doc.Root(), []rawjson.Value{m.root}) {
		return nil
	}
	return fixes
}

// describing returns the schemas that describe a child of what schemas
// describe, in whatever branch they stand; none where they are too many.
func (m *mender) describing(schemas []rawjson.Value, pointer string) []rawjson.Value {
	_, key, _ := cutLast(pointer)
	var all []rawjson.Value
	for _, s := range schemas {
		for _, a := range m.applying(s) {
			if c := schema.Child(a, key); c.Exists() && !slices.Contains(all, c) {
				if all = append(all, c); len(all) > maxDescribing {
					return nil
				}
			}
		}
	}
	return all
}

// applying is applying, once for each schema.
func (m *mender) applying(s rawjson.Value) []rawjson.Value {
	known, ok := m.applied[s]
	if !ok {
		known = applying(m.root, s)
		m.applied[s] = known
	}
	return known
}

// refusedByAll reports whether there are schemas, and all of them refuse the
// type of v.
func (m *mender) refusedByAll(v rawjson.Value, schemas []rawjson.Value) bool {
	kind := kindNames[v.Kind().String()]
	if kind == aNumber {
		kind |= anInteger
	}
	for _, s := range schemas {
		var want kinds
		for _, a := range m.applying(s) {
			want |= named(a)
		}
		if want == 0 || want.has(kind) {
			return false
		}
	}
	return len(schemas) > 0
}
