// Package lens makes edits of the recorded JSON: it writes neutral values back into the
// text that they came from. Every wire format encodes with it.
//
// A format has two functions for each kind of value, such as a tool or a call.
// One reads the value from JSON. The other projects it onto members: the keys and the
// JSON texts that it has on the wire. lens derives the edit from these two. (The comparisons
// of package codec, such as SameRequest, find out first whether anything changed.)
//
//	Raw (text of the Native) ── read ──▶ was ── project ──▶ members ┐
//	                                                                ├▶ the members that differ
//	                             now ─────── project ──▶ members ───┘   are set in Raw
//
// A value that a middleware changed is edited in its own text. Members that the format does
// not know keep their text, and known members keep their order and white space. A value
// from elsewhere has no text of this format: it is written as a fresh object with the
// members of its projection. Storage makes no difference, because a Native keeps its text
// in JSON.
//
// For example, a tool is {"name": "weather", "x-origin": 7}, and a middleware
// gives it a description. Both projections have the name, so only the
// description is set: {"name": "weather", "x-origin": 7,"description":"…"}.
// [Rewrite] does all of this for one value.
//
// lens.go has the members, and the frame of a format's encoder of requests. edit.go finds the
// place of a member, of a value that still has its text, and of messages that share one element
// of the wire, and refuses edits that are not safe. Again avoids a second reading of an unchanged request.
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

	// Bare means that one object may take the place of a list of objects.
	Bare bool

	// The format has no place for a list of allowed tools, or for a limit of one call.
	NoAllowedTools, NoCallLimit bool
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

// Reader reads members as its Lens does. It keeps the first error, so that the members of
// several objects are read in a row.
type Reader struct {
	l   Lens
	Err error
}

// Reader returns a Reader without an error.
func (l Lens) Reader() *Reader { return &Reader{l: l} }

// kept returns v, and keeps err if it is the first.
func kept[T any](r *Reader, v T, err error) T {
	if r.Err == nil {
		r.Err = err
	}
	return v
}

// Text is Lens.Text.
func (r *Reader) Text(object rawjson.Value, name string) string {
	s, err := r.l.Text(object, name)
	return kept(r, s, err)
}

// Name is Text for an id or a name. Some servers write numbers, which clients read as text.
func (r *Reader) Name(object rawjson.Value, name string) string {
	if n := r.l.Get(object, name); n.Kind() == rawjson.Number {
		return n.Raw()
	}
	return r.Text(object, name)
}

// Kind is Lens.Kind.
func (r *Reader) Kind(object rawjson.Value, name string, kind rawjson.Kind) rawjson.Value {
	v, err := r.l.Kind(object, name, kind)
	return kept(r, v, err)
}

// Objects is Lens.List for objects.
func (r *Reader) Objects(object rawjson.Value, name string) []rawjson.Value {
	list, err := r.l.List(object, name, rawjson.Object)
	return kept(r, list, err)
}

// Texts is Lens.Texts.
func (r *Reader) Texts(object rawjson.Value, name string) []string {
	list, err := r.l.Texts(object, name)
	return kept(r, list, err)
}

// ReadList returns what read makes of each object of a list. The error is read's,
// or wraps ErrShape.
func ReadList[T any](l Lens, object rawjson.Value, name string, read func(rawjson.Value) (T, error)) ([]T, error) {
	list, err := l.List(object, name, rawjson.Object)
	if err != nil {
		return nil, err
	}
	return Convert(list, read)
}

