package responses

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// rebuild writes the stream with other items: those that stayed with their own
// events, new and rewritten ones with new events, and everything else, the
// first events, what nobody knows, and the end, as it was received. Up to the
// first difference all bytes are the same, because they may have been shown.
func (a *answer) rebuild(resp *middleware.Response, items []written, end []codec.Member) (string, error) {
	changes, err := a.changes(resp, items)
	if err == nil && a.torn() {
		err = codec.Unencodablef("other items in a stream whose end does not name those it has")
	}
	if err != nil {
		return "", err
	}
	s := a.stream
	onlyEnd := len(s.flows) == 0 && len(a.msg.items) > 0
	r := &rebuilding{tape: newTape(s.all), a: a, changes: changes, done: make([]bool, len(s.flows)), over: a.leftOver()}
	r.head, r.groups = s.groups()
	if err := r.events(r.head); err != nil {
		return "", err
	}
	for _, o := range items {
		at := -1
		if o.from >= 0 {
			at = a.kept[o.from]
		}
		switch rewritten := o.from >= 0 && o.call == nil && o.raw != a.msg.items[o.from].val.Raw(); {
		case onlyEnd:
		case o.from < 0 || rewritten:
			err = r.item(o.raw)
		case at >= 0:
			if err = r.left(at); err == nil {
				err = r.flow(at)
			}
		}
		if err != nil {
			return "", err
		}
	}
	if err := r.left(len(s.flows)); err != nil {
		return "", err
	}
	if err := r.loose(); err != nil {
		return "", err
	}
	if err := a.lastEvent(r.tape, resp, items, end); err != nil {
		return "", err
	}
	for i := s.last + 1; i < len(s.all); i++ {
		if err := r.event(i, -1); err != nil {
			return "", err
		}
	}
	return r.out.String(), nil
}

// torn reports whether a stream has items of which its end knows nothing, or
// the reverse.
func (a *answer) torn() bool {
	if len(a.stream.flows) == 0 {
		return false
	}
	known := a.env.Get("output").Len() > 0
	for i, at := range a.kept {
		if at < 0 || known && !a.copies[i].Exists() {
			return true
		}
	}
	return false
}

// rebuilding is a stream on its way to other items.
type rebuilding struct {
	*tape
	a       *answer
	changes map[int][]rawjson.Edit
	head    []int   // the events before the first item
	groups  [][]int // the events of each flow, and those of none that follow them
	done    []bool  // which flows are written
	over    []int   // the flows that are no part of the answer and not written yet
}

// groups sorts the events before the last by what they are about.
func (s *events) groups() (head []int, groups [][]int) {
	groups = make([][]int, len(s.flows))
	at := -1
	for i, ev := range s.all[:s.last] {
		if ev.flow >= 0 {
			at = ev.flow
		}
		if at < 0 {
			head = append(head, i)
		} else {
			groups[at] = append(groups[at], i)
		}
	}
	return head, groups
}

func (r *rebuilding) event(i, index int) error {
	return r.copy(r.a.body, r.a.stream.all[i], i, index, r.changes[i])
}

func (r *rebuilding) events(is []int) error {
	for _, i := range is {
		index := r.index
		if r.a.stream.all[i].flow < 0 {
			index = -1
		}
		if err := r.event(i, index); err != nil {
			return err
		}
	}
	return nil
}

// flow writes the events of a flow that stays.
func (r *rebuilding) flow(at int) error {
	if len(r.groups[at]) > 0 && r.groups[at][0] == r.next {
		r.index = int(r.a.stream.flows[at].index) // nothing has changed so far
	}
	r.done[at] = true
	err := r.events(r.groups[at])
	r.index++
	return err
}

// left writes the flows up to at that are no part of the answer.
func (r *rebuilding) left(to int) error {
	for len(r.over) > 0 && r.over[0] < to {
		at := r.over[0]
		r.over = r.over[1:]
		if err := r.flow(at); err != nil {
			return err
		}
	}
	return nil
}

// leftOver returns the flows that are no part of the answer.
func (a *answer) leftOver() []int {
	in := make([]bool, len(a.stream.flows))
	for _, at := range a.kept {
		if at >= 0 {
			in[at] = true
		}
	}
	var over []int
	for at := range in {
		if !in[at] {
			over = append(over, at)
		}
	}
	return over
}

// loose writes the events of no item that stood behind items that are gone.
func (r *rebuilding) loose() error {
	for at, group := range r.groups {
		for _, i := range group {
			if r.a.stream.all[i].flow < 0 && !r.done[at] {
				if err := r.event(i, -1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lastEvent writes the event that ends the answer, with its copy of the items.
func (a *answer) lastEvent(t *tape, resp *middleware.Response, items []written, end []codec.Member) error {
	ev := a.stream.all[a.stream.last]
	patch := a.envelope(resp, end)
	patch.Add(nil, a.once("output"))
	a.joined(patch, resp.Message)
	output, err := a.output(items)
	if err != nil {
		return err
	}
	if old := a.env.Get("output"); old.Kind() == rawjson.Array {
		if len(output) == 0 && !old.Empty() && len(a.leftOver()) > 0 {
			return codec.Unencodablef("an end without items, where some that were shown are no part of the answer")
		}
		if !old.Empty() || len(a.msg.items) == 0 {
			patch.Add(codec.Splice(old, output), nil)
		}
	} else if len(a.msg.items) == 0 {
		patch.Set("output", codec.Array(output))
	}
	edits, err := patch.Edits()
	if err != nil {
		return err
	}
	if len(end) == 0 {
		return t.copy(a.body, ev, a.stream.last, -1, edits)
	}
	typ := "response.completed"
	if end[0].Raw != `"completed"` {
		typ = "response.incomplete"
	}
	e, err := codec.Set(ev.root, "type", rawjson.Quote(typ))
	if err != nil {
		return err
	}
	edits = append(edits, e)
	if ev.root.Get("sequence_number").Exists() {
		if e, err = codec.Set(ev.root, "sequence_number", codec.Count(t.number)); err != nil {
			return err
		}
		edits = append(edits, e)
	}
	data, err := codec.Apply(ev.Data, edits)
	t.data(typ, data)
	return err
}

// output returns the items as they stand at the end of the stream.
func (a *answer) output(items []written) ([]string, error) {
	var out []string
	for _, o := range items {
		switch {
		case o.from < 0 || o.call == nil && o.raw != a.msg.items[o.from].val.Raw():
			out = append(out, o.raw)
		case a.copies[o.from].Exists():
			raw, err := o.call.rewrite(a.copies[o.from])
			if err != nil {
				return nil, err
			}
			out = append(out, raw)
		}
	}
	return out, nil
}
