package typeschema

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// object closes an object where the provider wants that. One without declared
// properties has no closed form that takes anything: that is an error, rather
// than a tool that can only be called with {}.
func (r *reducer) object(at string, o *ordered) error {
	if !r.closed || !isType(o, "object") && !o.has("properties") {
		return nil
	}
	declared := o.object("properties")
	free := o.get("additionalProperties") != false
	if free && (declared == nil || len(declared.keys) == 0) {
		return fmt.Errorf("%s: an object with properties of any name", at)
	}
	if declared == nil {
		o.set("properties", newOrdered())
	}
	o.set("additionalProperties", false)
	return nil
}

// isType reports whether a schema names that type, alone or among others.
func isType(o *ordered, name string) bool {
	return o.str("type") == name || slices.Contains(o.list("type"), any(name))
}

// missing returns the declared properties that are not required.
func missing(o *ordered) []string {
	var names []string
	if p := o.object("properties"); p != nil {
		for _, name := range p.keys {
			if !slices.Contains(o.list("required"), any(name)) {
				names = append(names, name)
			}
		}
	}
	return names
}

// place makes a schema, whose parts are reduced, fit where it stands.
func (r *reducer) place(at string, o *ordered, optional []string) error {
	if r.noCycles && r.cycles[o.str("$ref")] {
		return fmt.Errorf("%s: recursion", at)
	}
	if r.typed {
		switch {
		case !o.has("type") && !o.has("anyOf") && !o.has("$ref"):
			return fmt.Errorf("%s: a value of any type", at)
		case isType(o, "array") && o.object("items") == nil:
			return fmt.Errorf("%s: an array of anything", at)
		}
	}
	properties := o.object("properties")
	if properties == nil {
		return nil
	}
	if r.all {
		for _, name := range optional {
			if property, ok := properties.get(name).(*ordered); ok {
				properties.set(name, nullable(property))
			}
		}
		names := make([]any, len(properties.keys))
		for i, name := range properties.keys {
			names[i] = name
		}
		o.set("required", names)
	}
	if r.freeCycle {
		required := slices.DeleteFunc(slices.Clone(o.list("required")), func(name any) bool {
			key, _ := name.(string)
			return slices.ContainsFunc(refsIn(properties.get(key)), func(ref string) bool { return r.cycles[ref] })
		})
		if len(required) < len(o.list("required")) {
			o.set("required", required)
		}
		if len(required) == 0 {
			o.drop("required")
		}
	}
	return nil
}

// nullable returns a schema that also takes null: how a strict model leaves an
// optional property out.
func nullable(o *ordered) *ordered {
	null := newOrdered()
	null.set("type", "null")
	switch branches := o.list("anyOf"); {
	case o.has("$ref"):
		o = beside(o.clone())
		o.set("anyOf", append(o.list("anyOf"), null))
	case branches != nil:
		if !slices.ContainsFunc(branches, func(b any) bool { b2, ok := b.(*ordered); return ok && isType(b2, "null") }) {
			o.set("anyOf", append(slices.Clone(branches), null))
		}
	case !isType(o, "null"):
		types := o.list("type")
		if types == nil {
			types = []any{o.get("type")}
		}
		o.set("type", append(slices.Clone(types), "null"))
	}
	if o.has("const") {
		o.set("enum", []any{o.get("const")})
		o.drop("const")
	}
	if values := o.list("enum"); values != nil && !slices.Contains(values, nil) {
		o.set("enum", append(slices.Clone(values), nil))
	}
	return o
}

// unNoise drops bounds and patterns of [For] that only say which Go type is
// behind a value. No model sends more by itself.
func unNoise(o *ordered) {
	for _, key := range []string{"minimum", "maximum"} {
		if n, ok := o.get(key).(json.Number); ok && slices.Contains(typeBounds, n) {
			o.drop(key)
		}
	}
	pattern := o.str("pattern")
	for _, known := range []struct{ pattern, words string }{
		{base64Text.String(), "base64 with padding"}, {address.String(), "an IPv4 or IPv6 address"}, {dateTime.String(), ""}} {
		if pattern != known.pattern {
			continue
		}
		o.drop("pattern", "contentEncoding")
		if known.words != "" {
			tell(o, known.words)
		}
	}
}

// typeBounds are the ranges of the wide types, as For spells them. Those of
// int8 to int32 are kept: models do send more.
var typeBounds = []json.Number{"-9223372036854775808", "9223372036854775807", "18446744073709551615",
	json.Number(spellFloat(32)), json.Number("-" + spellFloat(32)), json.Number(spellFloat(64)), json.Number("-" + spellFloat(64))}

// check counts what a whole schema has.
func (l limits) check(root *ordered) error {
	if l == (limits{}) {
		return nil
	}
	var properties, names, values int
	var count func(o *ordered)
	count = func(o *ordered) {
		for _, key := range []string{"properties", "$defs"} {
			if named := o.object(key); named != nil {
				for _, name := range named.keys {
					names += utf8.RuneCountInString(name)
				}
				if key == "properties" {
					properties += len(named.keys)
				}
			}
		}
		for _, v := range append(slices.Clone(o.list("enum")), o.get("const")) {
			if text, ok := v.(string); ok {
				names += utf8.RuneCountInString(text)
			}
		}
		values += len(o.list("enum"))
		_ = o.below(func(_ string, s any) (any, error) { // which never fails
			if below, ok := s.(*ordered); ok {
				count(below)
			}
			return s, nil
		})
	}
	count(root)
	switch {
	case properties > l.properties:
		return fmt.Errorf("%d properties are more than %d", properties, l.properties)
	case names > l.nameChars:
		return fmt.Errorf("%d characters in names and values are more than %d", names, l.nameChars)
	case values > l.enumValues:
		return fmt.Errorf("%d enum values are more than %d", values, l.enumValues)
	case depth(root, root, map[string]int{}) > l.depth:
		return fmt.Errorf("nested deeper than %d levels", l.depth)
	}
	return nil
}

// depth returns how many objects stand inside one another, looking through
// references once: a recursion has no depth.
func depth(root *ordered, s any, seen map[string]int) int {
	o, ok := s.(*ordered)
	if !ok {
		return 0
	}
	deepest := 0
	if ref := o.str("$ref"); ref != "" {
		if d, ok := seen[ref]; ok {
			return d
		}
		seen[ref] = 0
		if target, err := resolve(root, ref); err == nil && target != root {
			seen[ref] = depth(root, target, seen)
		}
		deepest = seen[ref]
	}
	_ = o.below(func(keyword string, s any) (any, error) {
		if keyword != "$defs" {
			deepest = max(deepest, depth(root, s, seen))
		}
		return s, nil
	})
	if isType(o, "object") {
		deepest++
	}
	return deepest
}
