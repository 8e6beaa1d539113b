package schema

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Empties says which empty values, null, {} and [], make SurelyValid say no,
// because something else has to look at them.
type Empties uint8

// The answers.
const (
	AllowEmpty     Empties = iota
	RefuseOptional         // those of declared, not required properties
	RefuseAnyEmpty         // all but the text as a whole
)

// SurelyValid reports whether text is one JSON object within limits, without
// duplicate keys, that satisfies s, and holds none of those empties. False
// means that Validate has to be asked. It reads the text once, allocates
// nothing for most schemas, and never says true where jsonschema/v5 would
// refuse.
func (s *Schema) SurelyValid(text string, limits rawjson.Limits, empties Empties) bool {
	limits = limits.WithDefaults()
	if s.fast == nil || len(text) > limits.Bytes || limits.Depth > maxFastDepth {
		return false
	}
	f := fastScan{text: text, limits: limits, empties: empties, work: 8*len(text) + 1024}
	at := f.space(0)
	if at >= len(text) || text[at] != '{' {
		return false
	}
	end, ok := f.value(s.fast, at, 0)
	return ok && f.space(end) == len(text)
}

// maxFastDepth bounds the recursion.
const maxFastDepth = 512

// fastScan reads values against nodes. Every method returns where the value
// ends, and whether it is surely valid.
type fastScan struct {
	text    string
	limits  rawjson.Limits
	empties Empties
	work    int // bytes that may still be read: branches are read again, and multiply
}

