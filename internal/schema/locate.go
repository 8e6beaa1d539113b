package schema

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// maxHops bounds how many schemas a look-up visits: schemas come from
// strangers, and doubled references grow exponentially.
const maxHops = 256

// Locate returns the schema that describes the value at a JSON Pointer into an
// instance; absent where root says nothing about it. It looks through local
// $ref, allOf, anyOf and oneOf; the first schema that names the property wins,
// and additionalProperties counts where none does.
func Locate(root rawjson.Value, pointer string) rawjson.Value {
	at := root
	for _, seg := range rawjson.Segments(pointer) {
		if at = step(root, at, seg); !at.Exists() {
			return at
		}
	}
	return target(root, at)
}

// step returns the schema of a property or an element, as it stands there.
func step(root, at rawjson.Value, seg string) rawjson.Value {
	return stepIn(applicable(root, at), seg)
}

func stepIn(alternatives []rawjson.Value, seg string) rawjson.Value {
	for _, s := range alternatives {
		if next := Child(s, seg); next.Exists() {
			return next
		}
	}
	for _, s := range alternatives {
		if next := s.Get("additionalProperties"); next.Kind() == rawjson.Object {
			return next
		}
	}
	return rawjson.Value{}
}

// target returns what a bare reference stands for, and any other schema as it
// is.
func target(root, s rawjson.Value) rawjson.Value {
	if alts := applicable(root, s); len(alts) > 1 && s.Get("$ref").Exists() {
		return alts[1]
	}
	return s
}

// Child returns what a schema by itself says about a property or an element:
// absent where it does not name it.
func Child(s rawjson.Value, seg string) rawjson.Value {
	if p := s.Get("properties").Get(seg); p.Exists() {
		return p
	}
	if !isIndex(seg) {
		return rawjson.Value{}
	}
	if p := s.Get("prefixItems").At("/" + seg); p.Exists() {
		return p
	}
	items := s.Get("items")
	if items.Kind() != rawjson.Array {
		return items
	}
	if p := items.At("/" + seg); p.Exists() {
		return p
	}
	return s.Get("additionalItems")
}

// localRef returns the pointer that a $ref into the same document holds.
func localRef(s rawjson.Value) (pointer string, ok bool) {
	return localPointer(s.Get("$ref").Str())
}

func localPointer(ref string) (pointer string, ok bool) {
	if ref != "#" && !strings.HasPrefix(ref, "#/") {
		return "", false
	}
	return unescapePercent(ref[1:]), true
}

// applicable returns s and the schemas that apply to the same value: what it
// refers to and its branches, in order, each once.
func applicable(root, s rawjson.Value) []rawjson.Value {
	return applicableBy(root, s, nil, nil)
}

// speaking returns what applicable does, and the schemas that apply under a
// condition: then, else and dependentSchemas declare properties too. So does
// if, whose properties may be there when the condition holds.
func speaking(root, s rawjson.Value) []rawjson.Value {
	return applicableBy(root, s, []string{"if", "then", "else"}, []string{"dependentSchemas", "dependencies"})
}

// applicableBy also follows the keywords in one, which hold a schema, and in
// maps, which hold schemas by name.
func applicableBy(root, s rawjson.Value, one, maps []string) []rawjson.Value {
	found := []rawjson.Value{s}
	for i := 0; i < len(found) && len(found) < maxHops; i++ {
		add := func(v rawjson.Value) {
			if v.Kind() == rawjson.Object && len(found) < maxHops && !slices.Contains(found, v) {
				found = append(found, v)
			}
		}
		if pointer, ok := localRef(found[i]); ok {
			add(root.At(pointer))
		}
		for _, kw := range []string{"allOf", "anyOf", "oneOf"} {
			for branch := range found[i].Get(kw).Each() {
				add(branch)
			}
		}
		for _, kw := range one {
			add(found[i].Get(kw))
		}
		for _, kw := range maps {
			for branch := range found[i].Get(kw).Each() {
				add(branch)
			}
		}
	}
	return found
}

// Names returns the properties that the schema s inside root declares, in the
// order of the schema, and those of them that it requires.
func Names(root, s rawjson.Value) (declared, required []string) {
	return namesIn(applicable(root, s))
}

func namesIn(schemas []rawjson.Value) (declared, required []string) {
	for _, a := range schemas {
		for p := range a.Get("properties").Each() {
			declared = append(declared, p.Key())
		}
		for r := range a.Get("required").Each() {
			if name := r.Str(); name != "" {
				required = append(required, name)
			}
		}
	}
	return unique(declared), unique(required)
}
