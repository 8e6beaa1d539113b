package envelope

import (
	"encoding/json"
	"strings"
)

// tree is an event with its data parsed; data is nil for a mark such as [DONE].
type tree struct {
	name string
	data *node
}

// node is a JSON value that keeps the order of members, duplicates and the
// spelling of keys.
type node struct {
	open    byte // '{', '[', or 0 for a scalar
	members []member
	items   []*node
	raw     string // of a scalar
}

// member has its key as JSON text.
type member struct {
	key   string
	value *node
}

// parse reads JSON. A text that is not JSON is a scalar.
func parse(text string) *node {
	if !json.Valid([]byte(text)) {
		return &node{raw: text}
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return read(d)
}

// read reads the next value. The text is valid, so that there are no errors.
func read(d *json.Decoder) *node {
	token, _ := d.Token()
	n := &node{}
	switch token {
	case json.Delim('{'):
		n.open = '{'
		for d.More() {
			key, _ := d.Token()
			n.members = append(n.members, member{quote(key.(string)), read(d)})
		}
		_, _ = d.Token()
	case json.Delim('['):
		n.open = '['
		for d.More() {
			n.items = append(n.items, read(d))
		}
		_, _ = d.Token()
	default:
		raw, _ := json.Marshal(token)
		n.raw = string(raw)
	}
	return n
}

// String returns the JSON text.
func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

// write writes n without white space.
func (n *node) write(b *strings.Builder) {
	switch n.open {
	case '{':
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(m.key + ":")
			m.value.write(b)
		}
		b.WriteByte('}')
	case '[':
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	default:
		b.WriteString(n.raw)
	}
}

// objects calls f for every object in n, with the node at the same place in
// twin; that is nil where twin has none.
func (n *node) objects(twin *node, f func(object, twin *node)) {
	if n.open == '{' {
		f(n, twin)
	}
	for _, m := range n.members {
		m.value.objects(twin.get(m.key), f)
	}
	for i, item := range n.items {
		var other *node
		if twin != nil && i < len(twin.items) {
			other = twin.items[i]
		}
		item.objects(other, f)
	}
}

// lists calls f for every array in n.
func (n *node) lists(f func(list *node)) {
	if n.open == '[' {
		f(n)
	}
	for _, m := range n.members {
		m.value.lists(f)
	}
	for _, item := range n.items {
		item.lists(f)
	}
}

// get returns the first value of key, nil if there is none.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// clone returns a deep copy.
func (n *node) clone() *node {
	c := &node{open: n.open, raw: n.raw}
	for _, m := range n.members {
		c.members = append(c.members, member{m.key, m.value.clone()})
	}
	for _, item := range n.items {
		c.items = append(c.items, item.clone())
	}
	return c
}
