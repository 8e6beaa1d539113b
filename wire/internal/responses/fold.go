package responses

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// flow is one item as it comes in.
type flow struct {
	index  int64
	sort   sort          // as it was added, or done
	added  rawjson.Value // absent: it was never announced
	done   rawjson.Value // absent: it was never finished
	end    rawjson.Value // its copy at the end of the stream; absent: the end does not name it
	pieces []string      // the deltas of the arguments
	full   string        // the arguments as their own done event has them
	shown  bool          // its text went to the sink
	piece  string        // which piece of reasoning did last
}

// isCall reports whether the client runs the item.
func (f *flow) isCall() bool { return f.sort == isCall }

// latest is the item as it was last seen before the end, announced or done. It is
// absent for a flow that neither began nor ended with an item.
func (f *flow) latest() rawjson.Value {
	if f.done.Exists() {
		return f.done
	}
	return f.added
}

// takeArguments reads the arguments of a call as they come in: in pieces, in
// events of type …delta, and whole, in the one of type …done.
func (f *flow) takeArguments(ev *event) (err error) {
	switch {
	case !isArguments(ev.typ):
	case strings.HasSuffix(ev.typ, ".delta"):
		var text string
		text, err = on.Text(ev.root, "delta")
		f.pieces = append(f.pieces, text)
	default:
		_, key := arguments(ev.root, calls[f.latest().Get("type").Str()])
		f.full, err = on.Text(ev.root, key)
	}
	return err
}

// whole returns the item: as it was done, else as the end has it. A call that has
// neither, or whose arguments came only in pieces, is put together.
func (f *flow) whole() (rawjson.Value, error) {
	v := f.done
	if !v.Exists() {
		v = f.end
	}
	if !f.isCall() {
		return v, nil
	}
	if !v.Exists() {
		v = f.added
	}
	args := cmp.Or(f.full, strings.Join(f.pieces, ""))
	old, key := arguments(v, calls[v.Get("type").Str()])
	if args == "" || old.Kind() == rawjson.Object || old.Str() != "" {
		return v, nil
	}
	raw, err := on.Set(v, lens.Raw(key, codec.QuoteAsSent(args)))
	if err != nil {
		return v, codec.Shapef("arguments that appear twice")
	}
	return codec.ParseObject(raw)
}

// item takes output_item.added and output_item.done:
//
//	{"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": …, "arguments": ""}}
//	{"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": "{\"city\":"}
//	{"type": "response.output_item.done", "output_index": 1, "item": {…, "arguments": "{\"city\":\"Oslo\"}"}}
//
// An item that is done frees its place: some servers give the next item the same
// output_index. One in the place of an item that is not done would leave open which
// of the two the following events are about.
func (s *stream) item(ev *event, done bool) error {
	v := ev.root.Get("item")
	if v.Kind() != rawjson.Object {
		return nil // no client reads an item there
	}
	it, err := answerItem(v)
	if err != nil {
		return err
	}
	if s.last >= 0 {
		return codec.Shapef("an item after the end")
	}
	id := v.Get("id").Str()
	index, indexed := outputIndex(ev.root)
	if !indexed && id == "" {
		if it.sort == isCall {
			return codec.Shapef("a call with neither an output_index nor an id")
		}
		return nil
	}
	at, ok, err := s.find(index, indexed, id, it.sort == isCall)
	switch {
	case err != nil:
		return err
	case ok && !done && !s.flows[at].done.Exists():
		return codec.Shapef("an item in the place of one that is not done")
	case !ok || s.flows[at].done.Exists():
		at = len(s.flows)
		if !indexed {
			index = int64(at)
		}
		s.open[index] = at
		s.flows = append(s.flows, &flow{index: index, sort: it.sort})
	}
	if id != "" {
		s.byID[id] = at
	}
	f := s.flows[at]
	switch {
	case !done:
		f.added = v
	case f.isCall() != (it.sort == isCall):
		return codec.Shapef("an item that became another")
	default:
		f.sort, f.done = it.sort, v
	}
	ev.flow = at
	return nil
}

// outputIndex returns the output_index of an event. Some servers send none
// (llama-server): their items are known by their id.
func outputIndex(root rawjson.Value) (index int64, ok bool) {
	n := root.Get("output_index")
	if n.Kind() != rawjson.Number {
		return 0, false
	}
	index, err := strconv.ParseInt(n.Raw(), 10, 64)
	return index, err == nil
}

// find returns the flow of an event, by its output_index, else by the id of its
// item. Servers that give an item a new id in each event exist: the index
// counts. But where the id is that of another item, and one of the two is a
// call, readers by index and readers by id see different calls.
func (s *stream) find(index int64, indexed bool, id string, isCall bool) (at int, ok bool, err error) {
	same, known := s.byID[id]
	if !indexed {
		return same, known, nil
	}
	at, ok = s.open[index]
	if known && (!ok || same != at) && (isCall || s.flows[same].isCall() || ok && s.flows[at].isCall()) {
		return 0, false, codec.Shapef("an id and an output_index of two items")
	}
	return at, ok, nil
}

