package responses

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// event is one event of a stream.
type event struct {
	codec.Event
	typ  string
	root rawjson.Value // absent: no JSON
	head bool          // says that the answer has begun
	flow int           // the item that it is about, -1: none
}

// object returns a member that has to be an object.
func (e *event) object(key string) (rawjson.Value, error) {
	v := e.root.Get(key)
	if v.Kind() != rawjson.Object {
		return v, codec.Shapef("%s where the %s of an event should be", v.Kind(), key)
	}
	return v, nil
}

// flow is one item as it comes in.
type flow struct {
	index  int64
	it     item          // as it was added, or done
	added  rawjson.Value // absent: it was never announced
	done   rawjson.Value // absent: it was never finished
	pieces []string      // the deltas of the arguments
	full   string        // the arguments as their own done event has them
	shown  bool          // its text went to the sink
	piece  string        // which piece of reasoning did last
}

func (f *flow) isCall() bool { return f.it.sort == isCall }

// takeArguments reads the arguments of a call as they come in.
func (f *flow) takeArguments(ev *event) error {
	var err error
	switch {
	case !isArguments(ev.typ):
	case strings.HasSuffix(ev.typ, ".delta"):
		var text string
		text, err = textOf(ev.root.Get("delta"), "a delta")
		f.pieces = append(f.pieces, text)
	default:
		var text string
		v, _ := arguments(ev.root, calls[f.it.val.Get("type").Str()])
		text, err = textOf(v, "arguments")
		f.full = text
	}
	return err
}

// whole returns the item: as it was done, else as end has it. A call that has
// neither, or whose arguments came only in pieces, is put together.
func (f *flow) whole(end rawjson.Value) (rawjson.Value, error) {
	v := f.done
	if !v.Exists() {
		v = end
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
	patch := codec.NewPatch(v)
	patch.Set(key, codec.QuoteAsSent(args))
	raw, err := patch.Text()
	if err != nil {
		return v, codec.Shapef("arguments that stand there twice")
	}
	return codec.ParseObject(raw)
}

// maxEvents bounds what is kept of a stream of very small events.
const maxEvents = 1 << 19

// events is a stream that was read.
type events struct {
	all   []event
	flows []*flow
	open  map[int64]int   // output_index: the flow that came last
	byID  map[string]int  // id of an item: the flow that came last
	early []rawjson.Value // the calls in the response objects before the end
	last  int             // the event that ends the answer; -1: none yet
}

func newEvents() events { return events{open: map[int64]int{}, byID: map[string]int{}, last: -1} }

// add keeps an event. What is no JSON, such as comments, is one with what
// stands before it.
func (s *events) add(ev event) error {
	if n := len(s.all); n > 0 && !ev.root.Exists() && !s.all[n-1].root.Exists() {
		s.all[n-1].End = ev.End
		return nil
	}
	if len(s.all) == maxEvents {
		return codec.Shapef("a stream of more than %d events", maxEvents)
	}
	s.all = append(s.all, ev)
	return nil
}

// item takes output_item.added and output_item.done.
func (s *events) item(ev *event, done bool) error {
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
		s.flows = append(s.flows, &flow{index: index, it: it})
	}
	if id != "" {
		s.byID[id] = at
	}
	f := s.flows[at]
	if done {
		if f.isCall() != (it.sort == isCall) {
			return codec.Shapef("an item that became another")
		}
		f.it, f.done = it, v
	} else {
		f.added = v
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
func (s *events) find(index int64, indexed bool, id string, isCall bool) (at int, ok bool, err error) {
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
func (s *events) belongs(ev *event) error {
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

// isArguments reports whether events of that type hold arguments of a call.
func isArguments(typ string) bool {
	return strings.HasPrefix(typ, "response.function_call_arguments.") || strings.HasPrefix(typ, "response.custom_tool_call_input.")
}

// answer reads the message from the items. An item is what output_item.done
// says; one that was not finished, what the end says. Reasoning that the end
// does not name is no part of the answer: it was shown before a re-ask.
func (s *events) answer(body string) (*middleware.Response, *answer, error) {
	env := s.all[s.last].root.Get("response")
	output, err := list(env.Get("output"), "the output")
	if err != nil {
		return nil, nil, err
	}
	ends := slices.Collect(output.Each())
	for _, v := range ends {
		if _, err := answerItem(v); err != nil {
			return nil, nil, err
		}
	}
	s.reorder()
	pairs, about := s.pair(ends), s.about()
	var items, copies []rawjson.Value
	var kept []int
	paired := make([]bool, len(ends))
	for i, f := range s.flows {
		var end rawjson.Value
		if pairs[i] >= 0 {
			end, paired[pairs[i]] = ends[pairs[i]], true
		}
		v, err := f.whole(end)
		if err == nil && f.isCall() {
			err = s.agree(about[i], v, end)
		}
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !v.Exists() && f.it.sort == isMessage:
			return nil, nil, codec.Shapef("a message that was never finished")
		case !v.Exists(), !end.Exists() && len(ends) > 0 && f.it.sort == isReasoning:
			continue
		}
		kept, items, copies = append(kept, i), append(items, v), append(copies, end)
	}
	for i, v := range ends {
		if !paired[i] {
			kept, items, copies = append(kept, -1), append(items, v), append(copies, v)
		}
	}
	resp, a, err := newAnswer(body, env, items, copies)
	if err != nil {
		return nil, nil, err
	}
	a.stream, a.kept = s, kept
	return resp, a, s.agreeEarly(resp.Message.ToolCalls)
}

// reorder puts the flows in the order of their output_index.
func (s *events) reorder() {
	order := make([]int, len(s.flows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.flows[a].index, s.flows[b].index) })
	flows, now := make([]*flow, len(order)), make([]int, len(order))
	for i, was := range order {
		flows[i], now[was] = s.flows[was], i
	}
	s.flows = flows
	for i := range s.all {
		if at := s.all[i].flow; at >= 0 {
			s.all[i].flow = now[at]
		}
	}
}

// pair finds the copy of each flow among the items at the end: the one with its
// call_id, else with its id, else the next of its type. It looks from the back,
// because what a re-ask left behind comes first; -1: there is none.
func (s *events) pair(ends []rawjson.Value) []int {
	pairs := make([]int, len(s.flows))
	taken := make([]bool, len(ends))
	for i := range pairs {
		pairs[i] = -1
	}
	for pass, key := range []func(v rawjson.Value) string{
		func(v rawjson.Value) string { return v.Get("call_id").Str() },
		func(v rawjson.Value) string { return v.Get("id").Str() },
		func(v rawjson.Value) string { return "any" },
	} {
		at := map[string][]int{}
		name := func(v rawjson.Value) string {
			typ := v.Get("type").Str()
			if _, ok := calls[typ]; ok && pass == 0 {
				typ = "call" // of whatever type: copies that differ are found later
			}
			return typ + " " + key(v)
		}
		for i, v := range ends {
			if !taken[i] && key(v) != "" {
				at[name(v)] = append(at[name(v)], i)
			}
		}
		for i, f := range slices.Backward(s.flows) {
			v := f.done
			if !v.Exists() {
				v = f.added
			}
			if left := at[name(v)]; pairs[i] < 0 && key(v) != "" && len(left) > 0 {
				pairs[i] = left[len(left)-1]
				taken[pairs[i]] = true
				at[name(v)] = left[:len(left)-1]
			}
		}
	}
	return pairs
}
