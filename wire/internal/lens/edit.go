package lens

import (
	"slices"
	"sort"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Edit collects the changes of one object: members to set and lists to splice,
// so that all that is added to the object finds its commas.
type Edit struct {
	l       Lens
	object  rawjson.Value
	members []Member
	edits   []rawjson.Edit
	err     error
}

// Edit returns an Edit of object that changes nothing.
func (l Lens) Edit(object rawjson.Value) *Edit { return &Edit{l: l, object: object} }

// Put sets members, whose keys are paths.
func (e *Edit) Put(members ...Member) { e.members = append(e.members, members...) }

// Elements makes items the elements of the list at path, as Lens.Elements does.
func (e *Edit) Elements(path string, items []string) {
	object, keys := e.object, strings.Split(path, "/")
	var twice error
	for len(keys) > 1 {
		if _, err := e.l.Only(object, keys[0]); err != nil {
			twice = err
		}
		object, keys = e.l.Get(object, keys[0]), keys[1:]
	}
	switch edits, err := e.l.Elements(object, keys[0], items); {
	case !e.l.Get(object, keys[0]).Exists():
		if len(items) > 0 {
			e.Put(List(path, items))
		}
	case err == nil && len(edits) > 0:
		e.Add(edits, twice)
	default:
		e.Add(nil, err)
	}
}

// Add adds edits inside of the object's members. It takes what their maker
// returned.
func (e *Edit) Add(edits []rawjson.Edit, err error) {
	if err != nil && e.err == nil {
		e.err = err
	}
	e.edits = append(e.edits, edits...)
}

// Edits returns the changes as edits of the text that contains the object. The error wraps
// ErrUnencodable.
func (e *Edit) Edits() ([]rawjson.Edit, error) {
	if e.err != nil || len(e.members) == 0 {
		return e.edits, e.err
	}
	edits, err := e.l.Put(e.object, e.members...)
	return append(edits, e.edits...), err
}

// Apply returns the text of doc, which contains the object, with the changes made, if they are
// Clear.
func (e *Edit) Apply(doc *rawjson.Doc) (string, error) {
	edits, err := e.Edits()
	if err == nil {
		err = Clear(doc, edits)
	}
	if err != nil {
		return "", err
	}
	return codec.Apply(doc.Text(), edits)
}

// Text returns the object's own text with the changes made.
func (e *Edit) Text() (string, error) {
	edits, err := e.Edits()
	if err != nil {
		return "", err
	}
	return codec.Within(e.object, edits)
}

// Tools returns the texts of now: a tool's own if it is as it was in old, else what write
// makes of it. at has the place of each in old, -1 for a new tool.
func (l Lens) Tools(old, now []middleware.Tool, write func(middleware.Tool) (string, error)) (out []string, at []int, err error) {
	native := func(t middleware.Tool) *middleware.Native { return t.Native }
	out = texts(l, now, native)
	at = Align(texts(l, old, native), out)
	for i, at := range at {
		if at < 0 || !codec.SameTool(old[at], now[i]) {
			if out[i], err = write(now[i]); err != nil {
				return nil, nil, err
			}
		}
	}
	return out, at, nil
}

// WithParams returns params, a JSON object or nothing, and members that it does not have,
// as an object. It is ErrUnencodable if params is not an object, and if it has something
// else where an object has to hold a member: then the member would be lost.
func (l Lens) WithParams(members []Member, params []byte) (string, error) {
	if len(params) == 0 {
		return l.Object(members...), nil
	}
	object, err := codec.ParseObject(string(params))
	if err == nil {
		object, err = codec.ParseObject(codec.Canonical(object)) // of a key that it has twice, the last one counts
	}
	if err != nil {
		return "", codec.Unencodablef("Params is not a JSON object")
	}
	var missing []Member
	for _, m := range members {
		if m.Raw != "" && !l.Has(object, m.Key) {
			missing = append(missing, m)
		}
	}
	return l.Set(object, missing...)
}

// Has reports whether object has the member at path, be it null.
func (l Lens) Has(object rawjson.Value, path string) bool {
	head, rest, deep := strings.Cut(path, "/")
	for m := range object.Each() {
		if l.is(m.Key(), head) && (!deep || l.Has(m, rest)) {
			return true
		}
	}
	return false
}

// Rewrite returns the JSON text of now, which came from n: the text of n with
// what differs set in it, or a fresh object if n is nil or of another dialect.
//
// read reads a value from the text of n, as decoding does. The text of a value that is
// the same as now stays. members projects a value; v is the text that is edited, absent
// for a fresh object, for what is written in one of several ways. The error wraps
// ErrUnencodable.
func Rewrite[T any](l Lens, n *middleware.Native, now T, same func(was, now T) bool,
	read func(v rawjson.Value) (T, error), members func(v rawjson.Value, value T) ([]Member, error)) (string, error) {
	v, err := l.Value(n)
	if err != nil {
		return "", err
	}
	var before []Member
	if v.Exists() {
		was, err := read(v)
		switch {
		case err != nil:
			return "", codec.Unencodablef("what was stored: %v", err)
		case same(was, now):
			return v.Raw(), nil
		}
		if before, err = members(v, was); err != nil {
			return "", err
		}
	}
	after, err := members(v, now)
	if err != nil {
		return "", err
	}
	return l.Write(v, before, after)
}

// Write returns v's text with the members set in which now differs from was;
// without v, an object of now.
func (l Lens) Write(v rawjson.Value, was, now []Member) (string, error) {
	if !v.Exists() {
		return l.Object(now...), nil
	}
	return l.Set(v, Differ(was, now)...)
}

// Set returns v's own text with members set in it. The error wraps
// ErrUnencodable.
func (l Lens) Set(v rawjson.Value, members ...Member) (string, error) {
	if len(members) == 0 {
		return v.Raw(), nil
	}
	edits, err := l.Put(v, members...)
	if err != nil {
		return "", err
	}
	return codec.Within(v, edits)
}

// Changed is Set for a caller that needs the object again.
func (l Lens) Changed(v rawjson.Value, members ...Member) (rawjson.Value, error) {
	raw, err := l.Set(v, members...)
	if err != nil {
		return v, err
	}
	return codec.ParseObject(raw)
}

// SetIn is Set for the text of an object.
func (l Lens) SetIn(object string, members ...Member) (string, error) {
	v, err := codec.ParseObject(object)
	if err != nil {
		return "", err
	}
	return l.Set(v, members...)
}

// Put returns the edits that set members of object, in the text that contains object. Call it
// once for one object, with all of its members: two edits that add to an object do not know of
// each other's comma. The error wraps ErrUnencodable: a key on the way appears twice, or its
// value is not an object.
func (l Lens) Put(object rawjson.Value, members ...Member) ([]rawjson.Edit, error) {
	p := codec.NewPatch(object)
	for len(members) > 0 {
		head, _, deep := strings.Cut(members[0].Key, "/")
		key, err := l.spelled(object, head)
		if err != nil {
			return nil, err
		}
		if !deep {
			p.Put(Member{Key: key, Raw: members[0].Raw})
			members = members[1:]
			continue
		}
		var in []Member
		in, members = below(members, head)
		switch old, err := codec.Only(object, key); {
		case err != nil:
			return nil, err
		case old.Kind() == rawjson.Object:
			p.Add(l.Put(old, in...))
		case old.Exists() && old.Kind() != rawjson.Null:
			return nil, codec.Unencodablef("%s is not an object", head)
		default:
			if text := l.Object(in...); text != "{}" {
				p.Put(Member{Key: key, Raw: text})
			}
		}
	}
	return p.Edits()
}

// Object returns members as a JSON object. It leaves out members with Raw "".
func (l Lens) Object(members ...Member) string {
	var flat []Member
	for len(members) > 0 {
		head, _, deep := strings.Cut(members[0].Key, "/")
		if !deep {
			flat, members = append(flat, members[0]), members[1:]
			continue
		}
		var in []Member
		in, members = below(members, head)
		if text := l.Object(in...); text != "{}" {
			flat = append(flat, Member{Key: head, Raw: text})
		}
	}
	return codec.Object(flat...)
}

// below splits off the members that go into the object head.
func below(members []Member, head string) (in, rest []Member) {
	for _, m := range members {
		if key, ok := strings.CutPrefix(m.Key, head+"/"); ok {
			in = append(in, Member{Key: key, Raw: m.Raw})
		} else {
			rest = append(rest, m)
		}
	}
	return in, rest
}

// Elements returns the edits that make items, JSON texts, the elements of the
// list name of object. Elements that stay keep their bytes, and appending is
// one insertion. A list that is missing is added, unless there are no items. The
// error wraps ErrUnencodable.
func (l Lens) Elements(object rawjson.Value, name string, items []string) ([]rawjson.Edit, error) {
	old := l.Get(object, name)
	var edits []rawjson.Edit
	switch bare := l.Bare && old.Kind() == rawjson.Object; {
	case !old.Exists() && len(items) == 0, bare && len(items) == 1 && items[0] == old.Raw():
		return nil, nil
	case old.Kind() != rawjson.Array:
		return l.Put(object, Raw(name, codec.Array(items)))
	default:
		edits = codec.Splice(old, items)
	}
	if len(edits) == 0 {
		return nil, nil // whatever else has that key
	}
	_, err := l.Only(object, name)
	return edits, err
}

// Only returns the member name for an edit inside it, absent without one. The error is
// ErrUnencodable if object has the member twice, in one spelling or in two.
func (l Lens) Only(object rawjson.Value, name string) (rawjson.Value, error) {
	key, err := l.spelled(object, name)
	if err != nil {
		return rawjson.Value{}, err
	}
	return codec.Only(object, key)
}

// spelled returns name as object spells it.
func (l Lens) spelled(object rawjson.Value, name string) (string, error) {
	if l.Is == nil {
		return name, nil
	}
	key := ""
	for m := range object.Each() {
		switch k := m.Key(); {
		case k == key || !l.is(k, name):
		case key != "":
			return "", codec.Unencodablef("the object has %s in two spellings: keep one", name)
		default:
			key = k
		}
	}
	if key == "" {
		return name, nil
	}
	return key, nil
}

// Clear returns ErrUnencodable if one of edits lies inside a member whose key
// appears twice: readers differ on which of the two counts. An edit may
// replace a value that holds such members as a whole.
func Clear(doc *rawjson.Doc, edits []rawjson.Edit) error {
	twice := doc.Duplicates()
	if len(twice) == 0 || len(edits) == 0 {
		return nil
	}
	edits = slices.SortedFunc(slices.Values(edits), func(a, b rawjson.Edit) int { return a.Start - b.Start })
	for _, v := range twice {
		start, end := v.Span()
		i := sort.Search(len(edits), func(i int) bool { return edits[i].Start > start })
		if i < len(edits) && edits[i].End < end {
			return codec.Unencodablef("the change lies in a member that its object has twice: keep one")
		}
	}
	return nil
}

// Align returns, for each text of now, the index of the same text in old. Each index is used
// once; -1 means that old has no such text left. "" is not a text.
//
// The neighbours decide between equal texts. A text that both lists have once is an anchor.
// Equal neighbours of an anchor follow it on both sides, then equal texts at both ends, then
// the others in order. So the right ones of several equal results are found in a history that
// was cut at its front. Source: P. Heckel, A technique for isolating differences between
// files, 1978.
func Align(old, now []string) []int {
	at := make([]int, len(now))
	if len(now) >= len(old) && slices.Equal(old, now[:len(old)]) && !slices.Contains(old, "") {
		for i := range at { // nothing but new texts at the end
			at[i] = i
			if i >= len(old) {
				at[i] = -1
			}
		}
		return at
	}
	a := aligner{old: old, now: now, at: at, used: make([]bool, len(old)), places: make(map[string][]int, len(old))}
	for i, text := range old {
		a.places[text] = append(a.places[text], i)
	}
	times := map[string]int{}
	for i, text := range now {
		at[i] = -1
		if text != "" && len(a.places[text]) > 0 {
			a.known = append(a.known, i)
			times[text]++
		}
	}
	for _, i := range a.known {
		if p := a.places[now[i]]; len(p) == 1 && times[now[i]] == 1 {
			a.pair(i, p[0])
		}
	}
	a.follow(len(old), -1) // no end to begin from
	a.follow(-1, len(old))
	for _, i := range a.known {
		for at[i] < 0 && len(a.places[now[i]]) > 0 {
			a.pair(i, a.places[now[i]][0])
			a.places[now[i]] = a.places[now[i]][1:]
		}
	}
	return at
}

type aligner struct {
	old, now []string
	at       []int
	used     []bool
	places   map[string][]int // of each text in old
	known    []int            // the texts of now that old has
}

func (a *aligner) pair(i, place int) {
	if a.at[i] < 0 && place >= 0 && place < len(a.old) && !a.used[place] && a.old[place] == a.now[i] {
		a.at[i], a.used[place] = place, true
	}
}

// follow gives places to texts whose neighbour has one. Texts before an anchor come first,
// because most histories are cut at their front. before is the place before the first text,
// after the place after the last one.
func (a *aligner) follow(before, after int) {
	for _, i := range slices.Backward(a.known) {
		a.pair(i, after-1)
		after = a.at[i]
	}
	for _, i := range a.known {
		a.pair(i, before+1)
		if before = a.at[i]; before < 0 {
			before = len(a.old)
		}
	}
}

// Item is a part or a call in its place.
type Item struct {
	Second bool // a call
	I      int  // index among its kind
	Was    int  // its old place, -1 for none
}

// Order returns the parts of m and, as Second, its calls in the order in which they go into a
// list that has elements, JSON texts, now. A new or moved value follows the value before it of
// its kind. Without one, a part comes first, and a call at from: math.MaxInt for a place after
// all parts. At one place, calls come first.
func (l Lens) Order(m middleware.Message, elements []string, from int) []Item {
	at := Align(elements, append(texts(l, m.Parts, func(p middleware.Part) *middleware.Native { return p.Native }),
		texts(l, m.ToolCalls, func(c middleware.ToolCall) *middleware.Native { return c.Native })...))
	parts, calls := at[:len(m.Parts)], at[len(m.Parts):]
	a, b := places(parts, -1), places(calls, from)
	var out []Item
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if j == len(b) || i < len(a) && a[i] < b[j] {
			out = append(out, Item{false, i, parts[i]})
			i++
		} else {
			out = append(out, Item{true, j, calls[j]})
			j++
		}
	}
	return out
}

