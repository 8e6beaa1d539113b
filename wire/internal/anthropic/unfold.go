package anthropic

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// position is where in a stream an answer is written.
type position struct {
	begun bool    // the message has begun: there is no second message_start
	first int     // the index of the first block
	so    figures // as clients have them in the end, if nothing is changed
}

// rewrite returns the events of a with the changes of resp, which is to hold
// items. Blocks that are as they were, at the index that they had, keep their
// events; the others are unfolded. With block 1 of three changed, it is
//
//	message_start            its own bytes
//	events of block 0        their own bytes
//	events of block 1        a start, one delta, a stop, in the place of the old ones
//	events of block 2        their own bytes
//	message_delta            with another stop_reason or other figures, if these changed
//	message_stop             its own bytes
//
// If a block comes or goes, the indices behind it change, and so all blocks behind it
// are unfolded. Events between them that no block has, such as ping, stay.
func (a *answer) rewrite(resp *middleware.Response, items []item, p position) (string, error) {
	edits := map[int]*lens.Edit{}
	early, err := a.frame(edits, resp, items, p)
	if err != nil {
		return "", err
	}
	starts := make([]int, len(a.blocks)) // the first event of each block
	last, end := -1, -1                  // the last event of a block, and the one behind it at which the message ends
	for i, e := range slices.Backward(a.events) {
		switch {
		case e.block >= 0:
			starts[e.block], last = i, max(last, i)
		case last < 0 && (e.kind == "message_delta" || e.kind == "message_stop"):
			end = i
		}
	}
	stays := make([]bool, len(a.blocks))
	before := map[int]string{} // what comes in front of an event
	var fresh strings.Builder
	for n := early; n < len(items); n++ {
		it := items[n]
		inPlace := it.own != nil && !it.own.early && a.events[starts[it.at]].index == p.first+n
		if inPlace && it.same {
			stays[it.at] = true
		} else {
			text, err := it.unfold(p.first + n)
			if err != nil {
				return "", err
			}
			fresh.WriteString(text)
		}
		if inPlace {
			before[starts[it.at]] = a.manner(fresh.String())
			fresh.Reset()
		}
	}
	if end < 0 && fresh.Len() > 0 {
		return "", codec.Unencodablef("a block behind those that follow the end of the message")
	}
	before[end] += a.manner(fresh.String())
	var chunks []*lens.Chunk
	var more []rawjson.Edit
	for i, e := range a.events {
		edit := rawjson.Edit{Start: e.Start, End: e.Start, Text: before[i]}
		switch {
		case e.block >= 0 && !stays[e.block], p.begun && i == a.start:
			edit.End = e.End
		case edits[i] != nil:
			c := &lens.Chunk{Event: e.Event, Doc: a.doc(i)}
			if err := c.Add(edits[i].Edits()); err != nil {
				return "", err
			}
			chunks = append(chunks, c)
		}
		if edit.Text != "" || edit.End > edit.Start {
			more = append(more, edit)
		}
	}
	body, err := lens.ApplyAll(a.text, chunks, more...)
	if p.begun {
		body = strings.TrimLeft(body, "\r\n") // white space in front of a later answer would hide its first field
	}
	if err == nil && strings.Contains(strings.ReplaceAll(body, "\r\n", ""), "\r") {
		if _, err := readAnswer(body); err != nil || p.begun {
			return "", codec.Unencodablef("a change of a stream with line ends that not every reader takes for such")
		}
	}
	return body, err
}

// frame adds the changes of the events around the blocks, and returns how many
// items stand in message_start.
func (a *answer) frame(edits map[int]*lens.Edit, resp *middleware.Response, items []item, p position) (early int, err error) {
	edit := func(i int) *lens.Edit {
		if edits[i] == nil {
			edits[i] = on.Edit(a.doc(i).Root())
		}
		return edits[i]
	}
	if len(a.blocks) > 0 && a.blocks[0].early && !p.begun {
		for early < len(items) && items[early].own != nil && items[early].own.early {
			early++
		}
		content, err := a.elements(items[:early])
		if err != nil {
			return 0, err
		}
		edit(a.start).Elements("message/content", content)
	}
	if resp.Model != a.is.Model && !p.begun {
		edit(a.start).Put(lens.Text("message/model", resp.Model))
	}
	if stop := a.stopNow(resp); stop != a.stop {
		if a.delta < 0 {
			return 0, codec.Unencodablef("a finish reason where none is given")
		}
		edit(a.delta).Put(lens.Raw("delta/stop_reason", stopText(stop)))
	}
	if a.counts >= 0 {
		edit(a.counts).Add(p.so.edits(a.doc(a.counts).Root().Get("usage"), resp.Usage))
	}
	return early, nil
}

