package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// maxDeclares bounds the schemas that Declares looks at.
const maxDeclares = 1000

// Declares reports whether a schema describes a value at a path, a JSON Pointer
// whose segment * stands for every child and ~* for the key "*". It is true
// where that cannot be told for certain: below a schema that says nothing about
// its children, behind a reference that leaves the document.
func Declares(root rawjson.Value, path string) bool {
	if path == "" || root.Kind() != rawjson.Object {
		return true
	}
	d := declaring{root: root, left: maxDeclares}
	return d.at(root, strings.Split(path[1:], "/"))
}

type declaring struct {
	root rawjson.Value
	left int
}

func (d *declaring) at(s rawjson.Value, segs []string) bool {
	if d.left--; d.left < 0 || s.Kind() != rawjson.Object {
		return s.Raw() != "false"
	}
	if len(segs) == 0 {
		return true
	}
	silent := true // no schema says anything about children
	for _, a := range speaking(d.root, s) {
		_, local := localRef(a)
		if a.Get("$ref").Exists() && !local || a.Get("$dynamicRef").Exists() || a.Get("$recursiveRef").Exists() {
			return true
		}
		next, says := below(a, segs[0])
		silent = silent && !says
		for _, n := range next {
			if d.at(n, segs[1:]) {
				return true
			}
		}
	}
	return silent
}

// below returns the schemas that one schema has for a child, and whether it says
// anything about children.
func below(a rawjson.Value, seg string) (next []rawjson.Value, says bool) {
	for _, kw := range []string{"properties", "patternProperties", "prefixItems"} {
		if m := a.Get(kw); m.Exists() {
			says = true
			if seg == "*" || kw == "patternProperties" {
				next = slices.AppendSeq(next, m.Each())
			}
		}
	}
	for _, kw := range []string{"additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems"} {
		if m := a.Get(kw); m.Exists() {
			says = true
			if m.Raw() != "false" {
				next = append(next, m)
			}
		}
	}
	items := a.Get("items")
	says = says || items.Exists() || onlyScalars(a.Get("type"))
	switch {
	case seg != "*":
		key := rawjson.Segments("/" + seg)[0]
		if seg == "~*" {
			key = "*"
		}
		most := a.Get("maxItems")
		if p := a.Get("properties").Get(key); p.Exists() || !isIndex(seg) || most.Exists() && index(seg) >= int(count(json.Number(most.Raw()))) {
			return append(next, existing(p)...), says
		}
		return append(next, existing(Child(a, seg))...), says
	case items.Kind() == rawjson.Array:
		next = slices.AppendSeq(next, items.Each())
	case items.Exists():
		next = append(next, items)
	}
	return next, says
}

func existing(v rawjson.Value) []rawjson.Value {
	if !v.Exists() {
		return nil
	}
	return []rawjson.Value{v}
}

// onlyScalars reports whether a type allows values without children only.
func onlyScalars(t rawjson.Value) bool {
	names := []string{t.Str()}
	if t.Kind() == rawjson.Array {
		names = nil
		for e := range t.Each() {
			names = append(names, e.Str())
		}
	}
	for _, n := range names {
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "null"}, n) {
			return false
		}
	}
	return len(names) > 0
}
