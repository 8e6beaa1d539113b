package view

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Kinds is a set of the types of JSON Schema. 0 means that no type is named.
type Kinds uint8

// The types. An integer is a number too: the type "number" has both bits.
const (
	Null Kinds = 1 << iota
	Bool
	Integer
	Number
	String
	Array
	Object
	Any Kinds = 1<<iota - 1
)

var kindNames = map[string]Kinds{"null": Null, "boolean": Bool, "integer": Integer, "number": Number | Integer,
	"string": String, "array": Array, "object": Object}

// KindNamed returns the type of that name in JSON Schema.
func KindNamed(name string) (Kinds, bool) {
	k, ok := kindNames[name]
	return k, ok
}

// KindsOf returns the types that a value of that kind may have.
func KindsOf(k rawjson.Kind) Kinds { return kindNames[k.String()] }

// Has reports whether k holds any of what.
func (k Kinds) Has(what Kinds) bool { return k&what != 0 }

// typesIn returns the types that the value of a type keyword names, in any
// letter case. A type of another system may be anything.
func typesIn(v rawjson.Value) Kinds {
	one := func(name rawjson.Value) Kinds {
		if k, ok := kindNames[strings.ToLower(name.Str())]; ok {
			return k
		}
		return Any
	}
	if v.Kind() != rawjson.Array {
		return one(v)
	}
	var k Kinds
	for name := range v.Each() {
		k |= one(name)
	}
	return k
}
