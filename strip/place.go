package strip

import (
	"maps"
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// maxWork bounds the work for one schema, in subschemas, names and branches
// looked at. The places that are left over, the deepest ones, declare nothing.
const maxWork = 1 << 18

// place is a location in the arguments: what all subschemas that apply there
// say together. It may contain itself. For the schema
//
//	{"properties": {"note": {"type": "string"}, "city": {}}, "required": ["city"]}
//
// the root has the props note, which may go, and city, which stays. Nothing in it
// changes after compile: one place serves all calls.
type place struct {
	unknown bool                // no more was worked out: what is here stays
	admits  probes              // empty values that no subschema refuses
	names   map[string]struct{} // placeholders that an enum or const lists here: those are values
	props   map[string]property // the declared ones
	prefix  []*place            // elements by index; nil entries are not described
	items   *place              // the elements after prefix
}

// property is a declared property of the object at a place.
type property struct {
	place *place
	keep  bool // required, or counted by a minProperties
}

// describes reports whether p says anything about the children of a value of
// that kind. A nil p says nothing.
func (p *place) describes(k rawjson.Kind) bool {
	if p == nil {
		return false
	}
	if k == rawjson.Object {
		return len(p.props) > 0
	}
	return p.items != nil || len(p.prefix) > 0
}

// child returns the place of a child, nil if it is not described, and whether
// the child itself stays though it be empty.
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

// compiler works out the places of a schema, from the root down.
type compiler struct {
	placeholders placeholders
	places       map[string]*place // by the subschemas that start them
	facts        map[*view.Node]*facts
	queue        []job
	work         int
}

// job is a place that is still to be built. Places are built in the order in
// which they are reached, so that the work that is left goes to the outer ones.
type job struct {
	place      *place
	subschemas []subschema
}

// compile works out all places of a schema once, so that stripping is one walk through
// the arguments with the place of each value at hand.
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

// place returns the place that starts describe: the same one for the same
// subschemas, so that a schema which refers to itself has an end. It is nil if
// none of them describes it for certain.
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

// build works out what starts say about a place. Children matter only where the
// value may be an object or an array at all. Branches are followed anew for each of the
// two kinds: of a union of an object and a string, one branch is left for an object.
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

// reachable returns every subschema that starts lead to for a value like kind,
// each once with all its roles. A subschema that gets a further role is followed again,
// because those that it leads to get it too.
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

// follow appends the subschemas that apply to the same value as n. Through $ref and allOf
// they apply for certain, and so does the only branch that can take the value. Any other
// branch may apply: its declarations do not count. Under not and if, and in a oneOf,
// a property that goes could turn the result around: what they speak of stays.
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
		case len(fit) == 1: // the nullable pattern
			add(r, fit...)
		case i == 1: // at most one may hold: none may begin to
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

// isFrozen reports whether nothing below may be changed: a reference could not be followed,
// or an enum lists the whole value.
func (c *compiler) isFrozen(all []subschema) bool {
	return slices.ContainsFunc(all, func(s subschema) bool { return s.node.Lost || c.of(s.node).listsContainer })
}

// object works out the properties of a place from all subschemas that apply to
// it, in the order of their names. A property goes only if one of them declares it for certain; it stays if
// any of them may require it, or would hold or fail because of it.
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
	for _, name := range slices.Sorted(maps.Keys(names)) { // in order: the work may run out
		if c.work > maxWork {
			break // an undeclared property stays
		}
		p.props[name] = property{c.place(c.property(all, name)), counted || keep[name]}
	}
}

// property returns the subschemas that apply to the property of that name. Those under
// patternProperties and additionalProperties say what it must be, but declare nothing:
// the caller may have meant the key as data.
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

// array works out the elements of a place, which themselves stay: only what is
// in them may go.
func (c *compiler) array(p *place, all []subschema) {
	unique := slices.ContainsFunc(all, func(s subschema) bool { return s.node.Get("uniqueItems").Raw() == "true" })
	if c.isFrozen(all) || unique || c.work > maxWork { // elements may become equal
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

// element returns the subschemas that apply to the element at i. Some of the elements
// must satisfy contains, and any of them may be one: it declares nothing.
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
