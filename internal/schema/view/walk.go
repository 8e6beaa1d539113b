package view

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// MaxSteps bounds Walk. A deeper schema cannot be compiled.
const MaxSteps = 512

// Walk calls f for each subschema with its depth: 0 for the top, one more for each
// property and each array around it. The values of keywords that are not known to
// hold schemas are not visited.
func Walk(v rawjson.Value, f func(n rawjson.Value, depth int)) { walkAt(v, 0, 0, f) }

func walkAt(v rawjson.Value, depth, steps int, f func(rawjson.Value, int)) {
	if v.Kind() != rawjson.Object || steps > MaxSteps {
		return
	}
	f(v, depth)
	for member := range v.Each() {
		form := Holds(member.Key())
		inside := depth
		switch member.Key() {
		case "properties", "items", "prefixItems", "additionalProperties":
			inside++
		}
		if form.Has(One) && member.Kind() == rawjson.Object && !form.Has(Map) {
			walkAt(member, inside, steps+1, f)
		}
		if form.Has(List) && member.Kind() == rawjson.Array || form.Has(Map) && member.Kind() == rawjson.Object {
			for child := range member.Each() {
				walkAt(child, inside, steps+1, f)
			}
		}
	}
}

// HasType reports whether "type" names a type, in any letter case.
func HasType(n rawjson.Value, name string) bool {
	t := n.Get("type")
	return slices.ContainsFunc(append(names(t), t.Str()), func(s string) bool { return strings.EqualFold(s, name) })
}
