package strip

import (
	"maps"
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// maxWork bounds the work for one schema, in visited subschemas, names and branches. Places
// that are left over, which are the deepest, declare nothing.
const maxWork = 1 << 18

// place is a location in the arguments, with everything that the schema requires of it. It
// combines all subschemas that apply there, and may contain itself. For the schema
//
//	{"properties": {"note": {"type": "string"}, "city": {}}, "required": ["city"]}
//
// the root has the props note, which may be removed, and city, which is kept. A place is
// immutable after compile, and used for all calls.
type place struct {
	unknown bool                // not built, because of maxWork: nothing is removed below
	admits  probes              // values that no subschema refuses
	names   map[string]struct{} // placeholders that an enum or const lists: these are values
	props   map[string]property // the declared properties
	prefix  []*place            // elements by index; nil means that an element is not described
	items   *place              // the elements after prefix
}

// property is a declared property of the object at a place.
type property struct {
	place *place
	keep  bool // whether it is required, or counted by minProperties
}

// describes reports whether p describes children of a value of that kind. A nil p does not.
func (p *place) describes(k rawjson.Kind) bool {
	if p == nil {
		return false
	}
	if k == rawjson.Object {
		return len(p.props) > 0
	}
	return p.items != nil || len(p.prefix) > 0
}

// child returns the place of a child, nil if it is not described, and whether the child is
// kept even if it is empty.
func (p *place) child(v rawjson.Value, index int) (below *place, keep bool) {
	switch {
	case v.IsMember():
		prop := p.props[v.Key()]
		below, keep = prop.place, prop.keep
	case index < len(p.prefix):
		below, keep = p.prefix[index], true
	default:
		below, keep = p.items, true
	}
	if below == nil || below.unknown {
		return nil, true
	}
	return below, keep
}

// role says in which ways a subschema applies to a place.
type role uint8

const (
	declares role = 1 << iota // it describes the value for certain
	requires                  // it may apply: what it requires stays
	freezes                   // it may have to fail: what it speaks of stays
)

// subschema is a subschema that applies to a place, before its references and
// branches are followed.
type subschema struct {
	node *view.Node
	role role
}

// compiler builds the places of a schema, from the root down.
type compiler struct {
	placeholders placeholders
	places       map[string]*place // by the subschemas that start them
	facts        map[*view.Node]*facts
	queue        []job
	work         int
}

// job is a place that is not built yet. Places are built in the order in which they are
// reached, so outer places come first if maxWork ends the work.
type job struct {
	place      *place
	subschemas []subschema
}

// compile builds all places of a schema, so that stripping is one walk through the
// arguments.
func compile(root *view.Node, p placeholders) *place {
	c := &compiler{placeholders: p, places: map[string]*place{}, facts: map[*view.Node]*facts{}}
	first := c.place([]subschema{{root, declares | requires}})
	for len(c.queue) > 0 {
		j := c.queue[0]
		c.queue = c.queue[1:]
		if c.work > maxWork {
			j.place.unknown = true
			continue
		}
		c.build(j.place, j.subschemas)
	}
	return first
}

// place returns the place that subschemas describe, or nil if none of them certainly
// applies. The same subschemas have the same place, so that compile ends for a schema that
// refers to itself.
func (c *compiler) place(subschemas []subschema) *place {
	if !slices.ContainsFunc(subschemas, func(s subschema) bool { return s.role&declares != 0 }) {
		return nil
	}
	slices.SortFunc(subschemas, func(a, b subschema) int { return a.node.ID - b.node.ID })
	var key []byte
	merged := subschemas[:0]
	for _, s := range subschemas {
		if n := len(merged); n > 0 && merged[n-1].node == s.node {
			merged[n-1].role |= s.role
		} else {
			merged = append(merged, s)
		}
	}
	subschemas = slices.DeleteFunc(merged, func(s subschema) bool { return s.role == 0 })
	for _, s := range subschemas {
		key = strconv.AppendInt(key, int64(s.node.ID), 36)
		key = append(key, '!'+byte(s.role))
	}
	p, ok := c.places[string(key)]
	if !ok {
		p = &place{}
		c.places[string(key)] = p
		c.queue = append(c.queue, job{p, subschemas})
	}
	return p
}

// build fills in a place. It follows references and branches once for objects and once for
// arrays, because fewer branches of a union can apply to each of the two.
func (c *compiler) build(p *place, subschemas []subschema) {
	p.admits = allProbes
	for _, s := range subschemas {
		if s.role&declares != 0 {
			p.admits &= c.admitted(s.node)
		}
	}
	if len(c.placeholders) > 0 {
		for _, s := range c.reachable(subschemas, anyValue) {
			for _, name := range c.of(s.node).names {
				if p.names == nil {
					p.names = map[string]struct{}{}
				}
				p.names[name] = struct{}{}
			}
		}
	}
	if p.admits&anObject != 0 {
		c.object(p, c.reachable(subschemas, anObject))
	}
	if p.admits&anArray != 0 {
		c.array(p, c.reachable(subschemas, anArray))
	}
}

// reachable returns every subschema that subschemas lead to for a value like kind, each
// once with all its roles. A subschema that gets a further role is followed again.
func (c *compiler) reachable(subschemas []subschema, kind probes) []subschema {
	var found []subschema
	at := map[*view.Node]int{}
	todo := slices.Clone(subschemas)
	for len(todo) > 0 && c.work <= maxWork {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		i, known := at[s.node]
		if !known {
			i = len(found)
			at[s.node] = i
			found = append(found, subschema{node: s.node})
		}
		if s.role&^found[i].role == 0 {
			continue
		}
		found[i].role |= s.role
		before := len(todo)
		todo = c.follow(s.node, todo, found[i].role, kind)
		c.work += 1 + len(todo) - before + len(s.node.Required) + len(s.node.Dependent) + len(c.of(s.node).names) + len(s.node.Props)
	}
	return found
}

// follow appends the subschemas that apply to the same value as n. $ref and allOf certainly
// apply, and so does the only branch of a union that can accept the value. Other branches
// may apply: they declare nothing. not, if and oneOf freeze their properties, because a
// removal could turn their result around.
func (c *compiler) follow(n *view.Node, todo []subschema, r role, kind probes) []subschema {
	add := func(r role, nodes ...*view.Node) {
		for _, other := range nodes {
			if other != nil && r != 0 {
				todo = append(todo, subschema{other, r})
			}
		}
	}
	add(r, n.Ref)
	add(r, n.AllOf...)
	for i, branches := range [...][]*view.Node{n.AnyOf, n.OneOf} {
		var fit []*view.Node
		for _, branch := range branches {
			if kind == anyValue || c.admitted(branch)&kind != 0 {
				fit = append(fit, branch)
			}
		}
		switch {
		case len(fit) == 1: // such as the nullable pattern
			add(r, fit...)
		case i == 1: // a removal could make a second branch valid
			add(r&^declares|freezes, fit...)
		default:
			add(r&^declares, fit...)
		}
	}
	add(r&^declares, n.Then...)
	add(r&^declares|freezes, n.If)
	add(freezes, n.Not)
	return todo
}

// isFrozen reports whether nothing below may be removed: a reference could not be followed,
// or an enum or const lists an object or array.
func (c *compiler) isFrozen(all []subschema) bool {
	return slices.ContainsFunc(all, func(s subschema) bool { return s.node.Lost || c.of(s.node).listsContainer })
}

// object builds the properties of a place from all subschemas that apply to it. A property
// may be removed if one of them declares it and none requires, counts or freezes it.
func (c *compiler) object(p *place, all []subschema) {
	if c.isFrozen(all) || c.work > maxWork {
		return
	}
	names, keep, counted := map[string]struct{}{}, map[string]bool{}, false
	for _, s := range all {
		if s.role&requires != 0 {
			counted = counted || c.of(s.node).minProperties
			for _, required := range [...][]string{s.node.Required, s.node.Dependent} {
				for _, name := range required {
					keep[name] = true
				}
			}
		}
		for name, prop := range s.node.Props {
			if s.role&declares != 0 {
				names[name] = struct{}{}
			}
			if s.role&freezes != 0 || c.of(prop).requiresSelf {
				keep[name] = true
			}
		}
	}
	p.props = make(map[string]property, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) { // sorted, so that maxWork always leaves out the same ones
		if c.work > maxWork {
			break // the rest stays undeclared, and is kept
		}
		p.props[name] = property{c.place(c.property(all, name)), counted || keep[name]}
	}
}

// property returns the subschemas that apply to a property. Those of patternProperties and
// additionalProperties declare nothing, because the key may be data.
func (c *compiler) property(all []subschema, name string) []subschema {
	var subschemas []subschema
	for _, s := range all {
		if prop := s.node.Props[name]; prop != nil {
			subschemas = append(subschemas, subschema{prop, s.role})
		} else if s.node.Rest != nil {
			subschemas = append(subschemas, subschema{s.node.Rest, s.role &^ declares})
		}
		for _, pattern := range s.node.Patterns {
			subschemas = append(subschemas, subschema{pattern, s.role &^ declares})
		}
		c.work += 1 + len(s.node.Patterns)
	}
	return subschemas
}

// array builds the elements of a place. Elements are kept: only values inside them are
// removed.
func (c *compiler) array(p *place, all []subschema) {
	unique := slices.ContainsFunc(all, func(s subschema) bool { return s.node.Get("uniqueItems").Raw() == "true" })
	if c.isFrozen(all) || unique || c.work > maxWork { // a removal could make elements equal
		return
	}
	longest := 0
	for _, s := range all {
		longest = max(longest, len(s.node.Prefix))
	}
	for i := range longest {
		if c.work > maxWork {
			return
		}
		p.prefix = append(p.prefix, c.place(c.element(all, i)))
	}
	p.items = c.place(c.element(all, longest))
}

// element returns the subschemas that apply to the element at i. A contains declares
// nothing, because only some of the elements must satisfy it.
func (c *compiler) element(all []subschema, i int) []subschema {
	var subschemas []subschema
	for _, s := range all {
		if i < len(s.node.Prefix) {
			subschemas = append(subschemas, subschema{s.node.Prefix[i], s.role})
		} else if s.node.Items != nil {
			subschemas = append(subschemas, subschema{s.node.Items, s.role})
		}
		for _, some := range s.node.Some {
			subschemas = append(subschemas, subschema{some, s.role &^ declares})
		}
		c.work += 1 + len(s.node.Some)
	}
	return subschemas
}