// belongs finds the item that an event is about.
func (s *stream) belongs(ev *event) error {
	index, indexed := outputIndex(ev.root)
	arguments := isArguments(ev.typ)
	at, ok, err := s.find(index, indexed, ev.root.Get("item_id").Str(), arguments)
	switch {
	case err != nil:
		return err
	case arguments && (!ok || !s.flows[at].isCall()):
		return codec.Shapef("arguments without a call")
	case arguments && s.flows[at].done.Exists():
		return codec.Shapef("arguments behind the end of a call")
	case !ok:
	case s.last >= 0:
		return codec.Shapef("an item after the end")
	default:
		ev.flow = at
	}
	return nil
}

// fold reads the message from the items. An item is what output_item.done says;
// one that was not finished, what the end says. Reasoning that the end does not
// name is not a part of the answer: it was shown before a re-ask.
func (s *stream) fold() (*answer, error) {
	env := s.events[s.last].root.Get("response")
	output, err := on.Kind(env, "output", rawjson.Array)
	if err != nil {
		return nil, err
	}
	ends := slices.Collect(output.Each())
	for _, v := range ends {
		if _, err := answerItem(v); err != nil {
			return nil, err
		}
	}
	s.reorder()
	rest, about := s.pair(ends), s.about()
	if err := s.apart(about); err != nil {
		return nil, err
	}
	var items []rawjson.Value
	var flows []int
	for i, f := range s.flows {
		v, err := f.whole()
		if err == nil && f.isCall() {
			err = s.agree(about[i], v, f.end)
		}
		switch {
		case err != nil:
			return nil, err
		case !v.Exists() && f.sort == isMessage:
			return nil, codec.Shapef("a message that was never finished")
		case v.Exists() && (f.end.Exists() || len(ends) == 0 || f.sort != isReasoning):
			items, flows = append(items, v), append(flows, i)
		}
	}
	for _, v := range rest {
		items, flows = append(items, v), append(flows, -1)
	}
	a, err := newAnswer(s, env, items)
	if err != nil {
		return nil, err
	}
	a.flowOf = flows
	return a, s.agreeEarly(a.is.Message.ToolCalls)
}

// reorder puts the flows in the order of their output_index, which is the order that
// the output at the end has. Items may come interleaved.
func (s *stream) reorder() {
	was := slices.Clone(s.flows)
	slices.SortStableFunc(s.flows, func(a, b *flow) int { return cmp.Compare(a.index, b.index) })
	now := make(map[*flow]int, len(was))
	for i, f := range s.flows {
		now[f] = i
	}
	for i := range s.events {
		if at := s.events[i].flow; at >= 0 {
			s.events[i].flow = now[was[at]]
		}
	}
}

// about lists the events of each flow, as indexes of events. An answer has as many
// calls as the model likes: to search all events for each would take quadratic time.
func (s *stream) about() [][]int {
	about := make([][]int, len(s.flows))
	for i, ev := range s.events {
		if ev.flow >= 0 {
			about[ev.flow] = append(about[ev.flow], i)
		}
	}
	return about
}

// pair finds the copy of each flow among the items at the end: the one with its
// call_id, else with its id, else the next of its type. It looks from the back,
// because what a re-ask left behind comes first. It returns those that are none.
func (s *stream) pair(ends []rawjson.Value) (rest []rawjson.Value) {
	for pass, key := range []func(v rawjson.Value) string{
		func(v rawjson.Value) string { return v.Get("call_id").Str() },
		func(v rawjson.Value) string { return v.Get("id").Str() },
		func(v rawjson.Value) string { return "any" },
	} {
		name := func(v rawjson.Value) string {
			typ := v.Get("type").Str()
			if _, ok := calls[typ]; ok && pass == 0 {
				typ = "call" // of whatever type: copies that differ are found later
			}
			return typ + " " + key(v)
		}
		at := map[string][]rawjson.Value{}
		for _, v := range ends {
			if key(v) != "" {
				at[name(v)] = append(at[name(v)], v)
			}
		}
		taken := map[rawjson.Value]bool{}
		for _, f := range slices.Backward(s.flows) {
			v := f.latest()
			if left := at[name(v)]; !f.end.Exists() && key(v) != "" && len(left) > 0 {
				f.end = left[len(left)-1]
				taken[f.end], at[name(v)] = true, left[:len(left)-1]
			}
		}
		ends = slices.DeleteFunc(ends, func(v rawjson.Value) bool { return taken[v] })
	}
	return ends
}
