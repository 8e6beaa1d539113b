package anthropic

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// layout is where the events of a stream stand.
type layout struct {
	head []int   // before the first block
	own  [][]int // the events of each block, the first of which starts it
	all  [][]int // them, and what stands between and behind them
	tail []int   // from the one that ends the message
}

func (a *answer) layout() layout {
	l := layout{own: make([][]int, len(a.blocks)), all: make([][]int, len(a.blocks))}
	last, ended := -1, false
	for i, e := range a.events {
		ended = ended || e.kind == "message_delta" || e.kind == "message_stop"
		switch {
		case e.block >= 0:
			last = e.block
			l.own[last] = append(l.own[last], i)
			l.all[last] = append(l.all[last], i)
		case ended:
			l.tail = append(l.tail, i)
		case last < 0:
			l.head = append(l.head, i)
		default:
			l.all[last] = append(l.all[last], i)
		}
	}
	return l
}

// compose writes a stream that holds items: the events of blocks that stay,
// with the edits of what changed in them, fresh events for the others, and the
// events around them all. The indices start at first; without head the message
// has begun already.
func (a *answer) compose(items []item, edits map[int][]rawjson.Edit, first int, head bool) (string, error) {
	l := a.layout()
	var out strings.Builder
	inStart := 0 // how many items stand in message_start
	for _, i := range l.head {
		if a.events[i].kind == "message_start" {
			if !head {
				continue
			}
			var err error
			if inStart, err = a.early(items, edits); err != nil {
				return "", err
			}
		}
		if err := a.put(&out, i, edits[i]); err != nil {
			return "", err
		}
	}
	stays := make([]bool, len(a.blocks))
	for n, it := range items {
		var err error
		if n < inStart {
			stays[it.b.at] = true
			continue
		}
		if it.b.of(a.home) && !it.b.early {
			stays[it.b.at] = true
			err = a.putBlock(&out, l, it, first+n)
		} else {
			err = putFresh(&out, it, first+n)
		}
		if err != nil {
			return "", err
		}
	}
	var rest []int
	for k, events := range l.all {
		for _, i := range events {
			if !stays[k] && a.events[i].block < 0 { // unknown events among those of a dropped block
				rest = append(rest, i)
			}
		}
	}
	for _, i := range append(rest, l.tail...) {
		if err := a.put(&out, i, edits[i]); err != nil {
			return "", err
		}
	}
	return a.manner(out.String()), nil
}

// manner takes the names from the events of a stream if a's have none: a client
// that goes by names would read only those that have one.
func (a *answer) manner(events string) string {
	if a.named || !a.streamed() {
		return events
	}
	lines := strings.SplitAfter(events, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "event:") }), "")
}

// early adds to the edits of message_start what makes its content the first of
// items that stood there, and returns how many these are.
func (a *answer) early(items []item, edits map[int][]rawjson.Edit) (n int, err error) {
	message := a.data(a.start).Get("message")
	content := message.Get("content")
	if content.Kind() != rawjson.Array || content.Empty() {
		return 0, nil
	}
	var raws []string
	for n < len(items) && items[n].b.of(a.home) && items[n].b.early {
		raw, err := items[n].answered()
		if err != nil {
			return 0, err
		}
		raws = append(raws, raw)
		n++
	}
	if _, err := codec.Only(message, "content"); err != nil {
		return 0, err
	}
	edits[a.start] = append(edits[a.start], codec.Splice(content, raws)...)
	return n, nil
}

// data returns the data of an event, which was read once.
func (a *answer) data(i int) rawjson.Value {
	root, _ := codec.ParseObject(a.events[i].Data)
	return root
}

// put writes an event with edits made.
func (a *answer) put(out *strings.Builder, i int, edits []rawjson.Edit) error {
	e := a.events[i]
	edits, err := e.Edits(edits)
	if err != nil {
		return err
	}
	text, err := codec.Apply(a.native.Raw[e.Start:e.End], codec.Shift(edits, -e.Start))
	if so := out.String(); !strings.HasSuffix(so, "\n\n") && !strings.HasSuffix(so, "\n\r\n") && strings.TrimLeft(so, "\r\n") != "" {
		out.WriteString("\n\n") // the last one of a stream may do without
	}
	out.WriteString(text)
	return err
}

