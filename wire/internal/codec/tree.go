package codec

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Tree has the members that a format knows of an object, or of each object in a list,
// with what it knows of their values. nil knows all members: the value is written whole.
type Tree map[string]Tree

// AsSent is the Tree of a value that is written as it was sent, such as arguments: what
// is wrong in them must reach the validator.
var AsSent = Tree{}

// scalar is the Tree of a value that is neither an object nor a list. One that is either,
// and in which a reader may find a call, is written as null.
var scalar = Tree{"": nil}

// Scalars returns t with members of those keys that are neither objects nor lists.
func (t Tree) Scalars(keys ...string) Tree { return t.With(scalar, keys...) }

// With returns t with members of those keys, whose values sub describes.
func (t Tree) With(sub Tree, keys ...string) Tree {
	more := maps.Clone(t)
	for _, k := range keys {
		more[k] = sub
	}
	return more
}

// deepest bounds how deep a value is nested that is written or searched.
const deepest = 1000

// Write returns v as JSON in one spelling, in which all readers find the same members:
// those that the format knows, and those in which no word for calls occurs. Of a key that
// appears twice it has the last member, which Value.Get returns. Of keys that differ in case
// only, the one in lower case stays, or else the last. __proto__ goes.
func (t Tree) Write(v rawjson.Value) string {
	var b strings.Builder
	b.Grow(len(v.Raw()))
	t.WriteTo(&b, v)
	return b.String()
}

// WriteTo writes what Write returns.
func (t Tree) WriteTo(b *strings.Builder, v rawjson.Value) { t.write(b, v.Indexed(), 0) }

// Keeps reports whether the member m is written: t has it, or it is unknown and no reader
// finds a call in it.
func (t Tree) Keeps(m rawjson.Value) bool {
	_, ok := t[m.Key()]
	return ok || !t.Knows(m.Key()) && FreeMember(m)
}

// Knows reports whether key is one that t has, or that a reader takes for one.
func (t Tree) Knows(key string) bool {
	if _, ok := t[key]; ok {
		return true
	}
	folded := rawjson.Fold(key)
	for k := range t {
		if rawjson.Fold(k) == folded {
			return true
		}
	}
	return false
}

// Value writes the value of m, a member of an object that t describes.
func (t Tree) Value(m rawjson.Value) string {
	if sub := t[m.Key()]; sub != nil {
		return sub.Write(m)
	}
	return Canonical(m)
}

// FreeMember reports whether the member m, which a format does not know, may be written:
// no reader finds a call in it.
func FreeMember(m rawjson.Value) bool {
	from, _ := m.KeySpan()
	_, to := m.Span()
	return m.Key() != "__proto__" && HasNoCallWord(m.Document()[from:to])
}

// Canonical writes all of v in one spelling.
func Canonical(v rawjson.Value) string {
	if k := v.Kind(); k != rawjson.Object && k != rawjson.Array && utf8.ValidString(v.Raw()) {
		return v.Raw()
	}
	return Tree(nil).Write(v)
}

func (t Tree) write(b *strings.Builder, v rawjson.Value, depth int) {
	_, scalar := t[""]
	switch kind := v.Kind(); {
	case t != nil && len(t) == 0:
		b.WriteString(OneLine(v.Raw()))
	case depth > deepest, scalar && (kind == rawjson.Object || kind == rawjson.Array) && !HasNoCallWord(v.Raw()):
		b.WriteString("null")
	case kind == rawjson.String && !utf8.ValidString(v.Raw()):
		rawjson.WriteQuoted(b, v.Str())
	case kind == rawjson.Array:
		before := byte('[')
		for e := range v.Each() {
			b.WriteByte(before)
			t.write(b, e, depth+1)
			before = ','
		}
		if before == '[' {
			b.WriteByte('[')
		}
		b.WriteByte(']')
	case kind == rawjson.Object:
		t.writeObject(b, v, depth)
	default:
		b.WriteString(v.Raw())
	}
}

func (t Tree) writeObject(b *strings.Builder, v rawjson.Value, depth int) {
	kept := func(m rawjson.Value) bool { return m.Key() != "__proto__" && (t == nil || t.Keeps(m)) }
	if v.Twins() {
		winners := map[string]rawjson.Value{} // by folded key
		for m := range v.Each() {
			key := m.Key()
			folded := rawjson.Fold(key)
			if kept(m) && (key == folded || winners[folded].Key() != folded) {
				winners[folded] = m
			}
		}
		kept = func(m rawjson.Value) bool { return winners[rawjson.Fold(m.Key())] == m }
	}
	o := ObjectWriter{B: b}
	for m := range v.Each() {
		if !kept(m) {
			continue
		}
		o.Key(m.Key())
		if sub := t[m.Key()]; t == nil || sub != nil || !writeUnchanged(b, m, depth+1) {
			sub.write(b, m, depth+1)
		}
	}
	o.End()
}

// writeUnchanged writes v as it came, such as the arguments of a call, if all readers find the
// same members in it; false if not.
func writeUnchanged(b *strings.Builder, v rawjson.Value, depth int) bool {
	if k := v.Kind(); k != rawjson.Object && k != rawjson.Array || !utf8.ValidString(v.Raw()) {
		return false
	}
	within := limits
	within.Depth = deepest - depth
	doc, err := rawjson.Parse(v.Raw(), within)
	if err != nil || !doc.HasPlainKeys() {
		return false
	}
	b.WriteString(OneLine(v.Raw()))
	return true
}