// Convert returns what f makes of each of values. The error is f's.
func Convert[V, T any](values []V, f func(V) (T, error)) (out []T, err error) {
	if len(values) > 0 {
		out = make([]T, len(values))
	}
	for i, v := range values {
		if out[i], err = f(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// TextsOf returns the text of each item.
func TextsOf[T any](items []T, text func(T) string) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = text(item)
	}
	return out
}

// Texts is List for strings.
func (l Lens) Texts(object rawjson.Value, name string) ([]string, error) {
	list, err := l.List(object, name, rawjson.String)
	if len(list) == 0 {
		return nil, err
	}
	return TextsOf(list, rawjson.Value.Str), nil
}

// Raws returns the texts of list.
func Raws(list []rawjson.Value) []string { return TextsOf(list, rawjson.Value.Raw) }

// Member is a key, or a path of keys with slashes, and a JSON text. The text "" means that the
// object does not have the member; setting it removes the member.
type Member = codec.Member

// Raw is a member with a JSON text.
func Raw(key, raw string) Member { return Member{Key: key, Raw: raw} }

// None is the absence of a member.
func None(key string) Member { return Member{Key: key} }

// Text is a member with a string, which may be empty.
func Text(key, s string) Member { return Member{Key: key, Raw: rawjson.Quote(s)} }

// Word is a member with a string, none for "".
func Word(key, s string) Member {
	if s == "" {
		return None(key)
	}
	return Text(key, s)
}

// List is a member with a list of JSON texts, none for an empty one.
func List(key string, items []string) Member {
	if len(items) == 0 {
		return None(key)
	}
	return Raw(key, codec.Array(items))
}

// Words is a member with a list of strings, none for an empty one.
func Words(key string, words []string) Member { return List(key, TextsOf(words, rawjson.Quote)) }

// Count is a member with a whole number, none for 0.
func Count(key string, n int64) Member { return rawIf(n != 0, key, codec.Count(n)) }

// Float is a member with a number, none for nil.
func Float(key string, f *float64) Member {
	if f == nil {
		return None(key)
	}
	return Raw(key, codec.Number(*f))
}

// Flag is a member that is true, none for false.
func Flag(key string, is bool) Member { return rawIf(is, key, "true") }

// Off is a member that is false, none for true.
func Off(key string, is bool) Member { return rawIf(!is, key, "false") }

// rawIf is Raw, or None if the object does not have the member.
func rawIf(has bool, key, raw string) Member {
	if !has {
		return None(key)
	}
	return Raw(key, raw)
}

// Differ returns the members of now that are not in was: the members that an edit has to set.
// A key of was that now does not have is ignored, so project the same keys from both values.
func Differ(was, now []Member) []Member {
	var out []Member
	for i, m := range now {
		if !(i < len(was) && was[i] == m) && !slices.Contains(was, m) {
			out = append(out, m)
		}
	}
	return out
}

// Unchanged reports whether EncodeRequest would return the body from which req was decoded: nothing that
// a codec writes has changed.
func Unchanged(req *middleware.Request) bool {
	was, ok := codec.Recall[*middleware.Request](req.Native)
	return ok && codec.SameRequest(was, req)
}

// Again returns what read makes of the text of n, or what was remembered of it;
// false if n is nil or of another dialect. The error wraps ErrUnencodable.
func Again[T any](l Lens, n *middleware.Native, read func(raw string) (T, error)) (is T, ok bool, err error) {
	raw := l.Raw(n)
	if raw == "" {
		return is, false, nil
	}
	if is, ok = codec.Recall[T](n); ok {
		return is, true, nil
	}
	if is, err = read(raw); err != nil {
		return is, true, codec.Unencodablef("what was stored: %v", err)
	}
	return is, true, nil
}

// EncodeRequest writes req: its own text if nothing in it has changed, an edit of that
// text if it was decoded from this format, else a new body. read reads a body again.
// edit returns the text of doc with what differs between was and req, and fresh a new
// body. The error wraps ErrUnencodable.
func (l Lens) EncodeRequest(req *middleware.Request, read func(in *codec.Input) (*middleware.Request, error),
	edit func(doc *rawjson.Doc, was, req *middleware.Request) (string, error), fresh func(req *middleware.Request) (string, error)) ([]byte, error) {
	was, decoded, err := Again(l, req.Native, func(raw string) (*middleware.Request, error) { return read(&codec.Input{Raw: raw}) })
	var body string
	switch _, allowed := codec.Choice(req); {
	case err != nil:
	case l.NoAllowedTools && allowed != nil:
		err = codec.Unencodablef("a list of allowed tools")
	case l.NoCallLimit && req.NoParallelCalls && len(req.Tools) > 0:
		err = codec.Unencodablef("a limit of one tool call")
	case !decoded:
		body, err = fresh(req.Loaded())
	case codec.SameRequest(was, req):
		return []byte(req.Native.Raw), nil
	default:
		var doc *rawjson.Doc
		if doc, err = codec.ParseBody(req.Native.Raw); err == nil {
			body, err = edit(doc, was.Loaded(), req.Loaded())
		}
	}
	if err != nil {
		return nil, codec.Unencodable(err)
	}
	return []byte(body), nil
}
