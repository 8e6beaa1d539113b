package schema

import (
	"net/url"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// A keyword location of v5 is the path of keywords that validation took, such
// as /properties/anyOf/items/0/$ref/type. Which segments are keywords, and
// which are names and indices below one, follows from the keywords alone: a
// property may have any name.

// location is what a keyword location ends in. For example:
//
//	/properties/city/type          keyword type
//	/anyOf/0                       keyword anyOf, below
//	/dependentRequired/card/0      keyword dependentRequired, below, listed
//	/propertyNames/maxLength       keyword maxLength, names
type location struct {
	keyword string // the last keyword, "" for the schema as a whole
	below   bool   // it names one schema of the keyword's list or map
	listed  bool   // it names an entry of a list of names below that
	names   bool   // the value is the name of a property
}

// parseLocation reads a keyword location. For example, /properties/type/enum ends in
// the keyword enum, since the name type stands below properties.
func parseLocation(path string) location {
	var l location
	for path != "" {
		l.below, l.listed = false, false
		l.keyword, path = rawjson.CutFirst(path)
		switch form := view.Holds(l.keyword); {
		case l.keyword == "propertyNames":
			l.names = true
		case form.Has(view.Map) || l.keyword == "dependentRequired":
			if path == "" {
				return l
			}
			_, path = rawjson.CutFirst(path)
			l.below = true
			if seg, rest := rawjson.CutFirst(path); rawjson.Index(seg) >= 0 { // dependentRequired/name/0
				path, l.listed = rest, true
			}
		case form.Has(view.List):
			if seg, rest := rawjson.CutFirst(path); rawjson.Index(seg) >= 0 {
				path, l.below = rest, true
			}
		}
	}
	return l
}

// localPointer returns the pointer that a reference into the same document
// holds. It is false for a reference by anchor or by URL.
func localPointer(ref string) (pointer string, ok bool) {
	if ref != "#" && !strings.HasPrefix(ref, "#/") {
		return "", false
	}
	return unescapePercent(ref[1:]), true
}

// unescapePercent decodes the fragment of a URL, which v5 writes its pointers as. What
// is not encoded that way is returned as it is.
func unescapePercent(pointer string) string {
	if p, err := url.PathUnescape(pointer); err == nil {
		return p
	}
	return pointer
}

// comparePointers orders by segment, indices by number, and what encloses before what
// is in it. It gives issues the order in which a reader meets the places.
func comparePointers(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a = rawjson.CutFirst(a)
		y, b = rawjson.CutFirst(b)
		if x == y {
			continue
		}
		if n, m := rawjson.Index(x), rawjson.Index(y); n >= 0 && m >= 0 {
			return n - m
		}
		return strings.Compare(x, y)
	}
	return len(a) - len(b)
}
