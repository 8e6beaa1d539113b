package strip

import (
	"maps"
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// maxWork bounds the work for one schema, in subschemas, names and branches
// looked at. The places that are left over, the deepest ones, declare nothing.
const maxWork = 1 << 18

// place is a location in the arguments: what all subschemas that apply there
// say together. It may contain itself.
type place struct {
	unknown bool   // no more was worked out: what is here stays
	admits  probes // empty values that no subschema refuses
	names   map[string]struct{}
	props   map[string]property // the declared ones
	prefix  []*place            // elements by index; nil entries are not described
	items   *place              // the elements after prefix
}

type property struct {
	place *place
	stays bool // required, or counted by a minProperties
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
func (p *place) child(v rawjson.Value, index int) (below *place, stays bool) {
	switch {
	case v.IsMember():
		prop := p.props[v.Key()]
		below, stays = prop.place, prop.stays
	case index < len(p.prefix):
		below, stays = p.prefix[index], true
	default:
		below, stays = p.items, true
	}
	if below == nil || below.unknown {
		return nil, true
	}
	return below, stays
}

// role says in which ways a subschema applies to a place.
type role uint8

const (
	declares role = 1 << iota // it describes the value for certain
	requires                  // it may apply: what it requires stays
	freezes                   // it may have to fail: what it speaks of stays
)

type start struct {
	sub  *sub
	role role
}

// compiler works out the places of a schema, from the root down.
type compiler struct {
	placeholders bool
	places       map[string]*place // by the subschemas that start them
	queue        []job
	work         int
}

type job struct {
	place  *place
	starts []start
}

func compile(root rawjson.Value, p placeholders) *place {
	c := &compiler{placeholders: len(p) > 0, places: map[string]*place{}}
	first := c.place([]start{{newReader(root, p).sub(root), declares | requires}})
	for len(c.queue) > 0 {
		j := c.queue[0]
		c.queue = c.queue[1:]
		if c.work > maxWork {
			j.place.unknown = true
			continue
		}
		c.build(j.place, j.starts)
	}
	return first
}

// place returns the place that starts describe: the same one for the same
// subschemas, so that a schema which refers to itself has an end. It is nil if
// none of them describes it for certain.
func (c *compiler) place(starts []start) *place {
	slices.SortFunc(starts, func(a, b start) int { return a.sub.id - b.sub.id })
	var key []byte
	certain := false
	for _, s := range starts {
		key = strconv.AppendInt(key, int64(s.sub.id), 36)
		key = append(key, '!'+byte(s.role))
		certain = certain || s.role&declares != 0
	}
	if !certain {
		return nil
	}
	p, ok := c.places[string(key)]
	if !ok {
		p = &place{}
		c.places[string(key)] = p
		c.queue = append(c.queue, job{p, starts})
	}
	return p
}

func (c *compiler) build(p *place, starts []start) {
	p.admits = allProbes
	for _, s := range starts {
		if s.role&declares != 0 {
			p.admits &= s.sub.lets()
		}
	}
	if c.placeholders {
		for _, s := range c.reach(starts, anyValue) {
			for _, name := range s.sub.names {
				if p.names == nil {
					p.names = map[string]struct{}{}
				}
				p.names[name] = struct{}{}
			}
		}
	}
	if p.admits&anObject != 0 {
		c.object(p, c.reach(starts, anObject))
	}
	if p.admits&anArray != 0 {
		c.array(p, c.reach(starts, anArray))
	}
}

// reach returns every subschema that starts lead to for a value like kind,
// each once with all its roles.
func (c *compiler) reach(starts []start, kind probes) []start {
	var found []start
	at := map[*sub]int{}
	todo := slices.Clone(starts)
	for len(todo) > 0 && c.work <= maxWork {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		i, seen := at[s.sub]
		if !seen {
			i = len(found)
			at[s.sub] = i
			found = append(found, start{sub: s.sub})
		}
		if s.role&^found[i].role == 0 {
			continue
		}
		found[i].role |= s.role
		before := len(todo)
		todo = s.sub.lead(todo, found[i].role, kind)
		c.work += 1 + len(todo) - before + len(s.sub.required) + len(s.sub.names) + len(s.sub.props)
	}
	return found
}

// lead appends the subschemas that apply to the same value as s.
func (s *sub) lead(todo []start, r role, kind probes) []start {
	add := func(r role, subs ...*sub) {
		for _, other := range subs {
			if other != nil && r != 0 {
				todo = append(todo, start{other, r})
			}
		}
	}
	add(r, s.same...)
	for _, u := range s.unions {
		var fit []*sub
		for _, branch := range u.branches {
			if kind == anyValue || branch.lets()&kind != 0 {
				fit = append(fit, branch)
			}
		}
		switch {
		case len(fit) == 1: // the nullable pattern
			add(r, fit...)
		case u.one: // at most one may hold: none may begin to
			add(r&^declares|freezes, fit...)
		default:
			add(r&^declares, fit...)
		}
	}
	add(r&^declares, s.may...)
	add(r&^declares|freezes, s.cond)
	add(freezes, s.not)
	return todo
}

// fixed reports whether nothing below may be changed.
func fixed(all []start) bool {
	return slices.ContainsFunc(all, func(s start) bool { return s.sub.unknown || s.sub.literal })
}

func (c *compiler) object(p *place, all []start) {
	if fixed(all) || c.work > maxWork {
		return
	}
	names, stay, counted := map[string]struct{}{}, map[string]bool{}, false
	for _, s := range all {
		if s.role&requires != 0 {
			counted = counted || s.sub.counted
			for _, name := range s.sub.required {
				stay[name] = true
			}
		}
		for name, prop := range s.sub.props {
			if s.role&declares != 0 {
				names[name] = struct{}{}
			}
			if s.role&freezes != 0 || prop.demanded {
				stay[name] = true
			}
		}
	}
	p.props = make(map[string]property, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) { // in order: the work may run out
		if c.work > maxWork {
			break // an undeclared property stays
		}
		p.props[name] = property{c.place(c.property(all, name)), counted || stay[name]}
	}
}

// property returns the subschemas that apply to the property of that name.
func (c *compiler) property(all []start, name string) []start {
	into := collector{}
	for _, s := range all {
		if prop := s.sub.props[name]; prop != nil {
			into.add(prop, s.role)
		} else if s.sub.rest != nil {
			into.add(s.sub.rest, s.role&^declares)
		}
		for _, pattern := range s.sub.patterns {
			into.add(pattern, s.role&^declares)
		}
		c.work += 1 + len(s.sub.patterns)
	}
	return into.starts
}

func (c *compiler) array(p *place, all []start) {
	unique := slices.ContainsFunc(all, func(s start) bool { return s.sub.unique })
	if fixed(all) || unique || c.work > maxWork { // elements may become equal
		return
	}
	longest := 0
	for _, s := range all {
		longest = max(longest, len(s.sub.prefix))
	}
	for i := range longest {
		if c.work > maxWork {
			return
		}
		p.prefix = append(p.prefix, c.place(c.element(all, i)))
	}
	p.items = c.place(c.element(all, longest))
}

// element returns the subschemas that apply to the element at i.
func (c *compiler) element(all []start, i int) []start {
	into := collector{}
	for _, s := range all {
		if i < len(s.sub.prefix) {
			into.add(s.sub.prefix[i], s.role)
		} else if s.sub.items != nil {
			into.add(s.sub.items, s.role)
		}
		for _, any := range s.sub.some {
			into.add(any, s.role&^declares)
		}
		c.work += 1 + len(s.sub.some)
	}
	return into.starts
}

// collector gathers starts, each subschema once.
type collector struct {
	starts []start
	at     map[*sub]int
}

func (c *collector) add(s *sub, r role) {
	if r == 0 {
		return
	}
	if i, seen := c.at[s]; seen {
		c.starts[i].role |= r
		return
	}
	if c.at == nil {
		c.at = map[*sub]int{}
	}
	c.at[s] = len(c.starts)
	c.starts = append(c.starts, start{s, r})
}