// putBlock writes the events of a block that came with the answer.
func (a *answer) putBlock(out *strings.Builder, l layout, it item, n int) error {
	own := l.own[it.b.at]
	edits, after := map[int][]rawjson.Edit{}, ""
	if !it.intact() {
		var err error
		if after, err = a.change(own, it, n, edits); err != nil {
			return err
		}
	}
	for _, i := range l.all[it.b.at] {
		more := edits[i]
		if e := a.events[i]; e.block >= 0 && e.index != n {
			p := codec.NewPatch(a.data(i))
			p.Add(more, nil)
			p.Set("index", codec.Count(int64(n)))
			var err error
			if more, err = p.Edits(); err != nil {
				return err
			}
		}
		if err := a.put(out, i, more); err != nil {
			return err
		}
		if i == own[0] && after != "" {
			if !strings.HasSuffix(out.String(), "\n") { // the last event, whose separator never came
				out.WriteString("\n\n")
			}
			out.WriteString(after)
		}
	}
	return nil
}

// change adds the edits of a changed block to edits; after is an event that is
// to follow its start.
func (a *answer) change(own []int, it item, n int, edits map[int][]rawjson.Edit) (after string, err error) {
	start := a.data(own[0]).Get("content_block")
	p := codec.NewPatch(start)
	if it.call != nil {
		after, err = a.changeCall(p, start, own, it, n, edits)
	} else {
		err = a.changePart(p, start, own, it, edits)
	}
	if err == nil {
		edits[own[0]], err = p.Edits()
	}
	return after, err
}

func (a *answer) changePart(p *codec.Patch, start rawjson.Value, own []int, it item, edits map[int][]rawjson.Edit) error {
	key := it.b.textKey()
	if key == "" || !it.b.onlyTextDiffers(*it.part) {
		return codec.Unencodablef("a block of a type that cannot be changed that way")
	}
	old, err := codec.Only(start, key)
	if err != nil {
		return err
	}
	placed, err := a.spread(own, key+"_delta", key, it.part.Text, edits)
	switch {
	case !placed:
		p.Set(key, quote(it.part.Text))
	case old.Str() != "":
		p.Set(key, `""`)
	}
	return err
}

func (a *answer) changeCall(p *codec.Patch, start rawjson.Value, own []int, it item, n int, edits map[int][]rawjson.Edit) (after string, err error) {
	members, err := it.b.callMembers(*it.call)
	if err != nil {
		return "", err
	}
	p.Put(members...)
	args := it.call.Arguments
	if args == it.b.call.Arguments {
		return "", nil
	}
	if args == "" || !utf8.ValidString(args) {
		return "", codec.Unencodablef("arguments that a stream has no form for")
	}
	input, err := codec.Only(start, "input")
	if err != nil {
		return "", err
	}
	if input.Exists() && !input.Empty() {
		if codec.IsObject(args) && !a.hasInput(own) { // it came at once
			p.Set("input", args)
			return "", nil
		}
		p.Set("input", "{}")
	}
	placed, err := a.spread(own, "input_json_delta", "partial_json", args, edits)
	if placed || err != nil {
		return "", err
	}
	return blockDelta(n, "input_json_delta", "partial_json", quote(args)), nil
}

// hasInput reports whether deltas brought the arguments.
func (a *answer) hasInput(own []int) bool {
	for _, i := range own {
		if a.data(i).Get("delta").Get("partial_json").Str() != "" {
			return true
		}
	}
	return false
}

// spread gives text to the first delta of that kind that has some, else to the
// first one, and takes it from the others. It is false if there is no delta.
func (a *answer) spread(own []int, kind, key, text string, edits map[int][]rawjson.Edit) (bool, error) {
	var deltas []int
	first := -1
	for _, i := range own {
		if a.events[i].delta != kind {
			continue
		}
		deltas = append(deltas, i)
		if first < 0 && a.data(i).Get("delta").Get(key).Str() != "" {
			first = i
		}
	}
	if len(deltas) == 0 {
		return false, nil
	}
	if first < 0 {
		first = deltas[0]
	}
	for _, i := range deltas {
		piece := ""
		if i == first {
			piece = text
		}
		delta := a.data(i).Get("delta")
		if delta.Get(key).Str() == piece {
			continue
		}
		more, err := codec.SetAll(delta, kv(key, quote(piece)))
		if err != nil {
			return false, err
		}
		edits[i] = more
	}
	return true, nil
}
