package codec

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Member is a member of an object: its key and the JSON text of its value.
// Raw is "" if the object does not have the member.
type Member struct{ Key, Raw string }

// Object returns the members as a JSON object. It leaves out members with Raw "".
func Object(members ...Member) string {
	size := 2
	for _, m := range members {
		size += len(`"":,`) + len(m.Key) + len(m.Raw)
	}
	var b strings.Builder
	b.Grow(size)
	o := ObjectWriter{B: &b}
	o.Put(members...)
	o.End()
	return b.String()
}

// ObjectWriter writes an object to B, a member at a time.
type ObjectWriter struct {
	B     *strings.Builder
	begun bool
}

// Put writes members. It leaves out those with Raw "".
func (o *ObjectWriter) Put(members ...Member) {
	for _, m := range members {
		if m.Raw != "" {
			o.Key(m.Key)
			o.B.WriteString(m.Raw)
		}
	}
}

// Key begins a member, whose value the caller writes to B.
func (o *ObjectWriter) Key(key string) {
	before := byte(',')
	if !o.begun {
		before, o.begun = '{', true
	}
	o.B.WriteByte(before)
	rawjson.WriteQuoted(o.B, key)
	o.B.WriteByte(':')
}

// End closes the object.
func (o *ObjectWriter) End() {
	if !o.begun {
		o.B.WriteByte('{')
	}
	o.B.WriteByte('}')
}

// Clean returns a text that is written, such that all clients read it alike: with U+FFFD
// for each run of bytes that are not UTF-8, and with escapes for NEL, LS and PS, which only
// strings hold. Clients that take these for the ends of lines may join the lines.
func Clean(text string) string {
	if !utf8.ValidString(text) { // far faster
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	if cut(text) {
		text = lineEnds.Replace(text)
	}
	return text
}

var lineEnds = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// cut reports whether text has a letter at which some client cuts it, or that it drops.
func cut(text string) bool {
	return strings.Contains(text, bom) || strings.Contains(text, "\u0085") || strings.Contains(text, "\u2028") || strings.Contains(text, "\u2029")
}

// Array returns the JSON texts as a JSON array.
func Array(items []string) string { return "[" + strings.Join(items, ",") + "]" }

// QuoteAsSent returns s as a JSON string that keeps the bytes of s that are not
// UTF-8, as a body may hold them.
func QuoteAsSent(s string) string {
	if utf8.ValidString(s) {
		return rawjson.Quote(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for s != "" {
		n := 0
		for n < len(s) {
			r, size := utf8.DecodeRuneInString(s[n:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			n += size
		}
		valid := rawjson.Quote(s[:n])
		b.WriteString(valid[1 : len(valid)-1])
		if n < len(s) {
			b.WriteByte(s[n])
			n++
		}
		s = s[n:]
	}
	b.WriteByte('"')
	return b.String()
}

// Members collects the members of objects that several units bring, such as the end of a
// message: of each key the last value. The zero Members is empty.
type Members struct {
	List []Member
	at   map[string]int // by folded key: no reader finds two of one key
}

// Put adds a member, or sets the one that is there unless the new value is null. Of two
// keys that differ in case, the one in lower case counts.
func (s *Members) Put(key, raw string) {
	folded := rawjson.Fold(key)
	i, have := s.at[folded]
	switch {
	case !have:
		if s.at == nil {
			s.at = map[string]int{}
		}
		s.at[folded] = len(s.List)
		s.List = append(s.List, Member{key, raw})
	case s.List[i].Key != folded && key == folded, s.List[i].Key == key && raw != "null":
		s.List[i] = Member{key, raw}
	}
}

// Joined is a text that comes in several JSON strings. They are joined as JSON and
// decoded once: a letter that is escaped as a surrogate pair may be divided between two.
type Joined struct{ raw []byte }

// Add adds the string v. Of any other value it adds the JSON text.
func (j *Joined) Add(v rawjson.Value) {
	raw := v.Raw()
	if v.Kind() != rawjson.String {
		raw = QuoteAsSent(raw)
	}
	_ = j.AddRaw(raw[1 : len(raw)-1])
}

// AddRaw adds a JSON string without its quotes. It always returns nil.
func (j *Joined) AddRaw(raw string) error {
	j.raw = append(j.raw, raw...)
	return nil
}

// Len returns the number of bytes of the JSON string without its quotes.
func (j *Joined) Len() int { return len(j.raw) }

// JSON returns the text as a JSON string.
func (j *Joined) JSON() string { return `"` + string(j.raw) + `"` }

// String returns the text.
func (j *Joined) String() string {
	doc, err := Parse(j.JSON())
	if err != nil { // longer than a body
		return ""
	}
	return doc.Root().Str()
}

// DataURL returns the data of a part as a data: URL. Source: RFC 2397.
func DataURL(p middleware.Part) string {
	return "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// FromDataURL reads a data: URL; false unless it holds base64 of a known type,
// which DataURL writes the same.
func FromDataURL(url string) (mediaType string, data []byte, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", nil, false
	}
	mediaType, text, ok := strings.Cut(rest, ";base64,")
	if !ok || mediaType == "" || text == "" {
		return "", nil, false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return mediaType, data, err == nil
}
