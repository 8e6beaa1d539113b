package codec

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
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
			s.at, s.List = map[string]int{}, slices.Grow(s.List, 8)
		}
		s.at[folded] = len(s.List)
		s.List = append(s.List, Member{key, raw})
	case s.List[i].Key != folded && key == folded, s.List[i].Key == key && raw != "null":
		s.List[i] = Member{key, raw}
	}
}

// Get returns the value of the member key; "" without one, and for null.
func (s *Members) Get(key string) string {
	i, have := s.at[rawjson.Fold(key)]
	if !have || s.List[i].Key != key || s.List[i].Raw == "null" {
		return ""
	}
	return s.List[i].Raw
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

// DataURL returns the data of a part as a data: URL, or the address of a part without data.
// Source: RFC 2397.
func DataURL(p middleware.Part) string {
	if len(p.Data) == 0 {
		return p.URL
	}
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

// Replace returns the edit that puts raw, a JSON text, in v's place.
func Replace(v rawjson.Value, raw string) rawjson.Edit {
	start, end := v.Span()
	return rawjson.Edit{Start: start, End: end, Text: raw}
}

// Only returns the member of that key, absent without one. The error is ErrUnencodable if the
// key appears twice, or if object is not an object: then readers would disagree on the edited
// member.
func Only(object rawjson.Value, key string) (rawjson.Value, error) {
	if object.Kind() != rawjson.Object {
		return rawjson.Value{}, Unencodablef("no object to hold %s", key)
	}
	var found rawjson.Value
	for m := range object.Each() {
		if m.Key() != key {
			continue
		}
		if found.Exists() {
			return rawjson.Value{}, Unencodablef("%s appears twice", key)
		}
		found = m
	}
	return found, nil
}

// Append returns the edit that puts raw, an element or a whole member, at the
// end of container. It is one insertion. It does not go with a second edit that
// adds to the container or takes children out: neither knows of the other's
// comma. Patch and Splice do.
func Append(container rawjson.Value, raw string) rawjson.Edit {
	_, end := container.Span()
	at := end - 1
	for last := range container.Each() {
		_, at = last.Span()
	}
	if !container.Empty() {
		raw = "," + raw
	}
	return rawjson.Edit{Start: at, End: at, Text: raw}
}

// Splice returns the edits that make items, JSON texts, the elements of array:
// elements at both ends that stay are not touched, so that appending is one
// insertion. If as many come as go between them, each takes the place of one.
func Splice(array rawjson.Value, items []string) []rawjson.Edit {
	old := slices.Collect(array.Each())
	from := 0
	for from < len(old) && from < len(items) && old[from].Raw() == items[from] {
		from++
	}
	oldTo, newTo := len(old), len(items)
	for oldTo > from && newTo > from && old[oldTo-1].Raw() == items[newTo-1] {
		oldTo--
		newTo--
	}
	if from == oldTo && from == newTo {
		return nil
	}
	if oldTo == newTo {
		var edits []rawjson.Edit
		for i := from; i < oldTo; i++ {
			if old[i].Raw() != items[i] {
				edits = append(edits, Replace(old[i], items[i]))
			}
		}
		return edits
	}
	middle := strings.Join(items[from:newTo], ",")
	var start, end int
	switch {
	case from == newTo: // elements go, and a comma with each
		i := -1
		return array.Cut(func(rawjson.Value) bool { i++; return from <= i && i < oldTo })
	case from < oldTo: // elements are replaced
		start, _ = old[from].Span()
		_, end = old[oldTo-1].Span()
	case from > 0: // insert after an element
		_, start = old[from-1].Span()
		end, middle = start, ","+middle
	case len(old) > 0: // insert at the front
		start, _ = old[0].Span()
		end, middle = start, middle+","
	default: // the array was empty
		_, end = array.Span()
		start, end = end-1, end-1
	}
	return []rawjson.Edit{{Start: start, End: end, Text: middle}}
}

// Shift returns edits for a larger text in which the edited text begins at offset.
func Shift(edits []rawjson.Edit, offset int) []rawjson.Edit {
	out := make([]rawjson.Edit, len(edits))
	for i, e := range edits {
		out[i] = rawjson.Edit{Start: e.Start + offset, End: e.End + offset, Text: e.Text}
	}
	return out
}

// Within returns the text of v with edits that are inside of v.
func Within(v rawjson.Value, edits []rawjson.Edit) (string, error) {
	start, _ := v.Span()
	return Apply(v.Raw(), Shift(edits, -start))
}

// Apply makes the edits. The error wraps ErrUnencodable: overlapping edits come from a body in
// which one value has two places.
func Apply(text string, edits []rawjson.Edit) (string, error) {
	out, err := rawjson.Apply(text, edits)
	if err != nil {
		return "", Unencodablef("%v", err)
	}
	return out, nil
}

// OneLine returns a JSON text without line breaks, which it can only have
// between its tokens.
func OneLine(json string) string {
	if !strings.ContainsAny(json, "\r\n") {
		return json
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(json)
}

// IsObject reports whether text is one JSON object that may be written into a
// body: UTF-8, and nested to no more than 1,000 levels.
func IsObject(text string) bool {
	doc, err := rawjson.Parse(text, rawjson.Limits{Bytes: MaxBody, Depth: 1000, Values: maxValues, Number: -1, Exponent: -1})
	return err == nil && doc.Root().Kind() == rawjson.Object
}

// Int returns the whole number that v is, 0 for anything else: a count as
// providers write it, 12 or 12.0.
func Int(v rawjson.Value) int64 {
	if v.Kind() != rawjson.Number {
		return 0
	}
	if n, err := strconv.ParseInt(v.Raw(), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(v.Raw(), 64)
	if err != nil || math.IsNaN(f) || f != math.Trunc(f) || math.Abs(f) >= 1<<62 {
		return 0
	}
	return int64(f)
}

// Float returns the number that v is, nil for anything else.
func Float(v rawjson.Value) *float64 {
	if v.Kind() != rawjson.Number {
		return nil
	}
	f, err := strconv.ParseFloat(v.Raw(), 64)
	if err != nil {
		return nil
	}
	return &f
}

// Number returns f as JSON: null, as in JavaScript, if it is not a finite number.
func Number(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "null"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// Count returns n as JSON.
func Count(n int64) string { return strconv.FormatInt(n, 10) }

// Patch collects the changes of one object, so that members that come find
// their commas whatever goes.
type Patch struct {
	object rawjson.Value
	edits  []rawjson.Edit
	added  []string
	gone   map[string]bool
	err    error
}

// NewPatch returns a patch of object that changes nothing.
func NewPatch(object rawjson.Value) *Patch { return &Patch{object: object, gone: map[string]bool{}} }

// Put sets members, each key once. A member with Raw "" is removed.
// The old value of a key is replaced, or a member is added at the end.
func (p *Patch) Put(members ...Member) {
	for _, m := range members {
		if m.Raw == "" {
			p.gone[m.Key] = true
			continue
		}
		old, err := Only(p.object, m.Key)
		switch {
		case err != nil:
			p.err = err
		case old.Exists():
			p.edits = append(p.edits, Replace(old, m.Raw))
		default:
			p.added = append(p.added, rawjson.Quote(m.Key)+":"+m.Raw)
		}
	}
}

// Add adds edits that were made inside of the object's members. It takes what
// their maker returned.
func (p *Patch) Add(edits []rawjson.Edit, err error) {
	if err != nil {
		p.err = err
	}
	p.edits = append(p.edits, edits...)
}

// Edits returns the collected changes as edits of the text that contains the object. The error
// wraps ErrUnencodable.
func (p *Patch) Edits() ([]rawjson.Edit, error) {
	if p.err != nil {
		return nil, p.err
	}
	edits, stays := p.edits, false
	if len(p.gone) > 0 {
		edits = append(edits, p.object.Cut(func(m rawjson.Value) bool { return p.gone[m.Key()] })...)
	}
	if len(p.added) == 0 {
		return edits, nil
	}
	for m := range p.object.Each() {
		stays = stays || !p.gone[m.Key()]
	}
	last := Append(p.object, strings.Join(p.added, ","))
	if !stays {
		last.Text = strings.Join(p.added, ",")
	}
	return append(edits, last), nil
}

// WithoutEmpty returns body without its members of these names that are null or an empty
// list, if it is a JSON object.
func WithoutEmpty(body []byte, names ...string) []byte {
	doc, err := Parse(string(body))
	if err != nil || doc.Root().Kind() != rawjson.Object {
		return body
	}
	text, err := Within(doc.Root(), doc.Root().Cut(func(m rawjson.Value) bool {
		return slices.Contains(names, m.Key()) && (m.Kind() == rawjson.Null || m.Kind() == rawjson.Array && m.Len() == 0)
	}))
	if err != nil {
		return body
	}
	return []byte(text)
}
