package schema

import (
	"net/url"
	"strings"

	"github.com/toolmend/toolmend/internal/schema/view"
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
		switch form := view.Holds(l.keyword); {
		case l.keyword == "propertyNames":
			l.names = true
		case form.Has(view.Map) || l.keyword == "dependentRequired":
			if path == "" {
				return l
			}
			_, path = cutFirst(path)
			l.below = true
			if seg, rest := peek(path); isIndex(seg) { // dependentRequired/name/0
				path, l.listed = rest, true
			}
		case form.Has(view.List):
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

// localPointer returns the pointer that a reference into the same document
// holds.
func localPointer(ref string) (pointer string, ok bool) {
	if ref != "#" && !strings.HasPrefix(ref, "#/") {
		return "", false
	}
	return unescapePercent(ref[1:]), true
}

func unescapePercent(pointer string) string {
	if p, err := url.PathUnescape(pointer); err == nil {
		return p
	}
	return pointer
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
