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

// Edits returns the changes as edits of the text that the object stands in. The
// error wraps ErrUnencodable.
func (e *Edit) Edits() ([]rawjson.Edit, error) {
	if e.err != nil || len(e.members) == 0 {
		return e.edits, e.err
	}
	edits, err := e.l.Put(e.object, e.members...)
	return append(edits, e.edits...), err
}

// Apply returns the text of doc, in which the object stands, with the changes
// made, if they are Clear.
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

// Tools returns the texts of now: its own for a tool that is as it was in old,
// and what write makes of any other.
func (l Lens) Tools(old, now []middleware.Tool, write func(middleware.Tool) (string, error)) ([]string, error) {
	native := func(t middleware.Tool) *middleware.Native { return t.Native }
	have, want := texts(l, old, native), texts(l, now, native)
	for i, at := range Align(have, want) {
		if at >= 0 && codec.SameTool(old[at], now[i]) {
			continue
		}
		text, err := write(now[i])
		if err != nil {
			return nil, err
		}
		want[i] = text
	}
	return want, nil
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
		if m.Raw != "" && !l.has(object, m.Key) {
			missing = append(missing, m)
		}
	}
	return l.Set(object, missing...)
}

// has reports whether object has the member at path, be it null.
func (l Lens) has(object rawjson.Value, path string) bool {
	head, rest, deep := strings.Cut(path, "/")
	for m := range object.Each() {
		if l.is(m.Key(), head) && (!deep || l.has(m, rest)) {
			return true
		}
	}
	return false
}

// Rewrite returns the JSON text of now, which came from n: the text of n with
// what differs set in it, or a fresh object if n is nil or of another dialect.
//
// read reads a value from the text of n, as decoding does. members projects a
// value; v is the text that is edited, absent for a fresh object, for what is
// written in one of several ways. The error wraps ErrUnencodable.
func Rewrite[T any](l Lens, n *middleware.Native, now T,
	read func(v rawjson.Value) (T, error), members func(v rawjson.Value, value T) ([]Member, error)) (string, error) {
	v, err := l.Value(n)
	if err != nil {
		return "", err
	}
	var before []Member
	if v.Exists() {
		was, err := read(v)
		if err != nil {
			return "", codec.Unencodablef("what was stored: %v", err)
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

// SetIn is Set for the text of an object.
func (l Lens) SetIn(object string, members ...Member) (string, error) {
	v, err := codec.ParseObject(object)
	if err != nil {
		return "", err
	}
	return l.Set(v, members...)
}

// Put returns the edits that set members of object, in the text that object
// stands in. Call it once for one object, with all of its members: two edits
// that add to an object do not know of each other's comma. The error wraps
// ErrUnencodable: a key on the way appears twice, or holds no object.
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

// Only returns the member name for an edit inside it, absent if there is none.
// It is ErrUnencodable if object has it twice, in one spelling or in two.
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
