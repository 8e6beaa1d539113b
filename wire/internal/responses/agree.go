package responses

import (
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// The way from an answer, or an event of one, to its calls.
var (
	itemEnvelope = codec.Envelope{{Key: "type"}, {Key: "id"}, {Key: "call_id"}, {Key: "name"}, {Key: "namespace"}, {Key: "arguments"}, {Key: "input"},
		{Key: "action"}, {Key: "actions"}, {Key: "operation"}, {Key: "execution"}, {Key: "status"}, {Key: "role"}, {Key: "content"}}
	answerEnvelope = codec.Envelope{{Key: "type"}, {Key: "error"}, {Key: "status"}, {Key: "output", In: itemEnvelope},
		{Key: "item", In: itemEnvelope}, {Key: "response", In: codec.Envelope{{Key: "error"}, {Key: "status"}, {Key: "output", In: itemEnvelope}}},
		{Key: "output_index"}, {Key: "item_id"}, {Key: "call_id"}, {Key: "delta"}, {Key: "arguments"}, {Key: "input"}, {Key: "name"}}
)

// A stream holds several copies of each call: in output_item.added and
// output_item.done, as deltas, in the done event of the arguments, and in the
// response objects of the first events and of the last one. Clients differ in
// the copy that they take. So all copies must have the same kind, id, name and
// text of the arguments, byte for byte: only then the call that was validated is
// the call that each client decodes. Equal values in another spelling are not
// enough, because numbers, escapes and duplicate members do not mean the same to
// every reader.

// errCopies says that the call that was read is not the call of every client. It
// wraps ErrShape, so that the answer counts as unreadable.
var errCopies = codec.Shapef("copies of a call that differ")

// agree compares the call v, as it is read from the stream, with its copies in
// the events about it and at the end. An announcement may lack the arguments:
// they follow.
func (s *stream) agree(about []int, v, end rawjson.Value) error {
	want, err := readCall(v)
	if err != nil {
		return err
	}
	var deltas strings.Builder
	pieces := false
	var id, place label
	for _, i := range about {
		ev := s.events[i]
		if ev.typ == "response.output_item.added" {
			id.is, place.is = ev.root.Get("item").Get("id").Raw(), ev.root.Get("output_index").Raw()
		} else if isArguments(ev.typ) {
			id.note(ev.root.Get("item_id"))
			place.note(ev.root.Get("output_index"))
		}
		switch {
		case isItem(ev.typ):
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
	switch {
	case id.divides() || place.divides():
		return codec.Shapef("events of a call that not every reader takes for its own")
	case pieces && deltas.String() != want.Arguments:
		return errCopies
	case end.Exists():
		return agrees(end, want, false)
	}
	return nil
}

// label is what an announced call is found by: its id, or its output_index.
type label struct {
	is            string
	same, another int // events with arguments that have it, and that do not
}

// note counts an event with arguments, in which v stands for the label.
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

// apart returns an error if two calls share an id or an output_index that
// arguments came under. A client that joins arguments by it joins those of the
// two, or gives one the name of the other. Calls that came as whole items may
// share an id: each copy of them is complete.
func (s *stream) apart(about [][]int) error {
	type use struct {
		flow              int
		shared, arguments bool
	}
	uses := map[string]*use{}
	for i, f := range s.flows {
		if !f.isCall() {
			continue
		}
		for _, at := range about[i] {
			for _, name := range s.events[at].names() {
				u, ok := uses[name]
				if !ok {
					u = &use{flow: i}
					uses[name] = u
				}
				u.shared = u.shared || u.flow != i
				u.arguments = u.arguments || isArguments(s.events[at].typ)
				if u.shared && u.arguments {
					return codec.Shapef("two calls under one id or output_index")
				}
			}
		}
	}
	return nil
}

// names returns what clients know the item of an event by: its id and its
// output_index, those of the two that are there. Numbers count by their value as
// JavaScript has it, so that 1.0 is 1.
func (ev event) names() (names []string) {
	id, index := ev.root.Get("item").Get("id"), ev.root.Get("output_index")
	if isArguments(ev.typ) {
		id = ev.root.Get("item_id")
	}
	for _, l := range []struct {
		kind string
		rawjson.Value
	}{{"id ", id}, {"output_index ", index}} {
		switch l.Kind() {
		case rawjson.String:
			names = append(names, l.kind+l.Str())
		case rawjson.Number:
			n, _ := strconv.ParseFloat(l.Raw(), 64)
			names = append(names, l.kind+strconv.FormatFloat(n, 'g', -1, 64))
		}
	}
	return names
}

// agrees compares a copy of a call with the call. announced says that the copy is
// that of output_item.added, whose arguments may still be missing. A built-in call
// has its action there in part.
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
	name, id := on.Get(root, "name"), on.Get(root, "call_id")
	if args.Str() != want.Arguments || name.Exists() && name.Str() != want.Name || id.Exists() && id.Str() != want.ID {
		return errCopies
	}
	return nil
}

// callsIn returns the calls of a response object, whatever its status is.
func callsIn(env rawjson.Value) (found []rawjson.Value, err error) {
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
func (s *stream) announce(ev event) (found bool, err error) {
	if isEnd(ev.typ) {
		return false, nil
	}
	calls, err := callsIn(ev.root.Get("response"))
	s.early = append(s.early, calls...)
	return len(calls) > 0, err
}

// agreeEarly compares the calls of the first events with those of the answer. One
// that the answer does not have is a difference too: a client that takes it runs
// what was never validated.
func (s *stream) agreeEarly(answer []middleware.ToolCall) error {
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