// words are the words for calls of all formats, in lower case and ASCII: of OpenAI chat
// and Ollama, of Gemini, of Anthropic, and of OpenAI Responses. Which format a client
// reads makes no difference. The quotes leave out server_tool_use, which usage names. The
// last three are for definitions of tools.
var words = []string{"tool_calls", "function_call", "functioncall", `"tool_use`, `_call"`, "_call_", "mcp_approval_request", "tool_changes", "tool_search_output", "additional_tools"}

// keys are the words as they are in JSON, with the quotation mark before a key. They leave out
// parallel_tool_calls and max_tool_calls, which each answer of OpenAI Responses names, and
// definitions.
var keys = append([]string{`"tool_calls`}, words[1:len(words)-3]...)

// MayHoldCall reports whether a word for calls, or for definitions of tools, occurs in text,
// in a spelling that some JSON reader takes for it. text need not be JSON.
func MayHoldCall(text []byte) bool { return MayHold(text, words...) }

// HasNoCallWord reports whether no word for calls occurs in text, a piece of JSON, in any
// spelling. For most texts it looks at each byte once, because each word holds "call", "_u",
// "_a" or an escape. MayHold reads the text around one of these.
func HasNoCallWord(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case 'c', 'C', '_', '\\':
			if !isHint(text[i:]) {
				continue
			}
		case 0: // any number of them may be inside a word
			return !MayHold([]byte(text), keys...)
		default:
			continue
		}
		if free, known := noCallWordAt(text, i); known {
			if !free {
				return false
			}
			continue
		}
		if MayHold([]byte(text[max(0, i-longestWord):min(len(text), i+3*longestWord)]), keys...) {
			return false
		}
		i += 2*longestWord - 1
	}
	return true
}

// isHint reports whether text begins with what each word for calls has a piece of: "call",
// "_u", "_a", or the escape of a letter.
func isHint(text string) bool {
	switch {
	case len(text) < 2:
		return false
	case text[0] == '_':
		return text[1]|0x20 == 'u' || text[1]|0x20 == 'a'
	case len(text) < 4:
		return false
	case text[0] == '\\':
		return text[1] == 'u' && (text[2] == '0' && text[3] <= '1' || text[2] == '2' && text[3] == '1')
	}
	return text[1]|0x20 == 'a' && text[2]|0x20 == 'l' && text[3]|0x20 == 'l'
}

// NamesCall reports whether a key or a type below v contains a word for calls, except in the
// members named in but. Such a word in another string is text. A value that is nested too deep to
// search counts as one with a word.
func NamesCall(v rawjson.Value, but ...string) bool { return namesCall(v, 0, but) }

func namesCall(v rawjson.Value, depth int, but []string) bool {
	if depth > deepest {
		return true
	}
	for m := range v.Each() {
		switch key := m.Key(); { // "" for an element of a list
		case slices.Contains(but, key):
		case !HasNoCallWord(rawjson.Quote(key)), rawjson.Fold(key) == "type" && !HasNoCallWord(m.Raw()), namesCall(m, depth+1, but):
			return true
		}
	}
	return false
}

// longestWord is at least the number of bytes of a word with all letters escaped, each in 6 bytes.
const longestWord = 128

// noCallWordAt is HasNoCallWord for the words around text[i] that are spelled in ASCII,
// without escapes. It is not known if the text there may have another spelling.
func noCallWordAt(text string, i int) (free, known bool) {
	var folded [2 * longestWord / 6]byte
	near := text[max(0, i-len(folded)/2):min(len(text), i+len(folded)/2)]
	for j := range len(near) {
		c := near[j]
		if c == 0 || c == '\\' || c >= utf8.RuneSelf {
			return false, false
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		folded[j] = c
	}
	return !slices.ContainsFunc(keys, func(w string) bool { return bytes.Contains(folded[:len(near)], []byte(w)) }), true
}

// MayHold reports whether one of words, in lower case and ASCII, occurs in body in a spelling
// that some JSON reader takes for it: with escapes, in any case as encoding/json folds it, or
// in UTF-16 or UTF-32. True may be wrong. False is certain.
func MayHold(body []byte, words ...string) bool {
	folded := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		c, n := foldedAt(body[i:])
		if i += n; c != 0 { // NUL: half of a letter in UTF-16
			folded = append(folded, c)
		}
	}
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(folded, []byte(w)) })
}

// foldedAt returns the first letter of b in lower case, 0xff for all that folds to no ASCII
// letter, and how many bytes it has. Sources: RFC 8259, section 7, for escapes;
// unicode.SimpleFold for the two letters beyond ASCII that fold to one of it, the long s and
// the Kelvin sign.
func foldedAt(b []byte) (letter byte, size int) {
	r, size := rune(b[0]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRune(b)
	} else if r == '\\' && len(b) >= 6 && b[1] == 'u' {
		if n, err := strconv.ParseUint(string(b[2:6]), 16, 32); err == nil {
			r, size = rune(n), 6
		}
	}
	switch {
	case r == 'ſ':
		return 's', size
	case r == '\u212a':
		return 'k', size
	case r >= utf8.RuneSelf:
		return 0xff, size
	case 'A' <= r && r <= 'Z':
		return byte(r) + 'a' - 'A', size
	}
	return byte(r), size
}
