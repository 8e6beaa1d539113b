package schema

import (
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolmend/toolmend/internal/schema/view"
)

// disjoint reports whether no value can satisfy both a and b, which makes
// their oneOf an anyOf: their types differ, or they are objects told apart by a
// property that has other values in each.
func disjoint(a, b *jsonschema.Schema) bool {
	a, b = behindRef(a), behindRef(b)
	shared := typesOf(a) & typesOf(b)
	if shared == 0 {
		return true
	}
	if shared != view.Object {
		return false
	}
	for name, p := range a.Properties {
		q := b.Properties[name]
		if q != nil && (requires(a, name) || requires(b, name)) && otherStrings(behindRef(p), behindRef(q)) {
			return true
		}
	}
	return false
}

// behindRef returns what s refers to. What else s says only narrows it.
func behindRef(s *jsonschema.Schema) *jsonschema.Schema {
	const hops = 8
	for range hops {
		if s.Ref == nil || len(s.Types)+len(s.Properties)+len(s.Enum)+len(s.Constant) > 0 {
			break
		}
		s = s.Ref
	}
	return s
}

// typesOf returns the types that a schema allows: all, if it does not say.
func typesOf(s *jsonschema.Schema) view.Kinds {
	if len(s.Types) == 0 {
		return view.Any
	}
	var k view.Kinds
	for _, t := range s.Types {
		named, _ := view.KindNamed(t)
		k |= named
	}
	return k
}

// requires reports whether a schema requires that property.
func requires(s *jsonschema.Schema, name string) bool {
	for _, r := range s.Required {
		if r == name {
			return true
		}
	}
	return false
}

// otherStrings reports whether a and b each allow certain strings only, none of
// them the same: {"const": "circle"} and {"enum": ["square", "box"]}.
func otherStrings(a, b *jsonschema.Schema) bool {
	seen := map[string]bool{}
	for i, s := range []*jsonschema.Schema{a, b} {
		values := s.Constant
		if len(values) == 0 {
			values = s.Enum
		}
		for _, v := range values {
			text, ok := v.(string)
			if !ok || i == 1 && seen[text] {
				return false
			}
			if i == 0 {
				seen[text] = true
			}
		}
		if len(values) == 0 {
			return false
		}
	}
	return true
}
