package lens

import (
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
	object, steps := e.object, strings.Split(path, "/")
	for _, step := range steps[:len(steps)-1] {
		object = e.l.Get(object, step)
	}
	name := steps[len(steps)-1]
	if !e.l.Get(object, name).Exists() {
		if len(items) > 0 {
			e.Put(List(path, items))
		}
		return
	}
	edits, err := e.l.Elements(object, name, items)
	if len(edits) > 0 && err == nil {
		err = e.once(steps)
	}
	e.Add(edits, err)
}

// once returns an error if one of steps appears twice.
func (e *Edit) once(steps []string) error {
	object := e.object
	for _, step := range steps {
		v, err := e.l.Only(object, step)
		if err != nil {
			return err
		}
		object = v
	}
	return nil
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
	have, want := make([]string, len(old)), make([]string, len(now))
	for i, t := range old {
		have[i] = l.Raw(t.Native)
	}
	for i, t := range now {
		want[i] = l.Raw(t.Native)
	}
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

// WithParams returns members and those of params, a JSON object or nothing, as an
// object. What params says wins, below the same path too; the rest of it follows.
// It is ErrUnencodable if params is not an object, and if it has something else where
// an object has to hold a member: then the member would be lost.
func (l Lens) WithParams(members []Member, params []byte) (string, error) {
	if len(params) == 0 {
		return l.Object(members...), nil
	}
	given, err := codec.ParseObject(string(params))
	if err != nil {
		return "", codec.Unencodablef("Params are no JSON object")
	}
	if members, err = l.overlaid(members, given); err != nil {
		return "", err
	}
	return codec.Object(members...), nil
}

// overlaid returns members, without paths, with those of given in the place of
// the same ones and the others at the end. Of a key that given has twice, the
// last one counts.
func (l Lens) overlaid(members []Member, given rawjson.Value) (out []Member, err error) {
	at := map[string]int{} // of the keys of given
	for len(members) > 0 {
		m, in, rest := members[0], []Member(nil), members[1:]
		head, _, deep := strings.Cut(m.Key, "/")
		if deep {
			in, rest = below(members, head)
			if m = None(head); l.Object(in...) != "{}" {
				m.Raw = l.Object(in...)
			}
		}
		members = rest
		for v := range given.Each() {
			if !l.is(v.Key(), head) {
				continue
			}
			at[v.Key()], m = len(out), Raw(v.Key(), v.Raw())
			if deep {
				if m.Raw, err = l.under(in, v); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, m)
	}
	for v := range given.Each() {
		if _, ok := at[v.Key()]; ok {
			continue
		}
		at[v.Key()] = len(out)
		out = append(out, Raw(v.Key(), given.Get(v.Key()).Raw()))
	}
	return out, nil
}

// under returns v, which stands in the place of an object with members, with them
// in it. null is like no object.
func (l Lens) under(members []Member, v rawjson.Value) (string, error) {
	own := l.Object(members...)
	switch {
	case v.Kind() == rawjson.Object:
		all, err := l.overlaid(members, v)
		return codec.Object(all...), err
	case own == "{}":
		return v.Raw(), nil
	case v.Kind() == rawjson.Null:
		return own, nil
	}
	return "", codec.Unencodablef("in Params, %s is not an object", v.Key())
}