// doc returns the data of an event, which was read once. It is parsed again, since
// only an edit needs it, and an answer of a million events would hold a million
// documents.
func (a *answer) doc(i int) *rawjson.Doc {
	doc, _ := codec.Parse(a.events[i].Data)
	return doc
}

// manner returns fresh events as a's are. Without names, if those have none: a
// client that goes by names would read only those that have one. And with their
// line ends, if these are carriage returns, at which few clients end a line.
func (a *answer) manner(events string) string {
	if a.whole != nil || events == "" {
		return events
	}
	if !a.named {
		lines := strings.SplitAfter(events, "\n")
		events = strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "event:") }), "")
	}
	if a.start >= 0 && strings.HasSuffix(a.text[:a.events[a.start].End], "\r") {
		events = strings.ReplaceAll(events, "\n", "\r")
	}
	return events
}

// newEvent writes an event in the provider's manner: its name, and the same word as
// the type in its data.
func newEvent(kind string, members ...lens.Member) string {
	data := on.Object(append([]lens.Member{lens.Text("type", kind)}, members...)...)
	return "event: " + kind + "\ndata: " + codec.OneLine(data) + "\n\n"
}

// blockEvent is newEvent for an event of the block of that index.
func blockEvent(kind string, index int, members ...lens.Member) string {
	return newEvent(kind, append([]lens.Member{lens.Raw("index", codec.Count(int64(index)))}, members...)...)
}

// unfold returns the events of it, as the block of index n: its start without
// what deltas bring, and those.
func (it item) unfold(n int) (string, error) {
	raw, err := it.text()
	if err != nil {
		return "", err
	}
	v, err := codec.ParseObject(raw)
	if err != nil {
		return "", codec.Unencodablef("a block that is none")
	}
	var start []lens.Member
	var deltas strings.Builder
	bring := func(kind, key, raw string) {
		deltas.WriteString(blockEvent("content_block_delta", n, lens.Text("delta/type", kind), lens.Raw("delta/"+key, raw)))
	}
	take := func(key, kind string) {
		if s := v.Get(key).Str(); s != "" {
			start = append(start, lens.Text(key, ""))
			bring(kind, key, rawjson.Quote(s))
		}
	}
	switch v.Get("type").Str() {
	case "text":
		if citations := v.Get("citations"); citations.Kind() == rawjson.Array && !citations.Empty() {
			start = append(start, lens.Raw("citations", "[]"))
			for c := range citations.Each() {
				bring("citations_delta", "citation", c.Raw())
			}
		}
		take("text", "text_delta")
	case "thinking":
		take("thinking", "thinking_delta")
		take("signature", "signature_delta")
	case "tool_use", "server_tool_use", "mcp_tool_use":
		input := v.Get("input").Raw()
		if it.call != nil { // whatever the model wrote
			input = it.call.Arguments
		}
		start = append(start, lens.Raw("input", "{}"))
		if input != "" {
			bring("input_json_delta", "partial_json", rawjson.Quote(input))
		}
	}
	if raw, err = on.Set(v, start...); err != nil {
		return "", err
	}
	return blockEvent("content_block_start", n, lens.Raw("content_block", raw)) + deltas.String() + blockEvent("content_block_stop", n), nil
}

// text returns it as a block of a history.
func (it item) text() (string, error) {
	switch {
	case it.call == nil && it.same:
		return asBlocks(it.part.Native.Raw)[0], nil
	case it.call == nil:
		return it.partText()
	case !utf8.ValidString(it.call.Arguments), it.own != nil && !it.same && it.call.Arguments == "":
		return "", codec.Unencodablef("arguments that a stream has no form for")
	}
	return callText(*it.call, true)
}

