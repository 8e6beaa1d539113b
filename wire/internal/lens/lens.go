package lens

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Lens is how one format reads and writes the members of its objects. It holds
// no state and is safe for concurrent use.
//
// In the keys of the members that it writes, a slash leads into an object: a/b
// is the member b of the object a, which is made where it is missing. Names that
// it reads have no slash.
type Lens struct {
	Dialect string

	// Is reports whether the key of a member spells name. nil means that they
	// have to be equal.
	Is func(key, name string) bool

	// Bare says that one object may stand where a list of objects should be.
	Bare bool
}

func (l Lens) is(key, name string) bool { return key == name || l.Is != nil && l.Is(key, name) }

// Raw returns the text of n, "" if n is nil or of another dialect.
func (l Lens) Raw(n *middleware.Native) string {
	if n == nil || n.Dialect != l.Dialect {
		return ""
	}
	return n.Raw
}

// Native returns a Native of this dialect with that text.
func (l Lens) Native(raw string) *middleware.Native {
	return &middleware.Native{Dialect: l.Dialect, Raw: raw}
}

// Value parses the text of n. The value is absent if n is nil or of another
// dialect. The error, of a text that is not JSON, wraps ErrUnencodable.
func (l Lens) Value(n *middleware.Native) (rawjson.Value, error) {
	raw := l.Raw(n)
	if raw == "" {
		return rawjson.Value{}, nil
	}
	doc, err := codec.Parse(raw)
	if err != nil {
		return rawjson.Value{}, codec.Unencodablef("what was stored: %v", err)
	}
	return doc.Root(), nil
}

// Get returns the member name of object, the last one where there are several.
// null is absent.
func (l Lens) Get(object rawjson.Value, name string) rawjson.Value {
	found := object.Get(name)
	if l.Is != nil {
		found = rawjson.Value{}
		for m := range object.Each() {
			if l.is(m.Key(), name) {
				found = m
			}
		}
	}
	if found.Kind() == rawjson.Null {
		return rawjson.Value{}
	}
	return found
}

// Kind is Get for a member that must have that kind if it is there. The error
// wraps ErrShape.
func (l Lens) Kind(object rawjson.Value, name string, kind rawjson.Kind) (rawjson.Value, error) {
	v := l.Get(object, name)
	if v.Exists() && v.Kind() != kind {
		return v, codec.Shapef("%s is of kind %s", name, v.Kind())
	}
	return v, nil
}

// Text is Kind for a string.
func (l Lens) Text(object rawjson.Value, name string) (string, error) {
	v, err := l.Kind(object, name, rawjson.String)
	return v.Str(), err
}

// List returns the elements of a list, which must have that kind. The error
// wraps ErrShape.
func (l Lens) List(object rawjson.Value, name string, kind rawjson.Kind) ([]rawjson.Value, error) {
	v := l.Get(object, name)
	var list []rawjson.Value
	switch {
	case !v.Exists():
	case v.Kind() == rawjson.Array:
		list = slices.AppendSeq(make([]rawjson.Value, 0, v.Len()), v.Each())
	case l.Bare && v.Kind() == rawjson.Object && kind == rawjson.Object:
		list = []rawjson.Value{v}
	default:
		return nil, codec.Shapef("%s is of kind %s", name, v.Kind())
	}
	for _, e := range list {
		if e.Kind() != kind {
			return nil, codec.Shapef("%s holds a value of kind %s", name, e.Kind())
		}
	}
	return list, nil
}

// ReadList returns what read makes of each object of a list. The error is read's,
// or wraps ErrShape.
func ReadList[T any](l Lens, object rawjson.Value, name string, read func(rawjson.Value) (T, error)) ([]T, error) {
	list, err := l.List(object, name, rawjson.Object)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := make([]T, 0, len(list))
	for _, v := range list {
		t, err := read(v)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// Texts is List for strings.
func (l Lens) Texts(object rawjson.Value, name string) ([]string, error) {
	list, err := l.List(object, name, rawjson.String)
	var out []string
	for _, v := range list {
		out = append(out, v.Str())
	}
	return out, err
}

// Raws returns the texts of list.
func Raws(list []rawjson.Value) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.Raw()
	}
	return out
}
