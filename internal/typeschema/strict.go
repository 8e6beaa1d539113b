package typeschema

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// close gives an object declared properties only. One that declares none has no
// closed form that takes anything: that is an error, rather than a tool that can
// only be called with {}.
func (r *reducer) close(at string, o *ordered) {
	if !isType(o, "object") && !o.has("properties") {
		return
	}
	declared := o.object("properties")
	if o.get("additionalProperties") != false && (declared == nil || len(declared.keys) == 0) {
		r.fail(at, "an object with properties of any name")
	}
	if declared == nil {
		o.set("properties", newOrdered())
	}
	o.set("additionalProperties", false)
}

// isType reports whether a schema names that type, alone or among others.
func isType(o *ordered, name string) bool {
	return o.str("type") == name || slices.Contains(o.list("type"), any(name))
}

// fill makes every property required: an optional one may be null instead. It
// refuses values of any type.
func (r *reducer) fill(at string, o *ordered) {
	switch {
	case !o.has("type") && !o.has("anyOf") && !o.has("$ref"):
		r.fail(at, "a value of any type")
	case isType(o, "array") && o.object("items") == nil:
		r.fail(at, "an array of anything")
	}
	properties := o.object("properties")
	if properties == nil {
		return
	}
	required := make([]any, len(properties.keys))
	for i, name := range properties.keys {
		required[i] = name
		if property := properties.object(name); property != nil && !slices.Contains(o.list("required"), any(name)) {
			properties.set(name, nullable(property))
		}
	}
	o.set("required", required)
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

// recur refuses a recursion, or makes the properties that lead into one
// optional: a value has to end somewhere.
func (r *reducer) recur(at string, o *ordered) {
	if r.recursion == noRecursion && r.cycles[o.str("$ref")] {
		r.fail(at, "recursion")
	}
	properties := o.object("properties")
	if r.recursion != inDefinitions || properties == nil {
		return
	}
	required := slices.DeleteFunc(slices.Clone(o.list("required")), func(name any) bool {
		key, _ := name.(string)
		return slices.ContainsFunc(refsIn(properties.get(key)), func(ref string) bool { return r.cycles[ref] })
	})
	o.set("required", required)
	if len(required) == 0 {
		o.drop("required")
	}
}

// check counts what a whole schema has.
func (l limits) check(root *ordered) error {
	if l == (limits{}) {
		return nil
	}
	properties, chars, values := sizes(root)
	switch {
	case properties > l.properties:
		return fmt.Errorf("%d properties are more than %d", properties, l.properties)
	case chars > l.nameChars:
		return fmt.Errorf("%d characters in names and values are more than %d", chars, l.nameChars)
	case values > l.enumValues:
		return fmt.Errorf("%d enum values are more than %d", values, l.enumValues)
	case depth(root, root, map[string]int{}) > l.depth:
		return fmt.Errorf("nested deeper than %d levels", l.depth)
	}
	return nil
}

// sizes counts the properties in a schema, the characters in names and in enums
// of strings, and the values of enums.
func sizes(s any) (properties, chars, values int) {
	o, ok := s.(*ordered)
	if !ok {
		return 0, 0, 0
	}
	var names []string
	if p := o.object("properties"); p != nil {
		properties, names = len(p.keys), p.keys
	}
	if defs := o.object("$defs"); defs != nil {
		names = slices.Concat(names, defs.keys)
	}
	values = len(o.list("enum"))
	for _, v := range append(slices.Clone(o.list("enum")), o.get("const")) {
		if text, ok := v.(string); ok {
			names = append(names, text)
		}
	}
	for _, name := range names {
		chars += utf8.RuneCountInString(name)
	}
	o.below(func(_ string, s any) any {
		p, c, v := sizes(s)
		properties, chars, values = properties+p, chars+c, values+v
		return s
	})
	return properties, chars, values
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
	o.below(func(keyword string, s any) any {
		if keyword != "$defs" {
			deepest = max(deepest, depth(root, s, seen))
		}
		return s
	})
	if isType(o, "object") {
		deepest++
	}
	return deepest
}