// asStream writes an answer that came whole as a stream: message_start holds all of
// it but the content and the reason, which come later.
func (a *answer) asStream(resp *middleware.Response, items []item) (string, error) {
	start, err := on.Set(a.whole.Root(), lens.Raw("content", "[]"), lens.Raw("stop_reason", "null"), lens.Text("model", resp.Model))
	if err != nil {
		return "", err
	}
	rest, err := a.asEvents(resp, items, position{})
	return newEvent("message_start", lens.Raw("message", start)) + rest, err
}

// asEvents writes an answer that came whole as what follows a message_start.
func (a *answer) asEvents(resp *middleware.Response, items []item, p position) (string, error) {
	var out strings.Builder
	for n, it := range items {
		events, err := it.unfold(p.first + n)
		if err != nil {
			return "", err
		}
		out.WriteString(events)
	}
	keep := func(key string) string { return a.whole.Root().Get(key).Raw() }
	usage := a.whole.Root().Get("usage")
	edits, err := p.so.over(usage).edits(usage, resp.Usage)
	if err != nil {
		return "", err
	}
	counts, err := codec.Within(usage, edits)
	out.WriteString(newEvent("message_delta", lens.Raw("delta/stop_reason", stopText(a.stopNow(resp))), lens.Raw("delta/stop_sequence", keep("stop_sequence")),
		lens.Raw("delta/stop_details", keep("stop_details")), lens.Raw("delta/container", keep("container")),
		lens.Raw("usage", counts), lens.Raw("context_management", keep("context_management"))))
	out.WriteString(newEvent("message_stop"))
	return out.String(), err
}

// Rest is part of codec.Stream. A later answer follows as further blocks of the
// message that was begun.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	shown := s.Text()
	if !s.Closed() || sent < 0 || sent > s.Safe() {
		return nil, codec.Unencodablef("a stream that is open, or was shown too far")
	}
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	if sent > 0 && on.Raw(resp.Native) != shown {
		rest, err := s.splice(a, resp)
		return []byte(shown[sent:s.Safe()] + rest), err
	}
	body, err := a.write(resp)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(body, shown[:sent]) {
		rest, err := behind(shown, sent, body)
		return []byte(rest), err
	}
	return []byte(body[sent:]), nil
}

// splice returns what follows the safe part of s so that resp, which a holds,
// goes on where it ends.
func (s *stream) splice(a *answer, resp *middleware.Response) (string, error) {
	s.a.text = s.Text() // of an answer that could not be read there is none yet
	p, open := s.reached()
	switch {
	case !p.begun && a.whole == nil:
		return a.write(resp)
	case s.a.named && a.whole == nil && !a.named && p.begun:
		return "", codec.Unencodablef("events without names behind those that have some")
	case s.a.named && s.bare && p.begun && len(resp.Message.ToolCalls) > 0: // clients that go by names see other blocks than the rest
		return "", codec.Unencodablef("calls behind events of which some have no name")
	}
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	if !p.begun {
		return a.asStream(resp, items)
	}
	var out strings.Builder
	for _, b := range open {
		if b.start.Get("type").Str() != "text" { // it would be there without its end: reasoning unsigned, a call cut off
			return "", codec.Unencodablef("a block that was shown in part, and is not text")
		}
		out.WriteString(blockEvent("content_block_stop", b.index))
	}
	p.so = figures{}.over(s.a.doc(s.a.start).Root().Get("message").Get("usage"))
	write := a.asEvents
	if a.whole == nil {
		write = a.rewrite
		for i, e := range a.events {
			if e.kind == "message_delta" {
				p.so = p.so.over(a.doc(i).Root().Get("usage"))
			}
		}
	}
	rest, err := write(resp, items, p)
	return s.a.manner(out.String() + rest), err
}

// reached returns where the safe part of s ends, and the blocks that have not
// ended there. Their indices are taken: a later answer begins behind them.
func (s *stream) reached() (p position, open []*building) {
	unended := make([]bool, len(s.open))
	for _, e := range s.a.events {
		if e.End > s.Safe() {
			break
		}
		switch e.kind {
		case "message_start":
			p.begun = true
		case "content_block_start":
			unended[e.block] = true
			p.first = max(p.first, e.index+1)
		case "content_block_stop":
			if e.block >= 0 {
				unended[e.block] = false
			}
		}
	}
	for k, is := range unended {
		if is {
			open = append(open, s.open[k])
		}
	}
	return p, open
}