func (f *fastScan) space(i int) int {
	for i < len(f.text) {
		switch f.text[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

func (f *fastScan) value(n *node, at, depth int) (end int, ok bool) {
	if n == nil || at >= len(f.text) {
		return 0, false
	}
	switch c := f.text[at]; {
	case c == '{':
		end, ok = f.object(n, at, depth+1)
	case c == '[':
		end, ok = f.array(n, at, depth+1)
	case c == '"':
		end, ok = f.str(n, at)
	case c == '-' || '0' <= c && c <= '9':
		end, ok = f.number(n, at)
	case c == 't':
		end, ok = f.literal(n, at, "true", kindBool)
	case c == 'f':
		end, ok = f.literal(n, at, "false", kindBool)
	case c == 'n':
		end, ok = f.literal(n, at, "null", kindNull)
	}
	if f.work -= end - at; !ok || f.work < 0 {
		return 0, false
	}
	return end, n.all == nil && n.any == nil || f.several(n, at, depth)
}

// several reads the value again for each schema that applies to it as well.
func (f *fastScan) several(n *node, at, depth int) bool {
	for _, sub := range n.all {
		if _, ok := f.value(sub, at, depth); !ok {
			return false
		}
	}
	for _, sub := range n.any {
		if _, ok := f.value(sub, at, depth); ok {
			return true
		}
	}
	return n.any == nil
}

func (f *fastScan) literal(n *node, at int, word string, kind kinds) (int, bool) {
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

// escapeLen is the length of the escape that s starts with, 0 if it is none.
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

func (f *fastScan) str(n *node, at int) (int, bool) {
	end, simple, ok := f.quoted(at)
	if !ok || n.types&kindString == 0 {
		return 0, false
	}
	if n.minLength <= 0 && n.maxLength < 0 && n.pattern == nil && !n.enumerated {
		return end, true
	}
	if !simple {
		return 0, false
	}
	s := f.text[at+1 : end-1]
	if n.enumerated && !slices.Contains(n.values, s) {
		return 0, false
	}
	if n.minLength > 0 || n.maxLength >= 0 {
		if c := utf8.RuneCountInString(s); c < n.minLength || n.maxLength >= 0 && c > n.maxLength {
			return 0, false
		}
	}
	return end, n.pattern == nil || n.pattern.MatchString(s)
}

func (f *fastScan) number(n *node, at int) (int, bool) {
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
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') || i-at > f.limits.Number {
		return 0, false // rare: v5 judges exponents
	}
	if integer && n.types&kindInteger == 0 || !integer && n.types&kindNumber == 0 {
		return 0, false // 5.0 may be an integer: v5 says
	}
	if n.enumerated && !slices.Contains(n.literals, text[at:i]) {
		return 0, false
	}
	if n.bounds == nil && n.divisor == 0 {
		return i, true
	}
	return i, n.inRange(text[at:i], integer)
}

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

// maxOthers is how many undeclared keys of one object are compared for
// duplicates; with more, or with duplicates, v5 is asked.
const maxOthers = 16

func (f *fastScan) object(n *node, at, depth int) (int, bool) {
	if n.types&kindObject == 0 || n.enumerated || depth > f.limits.Depth {
		return 0, false
	}
	var seen bitset
	var others [maxOthers]string
	count := 0
	i := f.space(at + 1)
	if i < len(f.text) && f.text[i] == '}' {
		return i + 1, seen.covers(&n.required)
	}
	for {
		if i >= len(f.text) || f.text[i] != '"' {
			return 0, false
		}
		end, simple, ok := f.quoted(i)
		if !ok || !simple {
			return 0, false
		}
		key := f.text[i+1 : end-1]
		if i = f.space(end); i >= len(f.text) || f.text[i] != ':' {
			return 0, false
		}
		i = f.space(i + 1)
		sub, optional := n.others, false
		if p := n.find(key); p >= 0 {
			if seen.has(p) {
				return 0, false
			}
			seen.set(p)
			sub, optional = n.props[p].schema, n.props[p].declared && !n.required.has(p)
		} else {
			if n.closed || count == maxOthers || slices.Contains(others[:count], key) {
				return 0, false
			}
			others[count] = key
			count++
		}
		if f.empties != AllowEmpty && (optional || f.empties == RefuseAnyEmpty) && f.emptyAt(i) {
			return 0, false
		}
		if i, ok = f.value(sub, i, depth); !ok {
			return 0, false
		}
		var closed bool
		if i, closed, ok = f.next(i, '}'); !ok {
			return 0, false
		}
		if closed {
			return i, seen.covers(&n.required)
		}
	}
}

// next reads the comma or the end after an element or a member.
func (f *fastScan) next(at int, closer byte) (i int, closed, ok bool) {
	i = f.space(at)
	if i >= len(f.text) {
		return 0, false, false
	}
	if f.text[i] == closer {
		return i + 1, true, true
	}
	return f.space(i + 1), false, f.text[i] == ','
}

func (n *node) find(key string) int {
	if n.index != nil {
		if i, ok := n.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range n.props {
		if n.props[i].name == key {
			return i
		}
	}
	return -1
}

// emptyAt reports whether the value at i may be null, {} or [], or one that
// becomes so when its own empties go: then the inner one says no first.
func (f *fastScan) emptyAt(i int) bool {
	if i >= len(f.text) {
		return true
	}
	switch c := f.text[i]; c {
	case 'n':
		return true
	case '{', '[':
		j := f.space(i + 1)
		return j >= len(f.text) || f.text[j] == c+2
	}
	return false
}

func (f *fastScan) array(n *node, at, depth int) (int, bool) {
	if n.types&kindArray == 0 || n.enumerated || depth > f.limits.Depth {
		return 0, false
	}
	var strs [maxOthers]string // for uniqueItems
	count := 0
	i := f.space(at + 1)
	if i < len(f.text) && f.text[i] == ']' {
		return i + 1, n.minItems <= 0
	}
	for {
		sub := n.items
		if count < len(n.prefix) {
			sub = n.prefix[count]
		}
		if f.empties == RefuseAnyEmpty && f.emptyAt(i) {
			return 0, false
		}
		end, ok := f.value(sub, i, depth)
		if !ok {
			return 0, false
		}
		if n.unique {
			if count == maxOthers || f.text[i] != '"' || slices.Contains(strs[:count], f.text[i:end]) {
				return 0, false
			}
			strs[count] = f.text[i:end]
		}
		count++
		var closed bool
		if i, closed, ok = f.next(end, ']'); !ok {
			return 0, false
		}
		if closed {
			return i, count >= n.minItems && (n.maxItems < 0 || count <= n.maxItems)
		}
	}
}
