package schema

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema/view"
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
	f := fastScan{text: text, limits: limits, empties: empties, work: workFor(text)}
	at := f.space(0)
	if at >= len(text) || text[at] != '{' {
		return false
	}
	end, ok := f.value(s.fast, at, 0)
	return ok && f.space(end) == len(text)
}

// surelyValid is SurelyValid for a value of any kind that was parsed before.
func (s *Schema) surelyValid(text string) bool {
	limits := rawjson.Limits{Bytes: -1, Depth: maxFastDepth, Number: -1, Exponent: -1}
	f := fastScan{text: text, limits: limits.WithDefaults(), work: workFor(text)}
	_, ok := f.value(s.fast, 0, 0)
	return ok
}

// workFor is a few times what reading text once takes: enough for branches,
// and linear.
func workFor(text string) int { return 8*len(text) + 4096 }

// maxFastDepth bounds the recursion, maxFastPattern the text that a pattern
// reads here, in bytes: the next to look may read it again.
const (
	maxFastDepth   = 512
	maxFastPattern = 64 << 10
)

// fastScan reads values against nodes. Every method returns where the value
// ends, and whether it is surely valid. It checks the JSON as it goes: what it accepts
// is valid JSON too, since nothing else has read the text before.
type fastScan struct {
	text    string
	limits  rawjson.Limits
	empties Empties
	work    int // values and bytes of text that may still be read: branches are read again, and multiply
}

// space returns where the white space at i ends. Long stretches of it cost work, as
// branches read them again.
func (f *fastScan) space(i int) int {
	if i < len(f.text) && f.text[i] > ' ' {
		return i
	}
	start := i
	for i < len(f.text) && (f.text[i] == ' ' || f.text[i] == '\t' || f.text[i] == '\n' || f.text[i] == '\r') {
		i++
	}
	f.work -= (i - start) / 8
	return i
}

// value reads the value at a place, in that many containers, against n.
func (f *fastScan) value(n *node, at, depth int) (end int, ok bool) {
	if f.work--; n == nil || at >= len(f.text) || f.work < 0 {
		return 0, false
	}
	if n.all != nil || n.any != nil {
		return f.several(n, at, depth)
	}
	return f.alone(n, at, depth)
}

// alone reads a value against what n itself says.
func (f *fastScan) alone(n *node, at, depth int) (end int, ok bool) {
	switch c := f.text[at]; {
	case c == '"':
		return f.str(n, at)
	case c == '{':
		return f.object(n, at, depth+1)
	case c == '[':
		return f.array(n, at, depth+1)
	case c == '-' || '0' <= c && c <= '9':
		return f.number(n, at)
	case c == 't':
		return f.literal(n, at, "true", view.Bool)
	case c == 'f':
		return f.literal(n, at, "false", view.Bool)
	case c == 'n':
		return f.literal(n, at, "null", view.Null)
	}
	return 0, false
}

// several reads the value again for each schema that applies to it as well.
// What one of them does not declare another may, so that of optional empties
// none passes here.
func (f *fastScan) several(n *node, at, depth int) (end int, ok bool) {
	empties := f.empties
	defer func() { f.empties = empties }()
	if empties == RefuseOptional {
		f.empties = RefuseAnyEmpty
	}
	if !n.bare {
		if end, ok = f.alone(n, at, depth); !ok {
			return 0, false
		}
	}
	for _, sub := range n.all {
		if end, ok = f.value(sub, at, depth); !ok {
			return 0, false
		}
	}
	for _, sub := range n.any {
		if end, ok = f.value(sub, at, depth); ok {
			return end, true
		}
	}
	return end, n.any == nil
}

// maxOthers is how many undeclared keys of one object are compared for
// duplicates; with more, or with duplicates, v5 is asked.
const maxOthers = 16

// object reads an object. A key with escapes is for v5, as it may spell a key without
// any. Each key may be there once: a duplicate of a declared one is seen in the bitset,
// of any other one in the list.
func (f *fastScan) object(n *node, at, depth int) (int, bool) {
	if n.types&view.Object == 0 || n.enumerated || depth > f.limits.Depth {
		return 0, false
	}
	var seen bitset
	var others [maxOthers]string
	count, members := 0, 0
	i := f.space(at + 1)
	if i < len(f.text) && f.text[i] == '}' {
		return i + 1, seen.covers(&n.required) && n.minProps <= 0
	}
	for {
		if i >= len(f.text) || f.text[i] != '"' {
			return 0, false
		}
		end, simple, ok := f.quoted(i)
		if !ok || !simple {
			return 0, false
		}
		f.work -= end - i
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
		members++
		if closed {
			return i, seen.covers(&n.required) && members >= n.minProps && (n.maxProps < 0 || members <= n.maxProps)
		}
	}
}

// next reads the comma or the end after an element or a member. A comma before the end is
// not seen here: the next value is missing then.
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

// find returns the index of a property, -1 if it is neither declared nor required.
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

// emptyAt reports whether the value at i is null, {} or [], or cut off. One that becomes
// empty when its own empties go is not looked at here: the inner one says no first.
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

// array reads an array. Of elements that must differ, only up to maxOthers strings are
// compared.
func (f *fastScan) array(n *node, at, depth int) (int, bool) {
	if n.types&view.Array == 0 || n.enumerated || depth > f.limits.Depth {
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
			if count == maxOthers || f.text[i] != '"' || strings.IndexByte(f.text[i:end], '\\') >= 0 || slices.Contains(strs[:count], f.text[i:end]) {
				return 0, false // an escape may spell what stands there without
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
