package rawjson

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// Parse scans text, which must hold one value and white space around it.
// The error is an *Error. Work and memory are linear in len(text), and nothing
// is read of a text that is too long.
func Parse(text string, limits Limits) (*Doc, error) {
	limits = limits.WithDefaults()
	if len(text) > limits.Bytes {
		return nil, &Error{Code: Size, Offset: limits.Bytes,
			What: fmt.Sprintf("%d bytes are more than the %d allowed", len(text), limits.Bytes)}
	}
	doc := &Doc{text: text, nodes: make([]node, 0, min(most(text), maxAhead))}
	s := scanner{text: text, limits: limits, doc: doc}
	if err := s.scan(); err != nil {
		return nil, err
	}
	return doc, nil
}

// most returns a bound on the values of a JSON text: each but the first follows
// one of three characters.
func most(text string) int {
	return 1 + strings.Count(text, ",") + strings.Count(text, "[") + strings.Count(text, "{")
}

// maxAhead bounds the nodes that memory is asked for before they are seen: a
// text may be one long string.
const maxAhead = 1 << 16

// scanner is one scan of a text. It keeps no stack: the open containers are linked by
// their parents in the nodes.
type scanner struct {
	text   string
	pos    int
	limits Limits
	doc    *Doc
	open   int32 // the innermost open container, -1 for none
	depth  int

	known func(key string, at, depth int) int // see BorrowKnown
}

// OnScan is called with each text that is about to be scanned. It is nil but in
// tests that count scans, which set it while nothing else runs.
var OnScan func(text string)

// scan is a loop over "a value is next" and "a value just ended", with the
// open containers linked by their parents.
func (s *scanner) scan() error {
	if OnScan != nil {
		OnScan(s.text)
	}
	s.open = -1
	s.space()
	for {
		ended, err := s.value()
		if err != nil {
			return err
		}
		for ended {
			if s.open < 0 {
				s.space()
				if s.pos < len(s.text) {
					return &Error{Code: Trailing, Offset: s.pos, What: "more text after the JSON value"}
				}
				slices.Sort(s.doc.dups) // an inner object ends, and is looked at, before the outer one
				return nil
			}
			if ended, err = s.after(); err != nil {
				return err
			}
		}
	}
}

// value reads a scalar or opens a container; ended reports whether the value
// is complete. For a member, the key is read first.
func (s *scanner) value() (ended bool, err error) {
	i := int32(len(s.doc.nodes))
	s.doc.nodes = append(s.doc.nodes, node{parent: s.open, next: i + 1})
	n := &s.doc.nodes[i]
	if s.open >= 0 && s.doc.nodes[s.open].kind == Object {
		if err := s.key(n); err != nil {
			return false, err
		}
	}
	if s.pos >= len(s.text) {
		return false, s.unexpected("a value")
	}
	if int(i) >= s.limits.Values {
		return false, &Error{Code: Size, Offset: s.pos, What: fmt.Sprintf("more than %d values", s.limits.Values)}
	}
	n.start = int32(s.pos)
	switch c := s.text[s.pos]; {
	case c == '{':
		n.kind = Object
		return s.container(i, '}')
	case c == '[':
		n.kind = Array
		return s.container(i, ']')
	case c == '"':
		n.kind = String
		n.escaped, err = s.str()
	case c == '-' || '0' <= c && c <= '9':
		n.kind = Number
		err = s.number()
	case c == 't':
		n.kind, err = Bool, s.literal("true")
	case c == 'f':
		n.kind, err = Bool, s.literal("false")
	case c == 'n':
		n.kind, err = Null, s.literal("null")
	case 'a' <= c|0x20 && c|0x20 <= 'z':
		err = &Error{Code: Syntax, Offset: s.pos, What: noWord}
	default:
		err = s.unexpected("a value")
	}
	if err != nil {
		return false, err
	}
	n.end = int32(s.pos)
	return true, nil
}

// container opens the object or array of node i; ended reports whether it is empty.
func (s *scanner) container(i int32, closer byte) (ended bool, err error) {
	if s.depth++; s.depth > s.limits.Depth {
		return false, &Error{Code: Depth, Offset: s.pos, What: fmt.Sprintf("nested deeper than %d levels", s.limits.Depth)}
	}
	s.open = i
	if n := &s.doc.nodes[i]; closer == ']' && s.depth <= maxKnownDepth && s.known != nil {
		if bytes := s.known(s.text[n.keyStart:n.keyEnd], s.pos, s.depth); bytes > 0 {
			s.pos += bytes
			return true, nil // the last of these elements has ended
		}
	}
	s.pos++
	s.space()
	if s.pos == len(s.text) || s.text[s.pos] != closer {
		return false, nil
	}
	s.close()
	return true, nil
}

