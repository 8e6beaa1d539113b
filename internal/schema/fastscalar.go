package schema

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/schema/view"
)

// literal reads true, false or null.
func (f *fastScan) literal(n *node, at int, word string, kind view.Kinds) (int, bool) {
	end := at + len(word)
	ok := end <= len(f.text) && f.text[at:end] == word && n.types&kind != 0 && (!n.enumerated || slices.Contains(n.literals, word))
	return end, ok
}

// plain marks the bytes of a string that need no look: ASCII but for control
// characters, the quote and the backslash.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// quoted reads a string. simple: it has no escapes, so its text is what stands
// between the quotes.
func (f *fastScan) quoted(at int) (end int, simple, ok bool) {
	text, escaped := f.text, false
	for i := at + 1; i < len(text); {
		c := text[i]
		switch {
		case plain[c]:
			i++
		case c == '"':
			return i + 1, !escaped, true
		case c == '\\':
			size := escapeLen(text[i:])
			if size == 0 {
				return 0, false, false
			}
			i += size
			escaped = true
		case c < utf8.RuneSelf:
			return 0, false, false
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				return 0, false, false
			}
			i += size
		}
	}
	return 0, false, false
}

// escapeLen is the length of the escape that s starts with, 0 if it is not one. A pair of
// surrogates is two escapes.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < 6 {
			return 0
		}
		for _, c := range []byte(s[2:6]) {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// str reads a string. Where the schema asks for more than the type, one with escapes is
// for v5: its text would have to be unescaped first.
func (f *fastScan) str(n *node, at int) (int, bool) {
	if n.types&view.String == 0 {
		return 0, false
	}
	end, simple, ok := f.quoted(at)
	if !ok {
		return 0, false
	}
	f.work -= end - at
	if n.minLength <= 0 && n.maxLength < 0 && n.pattern == nil && n.format == nil && !n.enumerated {
		return end, true
	}
	if !simple {
		return 0, false
	}
	s := f.text[at+1 : end-1]
	if n.enumerated && !n.hasValue(s) {
		return 0, false
	}
	if n.minLength > 0 || n.maxLength >= 0 {
		if c := utf8.RuneCountInString(s); c < n.minLength || n.maxLength >= 0 && c > n.maxLength {
			return 0, false
		}
	}
	if n.pattern != nil {
		if f.work -= len(s) * n.patternSize; f.work < 0 || len(s) > maxFastPattern || !n.pattern.MatchString(s) {
			return 0, false
		}
	}
	return end, n.format == nil || n.format(s)
}

// hasValue reports whether s is one of the strings that are allowed.
func (n *node) hasValue(s string) bool {
	if n.valueSet != nil {
		_, ok := n.valueSet[s]
		return ok
	}
	return slices.Contains(n.values, s)
}

// number reads a number, in the grammar of RFC 8259, section 6. One with an exponent,
// where the schema asks for more than the type, is for v5.
func (f *fastScan) number(n *node, at int) (end int, ok bool) {
	text, i := f.text, at
	if text[i] == '-' {
		i++
	}
	first := i
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	if i == first || text[first] == '0' && i > first+1 {
		return 0, false
	}
	integer := true
	if i < len(text) && text[i] == '.' {
		integer = false
		from := i + 1
		for i++; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		}
		if i == from {
			return 0, false
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		if n.enumerated || n.bounds != nil || n.short || n.divisor != 0 || n.types&view.Number == 0 {
			return 0, false // rare: v5 validates exponents
		}
		if i, ok = f.exponent(i); !ok {
			return 0, false
		}
		integer = false
	}
	if i-at > f.limits.Number {
		return 0, false
	}
	if integer && n.types&view.Integer == 0 || !integer && n.types&view.Number == 0 {
		return 0, false // 5.0 may be an integer: v5 says
	}
	if n.enumerated && !slices.Contains(n.literals, text[at:i]) {
		return 0, false
	}
	if n.bounds == nil && !n.short && n.divisor == 0 {
		return i, true
	}
	return i, n.inRange(text[at:i], integer)
}

// exponent reads the exponent of a number, from the "e".
func (f *fastScan) exponent(i int) (end int, ok bool) {
	if i++; i < len(f.text) && (f.text[i] == '+' || f.text[i] == '-') {
		i++
	}
	from, size := i, 0
	for ; i < len(f.text) && '0' <= f.text[i] && f.text[i] <= '9'; i++ {
		if size = 10*size + int(f.text[i]-'0'); size > f.limits.Exponent {
			return 0, false
		}
	}
	return i, i > from
}

// inRange reports whether a number of at most exactDigits characters is within the
// bounds. Comparing float64s is exact for those: see exactDigits.
func (n *node) inRange(number string, integer bool) bool {
	if len(number) > exactDigits {
		return false
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	for _, b := range n.bounds {
		switch {
		case b.lower && v < b.limit, !b.lower && v > b.limit, b.exclusive && v == b.limit:
			return false
		}
	}
	if n.divisor == 0 {
		return true
	}
	i, err := strconv.ParseInt(number, 10, 64)
	return integer && err == nil && i%n.divisor == 0
}
