package schema

import (
	"net/url"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

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