// after reads what follows an element or a member; ended reports whether that
// closed the container.
func (s *scanner) after() (ended bool, err error) {
	s.space()
	object := s.doc.nodes[s.open].kind == Object
	if s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == ',':
			s.pos++
			s.space()
			return false, nil
		case c == '}' && object, c == ']' && !object:
			s.close()
			return true, nil
		}
	}
	if object {
		return false, s.unexpected(`"," or "}"`)
	}
	return false, s.unexpected(`"," or "]"`)
}

// close ends the innermost open container, at its closing bracket.
func (s *scanner) close() {
	s.pos++
	s.depth--
	i := s.open
	n := &s.doc.nodes[i]
	n.end, n.next = int32(s.pos), int32(len(s.doc.nodes))
	if n.kind == Object {
		s.findDuplicates(Value{s.doc, i})
	}
	s.open = s.doc.nodes[i].parent
}

// findDuplicates records the members of an object whose key occurred before. It looks at the
// object when it has ended, so that it can use one small array for most objects.
func (s *scanner) findDuplicates(object Value) {
	const pairwise = 8 // members up to which comparing all pairs is cheaper than a map
	var first [pairwise]string
	var seen map[string]struct{}
	count := 0
	for m := range object.Each() {
		key, dup := m.Key(), false
		if count < pairwise {
			dup = slices.Contains(first[:count], key)
			first[count] = key
		} else {
			if seen == nil {
				seen = make(map[string]struct{}, 2*pairwise)
				for _, k := range first {
					seen[k] = struct{}{}
				}
			}
			_, dup = seen[key]
			seen[key] = struct{}{}
		}
		if dup {
			s.doc.dups = append(s.doc.dups, m.i)
		}
		count++
	}
}

// key reads the key of a member, up to its value.
func (s *scanner) key(n *node) error {
	if s.pos >= len(s.text) || s.text[s.pos] != '"' {
		return s.unexpected("a property name in double quotes")
	}
	start := s.pos
	var err error
	if n.keyEscaped, err = s.str(); err != nil {
		return err
	}
	n.keyStart, n.keyEnd = int32(start), int32(s.pos)
	s.space()
	if s.pos >= len(s.text) || s.text[s.pos] != ':' {
		return s.unexpected(`":" after the property name`)
	}
	s.pos++
	s.space()
	return nil
}

// space skips the white space of JSON (RFC 8259, section 2).
func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// plain holds the bytes that need no escape in a string.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// plainEnd returns where the bytes that need no escape end, from i on. It
// reads eight bytes at once, since most of most texts is read here.
func plainEnd(text string, i int) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(text); i += 8 {
		w := uint64(text[i]) | uint64(text[i+1])<<8 | uint64(text[i+2])<<16 | uint64(text[i+3])<<24 |
			uint64(text[i+4])<<32 | uint64(text[i+5])<<40 | uint64(text[i+6])<<48 | uint64(text[i+7])<<56
		quote, backslash := w^'"'*each, w^'\\'*each
		// The highest bit of a byte is set if it is below ' ', not ASCII, or one of the two. A set bit may set the bit of the next byte too.
		if special := ((w - ' '*each) | w | (quote-each)&^quote | (backslash-each)&^backslash) & high; special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(text) && plain[text[i]] {
		i++
	}
	return i
}

// StringEnd returns where the JSON string ends that starts at an offset, and
// whether it has no escapes. ok is false if it is not valid. Its bytes may be any
// with anyBytes.
func StringEnd(text string, at int, anyBytes bool) (end int, simple, ok bool) {
	if i := plainEnd(text, at+1); i < len(text) && text[i] == '"' {
		return i + 1, true, true
	}
	s := scanner{text: text, pos: at, limits: Limits{AnyBytes: anyBytes}}
	escaped, err := s.str()
	return s.pos, !escaped, err == nil
}

// NumberEnd returns where the JSON number ends that starts at an offset. ok is
// false if it is not valid or not within limits.
func NumberEnd(text string, at int, limits Limits) (end int, ok bool) {
	s := scanner{text: text, pos: at, limits: limits}
	err := s.number()
	return s.pos, err == nil
}

