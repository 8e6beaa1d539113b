package strip

import (
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// probes is a set of kinds of values. Which of them a schema admits is computed from its
// keywords, without validating.
type probes uint8

const (
	aNull probes = 1 << iota
	emptyObject
	emptyArray
	aText     // a string that no enum or const lists
	anObject  // with members
	anArray   // with elements
	allProbes = 1<<iota - 1
	anyValue  = probes(0) // for reachable: it leaves out no branch
)

// probeOf returns the probe of an empty value of that kind. An empty string is a
// placeholder.
func probeOf(k rawjson.Kind) probes {
	switch k {
	case rawjson.Null:
		return aNull
	case rawjson.Object:
		return emptyObject
	case rawjson.Array:
		return emptyArray
	}
	return aText
}

// facts are what the keywords of a subschema mean for empty values.
type facts struct {
	own            probes   // what its keywords admit, except for $ref, allOf, anyOf and oneOf
	admits         probes   // what all its keywords admit; see admitted
	computed       bool     // whether admits is computed
	listsContainer bool     // whether an enum or const lists an object or array
	minProperties  bool     // whether it counts properties
	requiresSelf   bool     // "required": true, as in draft 3
	names          []string // placeholders that an enum or const lists
}

// of returns the facts of a subschema. It reads them once.
func (c *compiler) of(n *view.Node) *facts {
	f := c.facts[n]
	if f == nil {
		f = &facts{own: allProbes}
		c.facts[n] = f
		c.read(f, n)
	}
	return f
}

// read fills in the facts of the keywords of n. A keyword without a valid value is ignored.
func (c *compiler) read(f *facts, n *view.Node) {
	if n.Text() == "false" {
		f.own = 0
		return
	}
	if n.Types != 0 && n.Types != view.Any {
		f.own = typeProbes(n.Types)
	}
	if n.Get("nullable").Raw() == "true" {
		f.own |= aNull
	}
	if v := n.Get("const"); v.Exists() {
		f.own &= c.listed(f, v)
	}
	if e := n.Get("enum"); e.Kind() == rawjson.Array {
		var p probes
		for v := range e.Each() {
			p |= c.listed(f, v)
		}
		f.own &= p
	}
	if positive(n.Get("minItems")) {
		f.own &^= emptyArray
	}
	least := n.Get("minProperties")
	f.minProperties = least.Exists() && (least.Kind() != rawjson.Number || positive(least))
	required := n.Get("required")
	f.requiresSelf = required.Raw() == "true"
	if positive(least) || required.Kind() == rawjson.Array && !required.Empty() {
		f.own &^= emptyObject
	}
}

// typeProbes returns the probes of the named types. Numbers and booleans have none, because
// they are never empty.
func typeProbes(types view.Kinds) (p probes) {
	for kind, probe := range map[view.Kinds]probes{view.Null: aNull, view.Object: emptyObject | anObject, view.Array: emptyArray | anArray, view.String: aText} {
		if types.Has(kind) {
			p |= probe
		}
	}
	return p
}

// listed returns the probes that an enum or const admits by listing v, and notes v in f.
// Nothing is removed inside a listed object, because it would no longer equal v.
func (c *compiler) listed(f *facts, v rawjson.Value) probes {
	switch v.Kind() {
	case rawjson.Null:
		return aNull
	case rawjson.String:
		if c.placeholders.has(v.Str()) {
			f.names = append(f.names, v.Str())
		}
	case rawjson.Object, rawjson.Array:
		f.listsContainer = true
		if v.Empty() {
			return probeOf(v.Kind())
		}
		if v.Kind() == rawjson.Object {
			return anObject
		}
		return anArray
	}
	return 0
}

// positive reports whether v is a number above 0. It is false for other values and for an
// absent one.
func positive(v rawjson.Value) bool {
	if v.Kind() != rawjson.Number {
		return false
	}
	f, _ := strconv.ParseFloat(v.Raw(), 64) // past the range it is ±Inf
	return f > 0
}

// admitted returns the probes that n may admit: it certainly refuses all others. In a
// schema that contains itself, the inner occurrence admits all.
func (c *compiler) admitted(n *view.Node) probes {
	f := c.of(n)
	if f.computed {
		return f.admits
	}
	f.computed, f.admits = true, allProbes // for a schema that contains itself
	p := f.own
	if n.Ref != nil {
		p &= c.admitted(n.Ref)
	}
	for _, other := range n.AllOf {
		p &= c.admitted(other)
	}
	for _, branches := range [...][]*view.Node{n.AnyOf, n.OneOf} {
		var any probes
		for _, branch := range branches {
			any |= c.admitted(branch)
		}
		if len(branches) > 0 {
			p &= any
		}
	}
	f.admits = p
	return p
}
