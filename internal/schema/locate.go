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
// $ref, allOf, anyOf and oneOf; the first schema that names the property wins.
func Locate(root rawjson.Value, pointer string) rawjson.Value {
	at := root
	for _, seg := range rawjson.Segments(pointer) {
		next := rawjson.Value{}
		for _, s := range applicable(root, at) {
			if next = child(s, seg); next.Exists() {
				break
			}
		}
		if !next.Exists() {
			return next
		}
		at = next
	}
	if alts := applicable(root, at); len(alts) > 1 && at.Get("$ref").Exists() {
		return alts[1] // what a bare reference stands for
	}
	return at
}

func child(s rawjson.Value, seg string) rawjson.Value {
	if p := s.Get("properties").Get(seg); p.Exists() {
		return p
	}
	if seg == "" || strings.Trim(seg, "0123456789") != "" {
		return rawjson.Value{}
	}
	if p := s.Get("prefixItems").At("/" + seg); p.Exists() {
		return p
	}
	if items := s.Get("items"); items.Kind() == rawjson.Array {
		return items.At("/" + seg)
	}
	return s.Get("items")
}

// applicable returns s and all that may apply to the same value.
func applicable(root, s rawjson.Value) []rawjson.Value { return Applicable(root, s, true) }

// Applicable returns s and the schemas that apply to the same value, in order,
// each once: what it refers to, its allOf, and, if branches is set, those of
// anyOf and oneOf, which may apply. At most a few hundred.
func Applicable(root, s rawjson.Value, branches bool) []rawjson.Value {
	found := []rawjson.Value{s}
	keywords := []string{"allOf", "anyOf", "oneOf"}
	if !branches {
		keywords = keywords[:1]
	}
	for i := 0; i < len(found) && len(found) < maxHops; i++ {
		add := func(v rawjson.Value) {
			if v.Kind() == rawjson.Object && !slices.Contains(found, v) {
				found = append(found, v)
			}
		}
		if ref := found[i].Get("$ref").Str(); ref == "#" {
			add(root)
		} else if strings.HasPrefix(ref, "#/") {
			add(root.At(strings.TrimPrefix(ref, "#")))
		}
		for _, kw := range keywords {
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
	for _, a := range applicable(root, s) {
		for p := range a.Get("properties").Each() {
			if name := p.Key(); !slices.Contains(declared, name) {
				declared = append(declared, name)
			}
		}
	}
	for _, a := range applicable(root, s) {
		for r := range a.Get("required").Each() {
			if name := r.Str(); name != "" && !slices.Contains(required, name) {
				required = append(required, name)
			}
		}
	}
	return declared, required
}
