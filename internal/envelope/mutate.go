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
}

// place is an object of an answer, and the object at that place of its twin.
type place struct{ object, twin *node }

// mutate makes one change.
func (m *mutator) mutate() {
	if len(m.good) > 1 && m.draw("of the events", 4) == 0 {
		m.mutateEvents()
		return
	}
	var places []place
	for i, e := range m.good {
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
	m.mutateObject(places[m.draw("place", len(places))])
}

// mutateEvents repeats, swaps, drops and adds events.
func (m *mutator) mutateEvents() {
	i, j := m.draw("event", len(m.good)), m.draw("other event", len(m.good))
	switch m.draw("change of events", 5) {
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
	}
}

// mutateObject changes one member of an object.
func (m *mutator) mutateObject(p place) {
	i := m.draw("member", len(p.object.members))
	old := p.object.members[i]
	value := old.value
	if twin := p.twin.get(old.key); twin != nil {
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

// move puts a value of the evil twin below a key that other formats or other
// events use for it.
func (m *mutator) move(object *node) {
	var values []member
	for _, e := range m.evil {
		e.data.objects(nil, func(o, _ *node) { values = append(values, o.members...) })
	}
	v := values[m.draw("moved", len(values))]
	keys := []string{v.key, `"message"`, `"delta"`, `"content"`, `"content_block"`, `"response"`, `"item"`, `"output"`, `"tool_calls"`, `"function_call"`, `"functionCall"`, `"choices"`, `"parts"`}
	object.members = append(object.members, member{keys[m.draw("moved to", len(keys))], v.value.clone()})
}

// respell changes the case of a key.
func (m *mutator) respell(key string) string {
	switch m.draw("case", 3) {
	case 0:
		return strings.ToUpper(key[:2]) + key[2:]
	case 1:
		return strings.ToUpper(key)
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
	switch m.draw("kind", 8) {
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
		return &node{open: '{'}
	case 6:
		if strings.HasPrefix(n.raw, `"`) { // text as what it holds
			if inner := parse(unquote(n.raw)); inner.open != 0 {
				return inner
			}
		}
		return &node{raw: `"` + n.String() + `"`} // broken JSON, mostly
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

// prefix returns what may stand in front of a body.
func (m *mutator) prefix() string {
	return []string{"", "", "", "\ufeff", " \n", "\t"}[m.draw("prefix", 6)]
}

// lines returns the events as newline-delimited JSON.
func (m *mutator) lines() string {
	end := []string{"\n", "\n", "\r\n", "\n\n"}[m.draw("line end", 4)]
	var b strings.Builder
	b.WriteString(m.prefix())
	for _, e := range m.good {
		b.WriteString(e.data.String() + end)
	}
	return b.String()
}

// events returns the events as server-sent events.
func (m *mutator) events() string {
	end := []string{"\n", "\n", "\n", "\r\n", "\r"}[m.draw("line end", 5)]
	var b strings.Builder
	b.WriteString(m.prefix())
	hidden := -1
	if m.draw("hide", 4) == 0 {
		hidden = m.draw("hidden", len(m.good)+1)
	}
	for i, e := range m.good {
		if i == hidden {
			b.WriteString(m.hidden(end))
		}
		if e.name != "" {
			b.WriteString("event: " + e.name + end)
		}
		data := e.data.String()
		if at := strings.Index(data, `,"`); at > 0 && m.draw("fold", 12) == 0 { // white space between members
			data = data[:at+1] + end + "data: " + data[at+1:]
		}
		b.WriteString("data: " + data + end + end)
	}
	if hidden == len(m.good) {
		b.WriteString(m.hidden(end))
	}
	return b.String()
}

// hidden returns an evil event that some readers do not take for one.
func (m *mutator) hidden(end string) string {
	if len(m.evil) == 0 {
		return ""
	}
	e := m.evil[m.draw("evil event", len(m.evil))]
	text := "data: " + e.data.String()
	if e.name != "" {
		text = "event: " + e.name + "\r" + text
	}
	switch m.draw("hidden how", 6) {
	case 0:
		return ": comment\r" + text + "\r\r" + end
	case 1:
		return "foo" + end + end + strings.ReplaceAll(text, "\r", end) + end + end
	case 2:
		return "id: 1\r" + text + "\r\r\n" + end
	case 3:
		return ": comment\u2028" + text + end + end
	case 4:
		return "data" + end + strings.ReplaceAll(text, "\r", end) + end + end
	}
	return "retry: 1" + end + ": " + text + end + end
}
