package rescue

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// cursor reads a value of a notation that nests lists and objects, as JSON does.
type cursor struct {
	*source
	i     int
	depth int
}

// maxDepth is the deepest nesting of a value.
const maxDepth = 64

// nested calls read one level deeper.
func (c *cursor) nested(read func() (string, verdict)) (string, verdict) {
	if c.depth == maxDepth {
		return "", broken
	}
	c.depth++
	defer func() { c.depth-- }()
	return read()
}

// list reads the elements of a list up to closing, and returns them as JSON. A
// comma may follow the last one.
func (c *cursor) list(closing byte, value func() (string, verdict)) (string, verdict) {
	var elements []string
	v := c.each(closing, func() verdict {
		element, v := value()
		elements = append(elements, element)
		return v
	})
	return "[" + strings.Join(elements, ", ") + "]", v
}

// object reads members up to a brace, and returns them as JSON. Each key must
// occur once. key moves behind the colon too.
func (c *cursor) object(key, value func() (string, verdict)) (string, verdict) {
	var o object
	v := c.each('}', func() verdict {
		name, v := key()
		if v != whole {
			return v
		}
		text, v := value()
		if v == whole && !o.add(name, text) {
			return broken
		}
		return v
	})
	return o.text(), v
}

// each moves behind an opening mark, reads what commas separate, and moves behind
// closing.
func (c *cursor) each(closing byte, read func() verdict) verdict {
	c.i = c.space(c.i + 1)
	for c.i < len(c.text) {
		if c.text[c.i] == closing {
			c.i++
			return whole
		}
		if v := read(); v != whole {
			return v
		}
		switch v := c.comma(closing); v {
		case more:
			return more
		case notCall:
			return broken
		}
	}
	return more
}

// named returns the key that a JSON string holds, and moves behind the colon at i.
func (c *cursor) named(text string, i int) (string, verdict) {
	switch c.literal(i, ":") {
	case more:
		return "", more
	case notCall:
		return "", broken
	}
	doc, err := rawjson.Parse(text, anySize)
	if err != nil {
		return "", broken
	}
	c.i = c.space(i + 1)
	return doc.Root().Str(), whole
}

// comma moves behind a comma, or to the closing byte.
func (c *cursor) comma(closing byte) verdict {
	c.i = c.space(c.i)
	switch {
	case c.i == len(c.text):
		return more
	case c.text[c.i] == ',':
		c.i = c.space(c.i + 1)
		return whole
	case c.text[c.i] == closing:
		return whole
	}
	return notCall
}
