package rawjson

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Quote returns s as a JSON string, without escapes for HTML. What is not
// UTF-8 becomes U+FFFD.
func Quote(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	WriteQuoted(&b, s)
	return b.String()
}

// WriteQuoted writes Quote(s). Bytes that need no escape are written in runs.
func WriteQuoted(b *strings.Builder, s string) {
	const hex = "0123456789abcdef"
	b.WriteByte('"')
	from := 0 // of the run
	for i, r := range s {
		if r >= ' ' && r != '"' && r != '\\' && r != 0x7f && r != utf8.RuneError {
			continue
		}
		b.WriteString(s[from:i])
		from = i + 1
		switch r {
		case '"':
			b.WriteString(`\"`)
		case '\\':
			b.WriteString(`\\`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case utf8.RuneError:
			_, size := utf8.DecodeRuneInString(s[i:])
			from = i + size
			b.WriteRune(r)
		default:
			b.WriteString(`\u00`)
			b.WriteByte(hex[r>>4])
			b.WriteByte(hex[r&15])
		}
	}
	b.WriteString(s[from:])
	b.WriteByte('"')
}

// unquote returns the text of a valid JSON string. A lone surrogate
// becomes U+FFFD, as in encoding/json, or if exact is true the three bytes that UTF-8
// would have for it. A string without escapes is a piece of the text and takes no
// memory.
func unquote(quoted string, escaped, exact bool) string {
	s := quoted[1 : len(quoted)-1]
	if !escaped {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for {
		plain, rest, found := strings.Cut(s, `\`)
		b.WriteString(plain)
		if !found {
			return b.String()
		}
		c := rest[0]
		switch s = rest[1:]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(s)
			s = s[4:]
			if utf16.IsSurrogate(r) && strings.HasPrefix(s, `\u`) {
				if pair := utf16.DecodeRune(r, hex4(s[2:])); pair != utf8.RuneError {
					r, s = pair, s[6:]
				}
			}
			if exact && utf16.IsSurrogate(r) {
				b.Write([]byte{0xed, 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f})
				continue
			}
			b.WriteRune(r) // a surrogate left over becomes U+FFFD
			continue
		}
		b.WriteByte(c)
	}
}

// hex4 returns the number that four hexadecimal digits are; s was scanned.
func hex4(s string) rune {
	n, _ := strconv.ParseUint(s[:4], 16, 32)
	return rune(n)
}

// Any returns v as encoding/json with UseNumber would: map[string]any, []any,
// string, json.Number, bool or nil. The last of duplicate keys wins.
func (v Value) Any() any {
	switch v.Kind() {
	case Bool:
		return v.Raw() == "true"
	case Number:
		return json.Number(v.Raw())
	case String:
		return v.Str()
	case Array:
		a := make([]any, 0, v.Len())
		for e := range v.Each() {
			a = append(a, e.Any())
		}
		return a
	case Object:
		m := make(map[string]any, v.Len())
		for e := range v.Each() {
			start, end := e.KeySpan()
			m[Unquote(v.doc.text[start:end])] = e.Any()
		}
		return m
	}
	return nil
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")
var pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")

// Escape returns key as a segment of a JSON Pointer (RFC 6901).
func Escape(key string) string { return pointerEscape.Replace(key) }

// Unescape returns the key of a segment of a JSON Pointer.
func Unescape(seg string) string {
	if strings.IndexByte(seg, '~') < 0 { // Replace allocates
		return seg
	}
	return pointerUnescape.Replace(seg)
}

// Segments returns the unescaped segments of a JSON Pointer; none for "".
func Segments(pointer string) []string {
	if pointer == "" {
		return nil
	}
	segs := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range segs {
		segs[i] = Unescape(segs[i])
	}
	return segs
}

// Pointer returns the JSON Pointer of v; "" for the root and for an absent v. It counts
// the elements before v: for many values of one document use Pointers.
func (v Value) Pointer() string {
	if !v.Exists() {
		return ""
	}
	parent := v.Parent()
	switch parent.Kind() {
	case Object:
		return parent.Pointer() + "/" + Escape(v.Key())
	case Array:
		if v.doc.index != nil {
			if elements, known := v.doc.index.elements[parent.i]; known {
				i, _ := slices.BinarySearch(elements, v.i)
				return parent.Pointer() + "/" + strconv.Itoa(i)
			}
		}
		i := 0
		for e := range parent.Each() {
			if e.i == v.i {
				break
			}
			i++
		}
		return parent.Pointer() + "/" + strconv.Itoa(i)
	}
	return ""
}

// At returns the value at a JSON Pointer below v; absent if there is none.
func (v Value) At(pointer string) Value {
	for pointer != "" {
		var seg string
		seg, pointer = CutFirst(pointer)
		switch v.Kind() {
		case Object:
			v = v.Get(Unescape(seg))
		case Array:
			v = v.element(seg)
		default:
			return Value{}
		}
	}
	return v
}

// element returns the element of an array at the index that seg is; absent if there is
// none.
func (v Value) element(seg string) Value {
	n := Index(seg)
	if n < 0 {
		return Value{}
	}
	if v.doc.index != nil {
		if elements, known := v.doc.index.elements[v.i]; known {
			if n >= len(elements) {
				return Value{}
			}
			return Value{v.doc, elements[n]}
		}
	}
	for e := range v.Each() {
		if n--; n < 0 {
			return e
		}
	}
	return Value{}
}

// Unquote returns the text of a valid JSON string.
func Unquote(quoted string) string {
	return unquote(quoted, strings.IndexByte(quoted, '\\') >= 0, false)
}

// Exact is Unquote for comparing: a lone surrogate equals no other text.
func Exact(quoted string) string {
	return unquote(quoted, strings.IndexByte(quoted, '\\') >= 0, true)
}

// Offset returns the value that starts at an offset from the start of v's text.
func (v Value) Offset(at int) Value {
	at += int(v.node().start)
	nodes := v.doc.nodes
	i := sort.Search(len(nodes), func(i int) bool { return int(nodes[i].start) >= at })
	return Value{v.doc, int32(i)}
}
