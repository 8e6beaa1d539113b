package rawjson

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// HasPlainKeys reports whether all readers find the same members in d: no key appears
// twice in an object, differs from another one in case only (encoding/json takes the one
// for the other), is escaped, or is __proto__, which JavaScript takes for the members of
// another object.
func (d *Doc) HasPlainKeys() bool {
	if len(d.dups) > 0 {
		return false
	}
	for i := range d.nodes {
		n := &d.nodes[i]
		if n.keyEscaped || n.keyEnd > 0 && d.text[n.keyStart:n.keyEnd] == `"__proto__"` {
			return false
		}
		if n.kind == Object && (Value{d, int32(i)}).Twins() {
			return false
		}
	}
	return true
}

// pairs is the number of members up to which all pairs are compared.
const pairs = 24

// Twins reports whether v has members whose keys are equal, or differ in case only.
func (v Value) Twins() bool {
	var keys [pairs]string
	var more map[string]bool
	n := 0
	for m := range v.Each() {
		key := m.Key()
		if n < pairs {
			for _, k := range keys[:n] {
				if (len(k) == len(key) || !isASCII(k) || !isASCII(key)) && strings.EqualFold(k, key) {
					return true
				}
			}
			keys[n] = key
		} else {
			if more == nil {
				more = make(map[string]bool, 2*pairs)
				for _, k := range keys {
					more[Fold(k)] = true
				}
			}
			key = Fold(key)
			if more[key] {
				return true
			}
			more[key] = true
		}
		n++
	}
	return false
}

// Fold returns the same text for keys that differ in case only, as encoding/json
// compares them.
func Fold(key string) string {
	if isASCII(key) {
		return strings.ToLower(key)
	}
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return unicode.ToLower(least)
	}, key)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
