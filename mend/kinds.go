package mend

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// kinds is a set of JSON types.
type kinds uint16

const (
	aNull kinds = 1 << iota
	aBoolean
	aNumber
	anInteger
	aString
	anArray
	anObject

	anything = anObject<<1 - 1
)

// kindNames are the types of JSON Schema.
var kindNames = map[string]kinds{
	"null": aNull, "boolean": aBoolean, "number": aNumber, "integer": anInteger,
	"string": aString, "array": anArray, "object": anObject,
}

// has reports whether k allows any of what.
func (k kinds) has(what kinds) bool { return k&what != 0 }

// refusedType reports whether the value v at pointer is surely refused for its
// type: the schema of each step there is under properties or items alone, and
// the last one names other types. A $ref on the way may put its schema aside.
func refusedType(root rawjson.Value, pointer string, v rawjson.Value) bool {
	s := root
	for _, seg := range rawjson.Segments(pointer) {
		if s.Get("$ref").Exists() {
			return false
		}
		next := s.Get("properties").Get(seg)
		if !next.Exists() {
			if next = s.Get("items"); s.Get("type").Str() != "array" || s.Get("prefixItems").Exists() {
				return false
			}
		}
		if s = next; s.Kind() != rawjson.Object {
			return false
		}
	}
	if s.Get("$ref").Exists() || s.Get("nullable").Exists() {
		return false
	}
	var names []string
	switch t := s.Get("type"); t.Kind() {
	case rawjson.String:
		names = []string{t.Str()}
	case rawjson.Array:
		for e := range t.Each() {
			names = append(names, e.Str())
		}
	}
	for _, name := range names {
		if _, known := kindNames[name]; !known || name == v.Kind().String() || name == "integer" && v.Kind() == rawjson.Number {
			return false
		}
	}
	return len(names) > 0
}

// Bounds of the schemas for one value: how many are searched for further ones,
// and how many are found. package schema refuses schemas with more than 1,000.
const (
	maxSchemas  = 64
	maxBranches = 1024
)

// wanted returns the types that the schema s, inside root, may accept: all of
// them where it does not say. It may say too much: validation has the last
// word.
func wanted(root, s rawjson.Value) kinds {
	var k kinds
	for _, a := range applying(root, s) {
		k |= named(a)
	}
	if k == 0 {
		return anything
	}
	return k
}

// applying returns s, what it refers to and its branches.
func applying(root, s rawjson.Value) []rawjson.Value {
	found := []rawjson.Value{s}
	seen := map[rawjson.Value]bool{s: true}
	for i := 0; i < len(found) && len(found) < maxSchemas; i++ {
		add := func(v rawjson.Value) {
			if v.Exists() && len(found) < maxBranches && !seen[v] {
				seen[v] = true
				found = append(found, v)
			}
		}
		add(referred(root, found[i]))
		for _, kw := range []string{"anyOf", "oneOf", "allOf"} {
			for branch := range found[i].Get(kw).Each() {
				add(branch)
			}
		}
	}
	return found
}

// referred returns the schema that s refers to inside root; absent without a
// $ref.
func referred(root, s rawjson.Value) rawjson.Value {
	if ref, ok := strings.CutPrefix(s.Get("$ref").Str(), "#"); ok {
		return root.At(ref)
	}
	return rawjson.Value{}
}

// named returns the types that a schema itself names, in whatever case; types
// of other systems are anything.
func named(s rawjson.Value) kinds {
	one := func(t rawjson.Value) kinds {
		if k, ok := kindNames[strings.ToLower(t.Str())]; ok {
			return k
		}
		return anything
	}
	t := s.Get("type")
	switch t.Kind() {
	case rawjson.Invalid:
		return 0
	case rawjson.Array:
		var k kinds
		for e := range t.Each() {
			k |= one(e)
		}
		return k
	}
	return one(t)
}