// places returns at with the place of what it follows for each that has none or a lower one.
func places(at []int, last int) []int {
	out := make([]int, len(at))
	for i, n := range at {
		if n < 0 || n < last && i > 0 {
			n = last
		}
		out[i], last = n, n
	}
	return out
}

// texts returns the texts of items, "" for one that is not of this dialect.
func texts[T any](l Lens, items []T, native func(T) *middleware.Native) []string {
	return TextsOf(items, func(item T) string { return l.Raw(native(item)) })
}

// Arrange returns the texts that part and call write, in the order in which they go into a
// list that has elements, JSON texts, now. at is the index of the old element, -1 for none. A
// text "" is left out. A new call follows the call before it. The first call is at from:
// math.MaxInt for a place after all parts.
func (l Lens) Arrange(m middleware.Message, elements []string, from int,
	part func(p middleware.Part, at int) (string, error), call func(c middleware.ToolCall, at int) (string, error)) (out []string, err error) {
	for _, it := range l.Order(m, elements, from) {
		text := ""
		if it.Second {
			text, err = call(m.ToolCalls[it.I], it.Was)
		} else {
			text, err = part(m.Parts[it.I], it.Was)
		}
		if err != nil {
			return nil, err
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return out, nil
}

// Run is messages that make one element of the wire.
type Run struct {
	Messages []middleware.Message
	At       []int // the old messages that they were, -1 for new ones
	Group    int   // the element to edit; -1: a fresh one
	Same     bool  // the element holds just these messages, unchanged
}

// History sorts the messages of a request into the elements of the wire. old are the messages
// that were decoded, and groups the indices of the elements that they came from, -1 for none.
// Without groups, each of old is an element. Messages of one element that are still neighbours
// go into it again. Neighbours of two elements stay in two. For all others, joins reports
// whether m goes into the element that was begun. Without joins, each gets an element of its
// own.
//
// A message is found by the text of its Native, whatever was changed in it, in memory or in
// storage.
func (l Lens) History(old []middleware.Message, groups []int, now []middleware.Message,
	joins func(begun []middleware.Message, m middleware.Message) bool) []Run {
	native := func(m middleware.Message) *middleware.Native { return m.Native }
	h := history{old: old, groups: groups, now: now, at: Align(texts(l, old, native), texts(l, now, native))}
	out := make([]Run, 0, len(now))
	for i := 0; i < len(now); {
		from, g := i, h.group(i)
		for i++; i < len(now); i++ {
			next := h.group(i)
			apart := next >= 0 && h.at[i-1] >= 0 && h.at[i] == h.at[i-1]+1 // as they came
			if next != g && apart || (next != g || g < 0) && (joins == nil || !joins(now[from:i], now[i])) {
				break
			}
			if g < 0 {
				g = next
			}
		}
		out = append(out, Run{now[from:i], h.at[from:i], g, h.same(from, i, g)})
	}
	return out
}

type history struct {
	old, now []middleware.Message
	groups   []int
	at       []int
}

// element returns the element that the old message i came from.
func (h history) element(i int) int {
	if h.groups == nil {
		return i
	}
	return h.groups[i]
}

// group returns the element that message i came from. A message with another
// role than then belongs to none.
func (h history) group(i int) int {
	if h.at[i] < 0 || h.old[h.at[i]].Role != h.now[i].Role {
		return -1
	}
	return h.element(h.at[i])
}

// same reports whether the messages from up to to are all that element g holds.
func (h history) same(from, to, g int) bool {
	if g < 0 || h.holds(h.at[from]-1, g) || h.holds(h.at[to-1]+1, g) {
		return false
	}
	for k := from; k < to; k++ {
		if h.group(k) != g || k > from && h.at[k] != h.at[k-1]+1 || !codec.SameMessage(h.old[h.at[k]], h.now[k]) {
			return false
		}
	}
	return true
}

// holds reports whether the old message i is one of element g.
func (h history) holds(i, g int) bool { return i >= 0 && i < len(h.old) && h.element(i) == g }
