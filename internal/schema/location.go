package schema

import (
	"net/url"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// A keyword location of v5 is the path of keywords that validation took, such
// as /properties/anyOf/items/0/$ref/type. Which segments are keywords, and
// which are names and indices below one, follows from the keywords alone: a
// property may have any name.

// location is what a keyword location ends in.
type location struct {
	keyword string // the last keyword, "" for the schema as a whole
	below   bool   // it names one schema of the keyword's list or map
	listed  bool   // it names an entry of a list of names below that
	names   bool   // the value is the name of a property
}

func parseLocation(path string) location {
	var l location
	for path != "" {
		l.below, l.listed = false, false
		l.keyword, path = cutFirst(path)
		switch l.keyword {
		case "propertyNames":
			l.names = true
		case "$defs", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "patternProperties", "properties":
			if path == "" {
				return l
			}
			_, path = cutFirst(path)
			l.below = true
			if seg, rest := peek(path); isIndex(seg) { // dependentRequired/name/0
				path, l.listed = rest, true
			}
		case "allOf", "anyOf", "items", "oneOf", "prefixItems":
			if seg, rest := peek(path); isIndex(seg) {
				path, l.below = rest, true
			}
		}
	}
	return l
}

// peek is cutFirst for a path that may be at its end.
func peek(path string) (seg, rest string) {
	if path == "" {
		return "", ""
	}
	return cutFirst(path)
}

// isIndex reports whether seg is an index: no keyword is.
func isIndex(seg string) bool { return seg != "" && strings.Trim(seg, "0123456789") == "" }

func cutLast(pointer string) (parent, last string) {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return "", pointer
	}
	return pointer[:i], pointer[i+1:]
}

func unescapePercent(pointer string) string {
	if p, err := url.PathUnescape(pointer); err == nil {
		return p
	}
	return pointer
}

// finder looks values up by pointer. In a large text it remembers the children
// of each container that it went through, so that many look-ups stay linear.
type finder struct {
	root rawjson.Value
	kids map[rawjson.Value]children // nil: a small text
}

type children struct {
	list []rawjson.Value
	keys map[string]rawjson.Value
}

// small is the text up to which reading it again is cheaper than remembering.
const small = 4 << 10

func newFinder(root rawjson.Value) *finder {
	f := &finder{root: root}
	if len(root.Raw()) > small {
		f.kids = map[rawjson.Value]children{}
	}
	return f
}

// all remembers every container, after which f is safe for concurrent use.
func (f *finder) all() *finder {
	var walk func(v rawjson.Value)
	walk = func(v rawjson.Value) {
		if k := v.Kind(); k == rawjson.Object || k == rawjson.Array {
			f.children(v)
			for c := range v.Each() {
				walk(c)
			}
		}
	}
	if f.kids != nil {
		walk(f.root)
	}
	return f
}

func (f *finder) children(v rawjson.Value) children {
	c, ok := f.kids[v]
	if ok {
		return c
	}
	if v.Kind() == rawjson.Object {
		c.keys = map[string]rawjson.Value{}
		for m := range v.Each() {
			c.keys[m.Key()] = m
		}
	} else {
		c.list = slices.Collect(v.Each())
	}
	f.kids[v] = c
	return c
}

// get returns the member of that key.
func (f *finder) get(v rawjson.Value, key string) rawjson.Value {
	if f.kids == nil || v.Kind() != rawjson.Object {
		return v.Get(key)
	}
	return f.children(v).keys[key]
}

// at returns the value at a pointer.
func (f *finder) at(pointer string) rawjson.Value {
	v := f.root
	for rest := pointer; rest != "" && v.Exists(); {
		var seg string
		seg, rest = cutFirst(rest)
		v = f.child(v, seg)
	}
	return v
}

// child returns what one segment of a pointer stands for below v.
func (f *finder) child(v rawjson.Value, seg string) rawjson.Value {
	switch v.Kind() {
	case rawjson.Object:
		if strings.Contains(seg, "~") {
			seg = rawjson.Segments("/" + seg)[0]
		}
		return f.get(v, seg)
	case rawjson.Array:
		i := index(seg)
		if f.kids != nil {
			if list := f.children(v).list; i >= 0 && i < len(list) {
				return list[i]
			}
			return rawjson.Value{}
		}
		for e := range v.Each() {
			if i--; i == -1 {
				return e
			}
		}
	}
	return rawjson.Value{}
}

// index reads an index of a pointer, -1 if seg is none.
func index(seg string) int {
	if !isIndex(seg) || len(seg) > 9 || len(seg) > 1 && seg[0] == '0' {
		return -1
	}
	n := 0
	for _, c := range []byte(seg) {
		n = 10*n + int(c-'0')
	}
	return n
}

// comparePointers orders by segment, indices by number.
func comparePointers(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a = cutFirst(a)
		y, b = cutFirst(b)
		if x == y {
			continue
		}
		if n, m := index(x), index(y); n >= 0 && m >= 0 {
			return n - m
		}
		return strings.Compare(x, y)
	}
	return len(a) - len(b)
}

func cutFirst(pointer string) (seg, rest string) {
	pointer = pointer[1:]
	if i := strings.IndexByte(pointer, '/'); i >= 0 {
		return pointer[:i], pointer[i:]
	}
	return pointer, ""
}
