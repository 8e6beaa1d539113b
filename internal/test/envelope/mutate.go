package envelope

import (
	"fmt"
	"slices"
	"strings"
)

// mutator changes the events of good, with material from evil.
type mutator struct {
	draw       Draw
	good, evil []tree
	stock      []tree // evil, streamed and whole
}

// place is an object of an answer, and the object at that place of its twin.
type place struct{ object, twin *node }

// mutate makes one change. Each draw has a label, so that a failing case can be read.
func (m *mutator) mutate() {
	if len(m.good) > 1 && m.draw("of the events", 4) == 0 {
		m.mutateEvents()
		return
	}
	if m.draw("of the names", 8) == 0 {
		m.rename(pick(m.draw, "key", `"id"`, `"id"`, `"index"`, `"output_index"`))
		return
	}
	var places []place
	var lists []*node
	for i, e := range m.good {
		e.data.lists(func(list *node) { lists = append(lists, list) })
		var twin *node
		if i < len(m.evil) {
			twin = m.evil[i].data
		}
		e.data.objects(twin, func(object, twin *node) {
			if len(object.members) > 0 {
				places = append(places, place{object, twin})
			}
		})
	}
	switch {
	case len(places) == 0:
	case len(lists) > 0 && m.draw("of a list", 6) == 0:
		m.mutateList(lists[m.draw("list", len(lists))])
	default:
		m.mutateObject(places[m.draw("place", len(places))])
	}
}

// mutateList adds an element of some list of the twin, or moves the elements.
func (m *mutator) mutateList(list *node) {
	var others []*node
	for _, e := range m.stock {
		e.data.lists(func(l *node) { others = append(others, l.items...) })
	}
	switch i := m.draw("element", len(list.items)+1); {
	case len(others) > 0 && m.draw("change of a list", 3) > 0:
		list.items = slices.Insert(list.items, i, others[m.draw("other element", len(others))].clone())
	case len(list.items) > 0:
		list.items = append(list.items[1:], list.items[0])
	}
}

// mutateEvents repeats, swaps, drops and adds events.
func (m *mutator) mutateEvents() {
	i, j := m.draw("event", len(m.good)), m.draw("other event", len(m.good))
	switch m.draw("change of events", 6) {
	case 0:
		m.good[i], m.good[j] = m.good[j], m.good[i]
	case 1:
		m.good = slices.Delete(m.good, i, i+1)
	case 2:
		m.good = slices.Insert(m.good, j, tree{m.good[i].name, m.good[i].data.clone()})
	case 3:
		if i < len(m.evil) {
			m.good = slices.Insert(m.good, j, tree{m.evil[i].name, m.evil[i].data.clone()})
		}
	case 4:
		if i < len(m.evil) {
			m.good[i].data = m.evil[i].data.clone()
		}
	case 5:
		m.good = slices.Insert(m.good, j, pick(m.draw, "special event", tree{"", parse("[DONE]")}, tree{"ping", parse(`{"type":"ping"}`)},
			tree{"error", parse(`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`)}, tree{"", parse(`{"error":"m"}`)},
			tree{"", parse(`{"error":{"message":"m","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"{}"}}`)}))
	}
}

// mutateObject changes one member of an object: it comes again, is spelled otherwise,
// is replaced, removed or moved, each with a value that the evil twin may have.
func (m *mutator) mutateObject(p place) {
	i := m.draw("member", len(p.object.members))
	old := p.object.members[i]
	value := old.value
	switch twin := p.twin.get(old.key); {
	case m.draw("from anywhere", 4) == 0:
		value = m.any(old.key, value)
	case twin != nil:
		value = twin
	}
	insert := func(key string) {
		at := i + m.draw("behind", 2)
		p.object.members = slices.Insert(p.object.members, at, member{key, value.clone()})
	}
	switch m.draw("change of a member", 11) {
	case 0:
		insert(old.key)
	case 1:
		insert(m.respell(old.key))
	case 2:
		insert(escape(old.key))
	case 3:
		p.object.members[i].key = m.respell(old.key)
	case 4:
		p.object.members[i].key = escape(old.key)
	case 5:
		p.object.members[i].value = value.clone()
	case 6:
		p.object.members[i].value = m.retype(value)
	case 7:
		p.object.members = slices.Delete(p.object.members, i, i+1)
	case 8:
		j := m.draw("swap with", len(p.object.members))
		p.object.members[i], p.object.members[j] = p.object.members[j], p.object.members[i]
	case 9:
		m.move(p.object)
	case 10:
		p.object.members = append(p.object.members, member{`"vendor"`, m.odd()})
	}
}

