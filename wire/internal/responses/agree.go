package responses

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// A stream holds several copies of each call: in output_item.added and
// output_item.done, as deltas, in the done event of the arguments, and in the
// response objects of the first events and of the last one. Clients differ in
// the copy that they take. So all copies must have the same kind, id, name and
// text of the arguments, byte for byte: only then the call that was validated is
// the call that each client decodes. Equal values in another spelling are not
// enough, because numbers, escapes and duplicate members do not mean the same to
// every reader.

var errCopies = codec.Shapef("copies of a call that differ")

// agree compares the call v, as it is read from the stream, with its copies in
// the events about it and at the end. An announcement may lack the arguments:
// they follow.
func (s *events) agree(about []int, v, end rawjson.Value) error {
	want, err := readCall(v)
	if err != nil {
		return err
	}
	var deltas strings.Builder
	pieces := false
	var id, place label
	for _, i := range about {
		ev := s.all[i]
		if ev.typ == "response.output_item.added" {
			id.is, place.is = ev.root.Get("item").Get("id").Raw(), ev.root.Get("output_index").Raw()
		} else if isArguments(ev.typ) {
			id.note(ev.root.Get("item_id"))
			place.note(ev.root.Get("output_index"))
		}
		switch {
		case strings.HasPrefix(ev.typ, "response.output_item."):
			err = agrees(ev.root.Get("item"), want, ev.typ == "response.output_item.added")
		case !isArguments(ev.typ):
		case strings.HasSuffix(ev.typ, ".delta"):
			pieces = true
			deltas.WriteString(ev.root.Get("delta").Str())
		default:
			err = agreesWhole(ev.root, v, want)
		}
		if err != nil {
			return err
		}
	}
	if id.divides() || place.divides() {
		return codec.Shapef("events of a call that not every reader takes for its own")
	}
	if pieces && deltas.String() != want.Arguments {
		return errCopies
	}
	if end.Exists() {
		return agrees(end, want, false)
	}
	return nil
}

// label is what an announced call is found by: its id, or its output_index.
type label struct {
	is            string
	same, another int // events with arguments that have it, and that do not
}

func (l *label) note(v rawjson.Value) {
	if v.Raw() == l.is {
		l.same++
	} else {
		l.another++
	}
}

// divides reports whether a client that goes by the label finds some of the
// arguments. Servers exist that give each event another id, or none: from those
// such a client gets nothing.
func (l *label) divides() bool { return l.same > 0 && l.another > 0 }

// agrees compares a copy of a call with the call.
func agrees(v rawjson.Value, want middleware.ToolCall, announced bool) error {
	it, err := answerItem(v)
	if err != nil {
		return err
	}
	if it.sort != isCall {
		return errCopies
	}
	got, err := readCall(v)
	if announced && (got.Arguments == "" || got.Kind == middleware.KindBuiltin) {
		got.Arguments = want.Arguments
	}
	if err == nil && !codec.SameCall(got, want) {
		err = errCopies
	}
	return err
}

// agreesWhole compares the event that ends the arguments with the call, which v
// holds. It may name the call too.
func agreesWhole(root, v rawjson.Value, want middleware.ToolCall) error {
	args, _ := arguments(root, calls[v.Get("type").Str()])
	if args.Str() != want.Arguments {
		return errCopies
	}
	for _, c := range []struct {
		copy rawjson.Value
		want string
	}{{root.Get("name"), want.Name}, {root.Get("call_id"), want.ID}} {
		if c.copy.Exists() && c.copy.Kind() != rawjson.Null && c.copy.Str() != c.want {
			return errCopies
		}
	}
	return nil
}

// callsIn returns the calls of a response object.
func callsIn(env rawjson.Value) ([]rawjson.Value, error) {
	var found []rawjson.Value
	for v := range env.Get("output").Each() {
		it, err := answerItem(v)
		if err != nil {
			return nil, err
		}
		if it.sort == isCall {
			found = append(found, v)
		}
	}
	return found, nil
}

// announce notes the calls in the response object of an event that does not end
// the answer, and reports whether there are any. Some clients look at such an
// object in whatever event it stands.
func (s *events) announce(ev event) (found bool, err error) {
	switch ev.typ {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return false, nil
	}
	calls, err := callsIn(ev.root.Get("response"))
	s.early = append(s.early, calls...)
	return len(calls) > 0, err
}

// agreeEarly compares the calls of the first events with those of the answer.
func (s *events) agreeEarly(answer []middleware.ToolCall) error {
	if len(s.early) == 0 {
		return nil
	}
	byID := make(map[string]middleware.ToolCall, len(answer))
	for _, c := range answer {
		byID[c.ID] = c
	}
	for _, v := range s.early {
		want, ok := byID[v.Get(calls[v.Get("type").Str()].id).Str()]
		if !ok {
			return errCopies
		}
		if err := agrees(v, want, false); err != nil {
			return err
		}
	}
	return nil
}