// str reads a string. escaped reports that it has escapes, so that its text is not
// simply the bytes between the quotes.
func (s *scanner) str() (escaped bool, err error) {
	for s.pos++; s.pos < len(s.text); {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return escaped, nil
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return false, err
			}
		case c < ' ':
			return false, &Error{Code: Syntax, Offset: s.pos, What: fmt.Sprintf("raw control character %#U in a string", c)}
		case plain[c]:
			s.pos = plainEnd(s.text, s.pos+1)
		default:
			r, size := utf8.DecodeRuneInString(s.text[s.pos:])
			if r == utf8.RuneError && size == 1 && !s.limits.AnyBytes {
				return false, &Error{Code: UTF8, Offset: s.pos, What: "a byte that is not UTF-8"}
			}
			s.pos += size
		}
	}
	return false, &Error{Code: Syntax, Offset: s.pos, What: "the text ends inside a string", AtEnd: true}
}

// escape reads one escape. A pair of surrogates is two of them: whether they belong
// together matters to unquote only.
func (s *scanner) escape() error {
	rest := s.text[s.pos+1:]
	if rest == "" {
		s.pos++
		return nil // str reports the end
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return nil
	case 'u':
		for i := 1; i <= 4; i++ {
			if i >= len(rest) {
				s.pos = len(s.text)
				return nil
			}
			if !isHex(rest[i]) {
				return &Error{Code: Syntax, Offset: s.pos, What: `a "\u" escape without four hexadecimal digits`}
			}
		}
		s.pos += 6
		return nil
	}
	return &Error{Code: Syntax, Offset: s.pos, What: "an escape that JSON does not have"}
}

// isHex reports whether c is a hexadecimal digit, in either case.
func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// number reads a number (RFC 8259, section 6). The limits on digits and exponent are
// for those who will calculate with it: 1e1000000 is short, and takes a megabyte as an
// integer.
func (s *scanner) number() error {
	start := s.pos
	if s.text[s.pos] == '-' {
		s.pos++
	}
	leadingZero := s.pos < len(s.text) && s.text[s.pos] == '0'
	if n := s.digits(); n == 0 {
		return s.unexpected("a digit")
	} else if leadingZero && n > 1 {
		return &Error{Code: Syntax, Offset: start, What: "a number with a leading zero"}
	}
	if s.pos < len(s.text) && s.text[s.pos] == '.' {
		s.pos++
		if s.digits() == 0 {
			return s.unexpected("a digit")
		}
	}
	exponent := 0
	if s.pos < len(s.text) && (s.text[s.pos] == 'e' || s.text[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.text) && (s.text[s.pos] == '+' || s.text[s.pos] == '-') {
			s.pos++
		}
		from := s.pos
		if s.digits() == 0 {
			return s.unexpected("a digit")
		}
		for _, c := range []byte(s.text[from:s.pos]) {
			exponent = int(min(10*int64(exponent)+int64(c-'0'), unlimited))
		}
	}
	if s.pos-start > s.limits.Number {
		return &Error{Code: Digits, Offset: start, What: fmt.Sprintf("a number of more than %d characters", s.limits.Number)}
	}
	if exponent > s.limits.Exponent {
		return &Error{Code: Digits, Offset: start, What: fmt.Sprintf("a number with an exponent past %d", s.limits.Exponent)}
	}
	return nil
}

// digits skips digits, and returns how many there were.
func (s *scanner) digits() int {
	from := s.pos
	for s.pos < len(s.text) && '0' <= s.text[s.pos] && s.text[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - from
}

// noWord is what is wrong with a bare word, such as None or True, which models write for
// null and true.
const noWord = "a word other than true, false and null, without double quotes"

// literal reads true, false or null. A text that ends within the word is cut off; any
// other letters are a word that JSON does not have, such as None.
func (s *scanner) literal(word string) error {
	for i := range len(word) {
		if s.pos+i >= len(s.text) || s.text[s.pos+i] != word[i] {
			if s.pos+i >= len(s.text) {
				s.pos += i
				return s.unexpected(word)
			}
			return &Error{Code: Syntax, Offset: s.pos, What: noWord}
		}
	}
	s.pos += len(word)
	return nil
}

// unexpected is the error of a character in the place of what was wanted. AtEnd is set
// where the text ends there: a longer one might be valid.
func (s *scanner) unexpected(wanted string) error {
	if s.pos >= len(s.text) {
		return &Error{Code: Syntax, Offset: len(s.text), What: "the text ends where " + wanted + " should be", AtEnd: true}
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.pos:])
	return &Error{Code: Syntax, Offset: s.pos, What: fmt.Sprintf("%q where %s should be", r, wanted)}
}