// rename gives whatever has one value of a key another value that the key has,
// wherever it is, so that two calls share an id; or it takes all members with
// that key away.
func (m *mutator) rename(key string) {
	var values []string
	m.each(func(o *node) {
		if v := o.get(key); v != nil && v.open == 0 {
			values = append(values, v.raw)
		}
	})
	if len(values) == 0 {
		return
	}
	old, by, away := values[m.draw("old name", len(values))], values[m.draw("new name", len(values))], m.draw("away", 4) == 0
	m.each(func(o *node) {
		o.members = slices.DeleteFunc(o.members, func(v member) bool { return away && v.key == key })
		for _, v := range o.members {
			if !away && v.value.open == 0 && v.value.raw == old {
				v.value.raw = by
			}
		}
	})
}

// each calls f for each object of the answer.
func (m *mutator) each(f func(object *node)) {
	for _, e := range m.good {
		e.data.objects(nil, func(o, _ *node) { f(o) })
	}
}

// any returns a value that a key has anywhere in the evil twin, else the one it
// has.
func (m *mutator) any(key string, has *node) *node {
	values := []*node{has}
	for _, e := range m.stock {
		e.data.objects(nil, func(o, _ *node) {
			for _, member := range o.members {
				if member.key == key {
					values = append(values, member.value)
				}
			}
		})
	}
	return values[m.draw("value", len(values))]
}

// move puts a value of the evil twin below a key that other formats or other
// events use for it.
func (m *mutator) move(object *node) {
	var values []member
	for _, e := range m.stock {
		e.data.objects(nil, func(o, _ *node) { values = append(values, o.members...) })
	}
	v := values[m.draw("moved", len(values))]
	keys := []string{v.key, `"message"`, `"delta"`, `"content"`, `"content_block"`, `"response"`, `"item"`, `"output"`, `"tool_calls"`, `"function_call"`, `"functionCall"`, `"choices"`, `"parts"`, `"__proto__"`}
	object.members = append(object.members, member{keys[m.draw("moved to", len(keys))], v.value.clone()})
}

// respell changes the case of a key.
func (m *mutator) respell(key string) string {
	switch i := 1 + m.draw("letter", max(1, len(key)-2)); m.draw("case", 4) {
	case 0:
		return strings.ToUpper(key[:2]) + key[2:]
	case 1:
		return strings.ToUpper(key)
	case 2:
		return key[:i] + strings.ToUpper(key[i:i+1]) + key[i+1:]
	}
	if strings.Contains(key, "s") { // U+017F folds to s
		return strings.Replace(key, "s", "\u017f", 1)
	}
	return strings.ToLower(key)
}

// escape writes the first letter of a key as an escape.
func escape(key string) string {
	if len(key) < 3 || key[1] == '\\' {
		return key
	}
	return fmt.Sprintf(`"\u%04x%s`, key[1], key[2:])
}

// retype returns n as a value of another kind.
func (m *mutator) retype(n *node) *node {
	switch m.draw("kind", 9) {
	case 0:
		return &node{raw: quote(n.String())}
	case 1:
		return &node{open: '[', items: []*node{n.clone()}}
	case 2:
		return &node{raw: "null"}
	case 3:
		return &node{raw: []string{"-1", "0", "7", "1.5", "1e400", "70000"}[m.draw("number", 6)]}
	case 4:
		return &node{raw: "\"\xff\""}
	case 5:
		return pick(m.draw, "empty", &node{open: '{'}, &node{open: '['}, &node{raw: `""`}, &node{raw: "false"})
	case 6:
		if strings.HasPrefix(n.raw, `"`) { // text as what it holds
			if inner := parse(unquote(n.raw)); inner.open != 0 {
				return inner
			}
		}
		return &node{raw: `"` + n.String() + `"`} // broken JSON, mostly
	case 7:
		return &node{open: '{', members: []member{{`"0"`, n.clone()}}}
	}
	return &node{raw: "true"}
}

// odd returns a value that readers have trouble with.
func (m *mutator) odd() *node {
	switch m.draw("odd", 4) {
	case 0:
		return &node{raw: strings.Repeat("[", 1001) + strings.Repeat("]", 1001)}
	case 1:
		return &node{raw: "\"\xff\xfe\""}
	case 2:
		return &node{raw: `"\ud800"`}
	}
	return &node{raw: `{"a":1,"a":2,"A":3}`}
}
