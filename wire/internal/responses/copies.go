package responses

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// inPlace reports whether items are those of the stream, in their order, and
// nothing but calls has changed in them.
func (a *answer) inPlace(items []written) bool {
	if len(items) != len(a.msg.items) {
		return false
	}
	for i, o := range items {
		if o.from != i || o.call == nil && o.raw != a.msg.items[i].val.Raw() {
			return false
		}
	}
	return true
}

// editStream makes the changes in the events that are there.
func (a *answer) editStream(resp *middleware.Response, items []written) (string, error) {
	changes, err := a.changes(resp, items)
	if err != nil {
		return "", err
	}
	patch := a.envelope(resp, nil)
	for i, o := range items {
		if o.call != nil && a.copies[i].Exists() {
			patch.Add(o.call.edits(a.copies[i]))
		} else if o.call != nil && a.env.Get("output").Len() > 0 {
			return "", codec.Unencodablef("a call whose copy is not at the end of the stream")
		}
	}
	patch.Add(nil, a.once("output"))
	edits, err := patch.Edits()
	if err != nil {
		return "", err
	}
	changes[a.stream.last] = append(changes[a.stream.last], edits...)
	var all []rawjson.Edit
	for i, edits := range changes {
		edits, err := a.stream.all[i].Edits(edits)
		if err != nil {
			return "", err
		}
		all = append(all, edits...)
	}
	return codec.Apply(a.body, all)
}

// changes returns what changes in each event but the last: the calls in all
// their copies, and the model.
func (a *answer) changes(resp *middleware.Response, items []written) (map[int][]rawjson.Edit, error) {
	changes := map[int][]rawjson.Edit{}
	if resp.Model != a.was.Model {
		for i, ev := range a.stream.all {
			if env := ev.root.Get("response"); ev.head && env.Get("model").Exists() {
				e, err := codec.Set(env, "model", rawjson.Quote(resp.Model))
				if _, twice := codec.Only(ev.root, "response"); err != nil || twice != nil {
					return nil, cmp.Or(err, twice)
				}
				changes[i] = append(changes[i], e)
			}
		}
	}
	if !slices.ContainsFunc(items, func(o written) bool { return o.call != nil }) {
		return changes, nil
	}
	about := a.stream.about()
	for _, o := range items {
		if o.call == nil || o.from < 0 || a.kept[o.from] < 0 {
			continue
		}
		alone := !a.copies[o.from].Exists()
		if err := a.stream.callEdits(about[a.kept[o.from]], *o.call, alone, changes); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// about lists the events of each flow.
func (s *events) about() [][]int {
	about := make([][]int, len(s.flows))
	for i, ev := range s.all {
		if ev.flow >= 0 {
			about[ev.flow] = append(about[ev.flow], i)
		}
	}
	return about
}

// callEdits changes a call in the events about it. Of the pieces of its
// arguments the first that is not empty gets them all; alone says that no copy
// of the call stands elsewhere, so that one that was only announced has them in
// there.
func (s *events) callEdits(about []int, e callEdit, alone bool, changes map[int][]rawjson.Edit) error {
	piece := -1
	for _, i := range about {
		ev := s.all[i]
		if strings.HasSuffix(ev.typ, ".delta") && isArguments(ev.typ) && (piece < 0 || s.all[piece].root.Get("delta").Str() == "") {
			piece = i
		}
		alone = alone && ev.typ == "response.output_item.added"
	}
	for _, i := range about {
		edits, err := e.inEvent(s.all[i], i == piece, alone)
		if err != nil {
			return err
		}
		changes[i] = append(changes[i], edits...)
	}
	return nil
}

// inEvent changes the copy of the call that stands in one event. first says
// that it is the piece of the arguments that gets them all, alone that nothing
// follows the announcement.
func (e callEdit) inEvent(ev event, first, alone bool) ([]rawjson.Edit, error) {
	patch := codec.NewPatch(ev.root)
	switch {
	case strings.HasPrefix(ev.typ, "response.output_item."):
		item := ev.root.Get("item")
		args, _ := arguments(item, calls[item.Get("type").Str()])
		if ev.typ == "response.output_item.added" && !alone && args.Str() == "" && args.Kind() != rawjson.Object {
			e.now.Arguments = e.was.Arguments // they follow
		}
		patch.Add(e.edits(item))
		_, err := codec.Only(ev.root, "item")
		patch.Add(nil, err)
	case isArguments(ev.typ):
		e.inPiece(ev, first, patch)
	}
	return patch.Edits()
}

// inPiece changes an event that holds arguments, whole or a piece of them.
func (e callEdit) inPiece(ev event, first bool, patch *codec.Patch) {
	set := func(key, was, now string, always bool) {
		if was != now && (always || ev.root.Get(key).Exists()) {
			patch.Set(key, rawjson.Quote(now))
		}
	}
	whole := strings.HasSuffix(ev.typ, ".done")
	set("name", e.was.Name, e.now.Name, false)
	set("call_id", e.was.ID, e.now.ID, false)
	switch {
	case whole && e.now.Kind == middleware.KindCustom:
		set("input", e.was.Arguments, e.now.Arguments, true)
	case whole:
		set("arguments", e.was.Arguments, e.now.Arguments, true)
	case first:
		set("delta", e.was.Arguments, e.now.Arguments, true)
	case e.was.Arguments != e.now.Arguments && ev.root.Get("delta").Exists():
		patch.Set("delta", `""`)
	}
}
