package strip

import (
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// probes is a set of the values that a schema is asked about. Each stands for a kind of
// value: whether a schema admits it is worked out from its keywords, without validating.
type probes uint8

const (
	aNull probes = 1 << iota
	emptyObject
	emptyArray
	aText     // a string that no enum or const names
	anObject  // with members
	anArray   // with elements
	allProbes = 1<<iota - 1
	anyValue  = probes(0) // in reach: no branch is left out, also none that only lists strings
)

// probeOf returns the probe for an empty value of that kind. A string is empty as a
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

// facts are what a subschema says about empty values, references and branches
// apart.
type facts struct {
	own            probes   // what its keywords let through
	admits         probes   // own, and what it refers to; see lets
	computed       bool     // admits is there
	listsContainer bool     // an enum or const names an object or array
	minProperties  bool     // minProperties
	requiresSelf   bool     // "required": true, as draft 3 had it
	names          []string // placeholders that an enum or const names
}

// of returns the facts of a subschema, which are read once.
func (c *compiler) of(n *view.Node) *facts {
	f := c.facts[n]
	if f == nil {
		f = &facts{own: allProbes}
		c.facts[n] = f
		c.read(f, n)
	}
	return f
}

// read fills in the facts that the keywords of n state. A keyword whose value
// means nothing restricts nothing.
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

// typeProbes returns what the named types let through. Numbers and booleans are never
// empty.
func typeProbes(types view.Kinds) (p probes) {
	for kind, probe := range map[view.Kinds]probes{view.Null: aNull, view.Object: emptyObject | anObject, view.Array: emptyArray | anArray, view.String: aText} {
		if types.Has(kind) {
			p |= probe
		}
	}
	return p
}

// listed is what an enum or const lets through that names v. It also notes what stands in
// v: below a literal object nothing may be changed, or the value would not be the one that
// is listed.
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

// positive reports whether v is a number above 0. It is false for anything that is no
// number, and for one that is not there.
func positive(v rawjson.Value) bool {
	if v.Kind() != rawjson.Number {
		return false
	}
	f, _ := strconv.ParseFloat(v.Raw(), 64) // past the range it is ±Inf
	return f > 0
}

// admitted returns the probes that n admits, as far as it can be told: a probe that
// is missing is refused for certain. A schema that contains itself admits what
// the rest of it does.
func (c *compiler) admitted(n *view.Node) probes {
	f := c.of(n)
	if f.computed {
		return f.admits
	}
	f.computed, f.admits = true, allProbes // for a schema that leads back here
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
