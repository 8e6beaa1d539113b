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
		e.Put(List(path, items))
		return
	}
	edits, err := e.l.Elements(object, name, items)
	if len(edits) > 0 && err == nil {
		err = e.once(steps)
	}
	e.Add(edits, err)
}

// once returns an error if one of steps stands there twice.
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
// It is ErrUnencodable if params is no object.
func (l Lens) WithParams(members []Member, params []byte) (string, error) {
	if len(params) == 0 {
		return l.Object(members...), nil
	}
	given, err := codec.ParseObject(string(params))
	if err != nil {
		return "", codec.Unencodablef("Params are no JSON object")
	}
	return codec.Object(l.overlaid(members, given)...), nil
}

// overlaid returns members, without paths, with those of given in the place of
// the same ones and the others at the end. Of a key that given has twice, the
// last one counts.
func (l Lens) overlaid(members []Member, given rawjson.Value) []Member {
	var out []Member
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
			if deep && v.Kind() == rawjson.Object {
				m.Raw = codec.Object(l.overlaid(in, v)...)
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
	return out
}
