package chat

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// unfolding writes the change of a message into the chunks of a stream. Every
// change is whole: of a text or a list that changed, the first delta that had a
// piece gets all, and the others lose theirs. So the client reads the new value
// however it joins pieces, and what stands before the first piece stays.
//
//	{"content": "Let me "}   {"content": "see."}     a stream
//	{"content": "No."}       {}                      with another text
//
// Calls stay up to the first one that changed. The others stand, each in one
// piece, where the first of them began:
//
//	[{"index": 0, A1}]  [{"index": 0, A2}]  [{"index": 1, B1}]  [{"index": 1, B2}]
//	[{"index": 0, A1}]  [{"index": 0, A2}]  [{"index": 1, B}]   -                     with another B
//	[{"index": 0, A}, {"index": 1, B}]      -         -         -                     with another A
//
// A chunk that says nothing any more goes. What no delta had a piece of comes in
// a chunk of its own, where the answer could no longer be shown to the client.
type unfolding struct {
	a       *answer
	resp    *middleware.Response
	said    bool          // parts change
	members []lens.Member // to write, each as a whole; one that is null goes
	begun   map[string]bool
	calls   laid
	finish  string // a new finish_reason; "" for none
	chunks  []*chunk
	like    rawjson.Value  // what a fresh chunk looks like
	gone    []rawjson.Edit // chunks that say nothing any more
}

// laid is how calls are laid into a stream: those before the first one that
// changed stay, and texts take the place of the others.
type laid struct {
	kept  map[*piecemeal]bool
	texts []string // with their index
	at    *chunk   // where texts go; nil: into a chunk of their own
	i     int      // the element of at that they replace or,
	after bool     // that they follow
}

// writeStream returns the body of a streamed answer. It reads the stream a second
// time, as it was read first, and edits each delta where it stands.
func (a *answer) writeStream(resp *middleware.Response, c change) (string, error) {
	word, ends := finishWord(a.word, a.is, resp)
	switch {
	case ends && a.word == "" && resp.FinishReason != a.is.FinishReason:
		return "", codec.Unencodablef("a finish reason for a stream that has none")
	case resp.Model != a.is.Model && (a.is.Model == "" || resp.Model == ""):
		return "", codec.Unencodablef("a model for a stream that names none")
	case a.late && (ends || !c.empty()):
		return "", codec.Unencodablef("a change of a stream without a choice 0")
	}
	s := newStream()
	s.keeps = true
	s.Reader = codec.NewReader(codec.NewBuffer(false), s.event, func() (*middleware.Response, error) { return nil, nil })
	if _, err := codec.Decode(s, []byte(a.text)); err != nil {
		return "", codec.Unencodablef("what was stored: %v", err)
	}
	u := &unfolding{a: a, resp: resp, said: c.said, begun: map[string]bool{}, finish: word, chunks: s.chunks}
	for _, m := range c.members {
		if m.Raw == "null" {
			m.Raw = ""
		}
		u.members = append(u.members, m)
	}
	for _, l := range c.lists {
		if l.key != "tool_calls" {
			u.members = append(u.members, lens.List(l.key, l.items))
		} else if err := u.lay(s.turns[0], l.items); err != nil {
			return "", err
		}
	}
	for _, c := range u.chunks {
		if err := u.chunk(c); err != nil {
			return "", err
		}
	}
	if err := u.usage(); err != nil {
		return "", err
	}
	chunks := make([]*lens.Chunk, len(u.chunks))
	for i, c := range u.chunks {
		chunks[i] = &c.Chunk
	}
	return lens.ApplyAll(a.text, chunks, append(u.gone, u.inserted()...)...)
}

// lay finds out where texts, the calls, go: in the place of the first delta of
// those that go. Where calls are only added, and where some that stay come later
// than those that go, they follow the last one that stays.
func (u *unfolding) lay(t *turn, texts []string) error {
	was, now, n := u.a.is.Message.ToolCalls, u.resp.Message.ToolCalls, 0
	for n < len(was) && n < len(now) && sameCall(was[n], now[n]) {
		n++
	}
	t.sortCalls()
	l := laid{kept: map[*piecemeal]bool{}}
	next := int64(0)
	for _, c := range t.calls[:n] {
		l.kept[c], next = true, max(next, c.next())
	}
	for i, text := range texts[n:] {
		numbered, err := numbered(text, next+int64(i))
		if err != nil {
			return err
		}
		l.texts = append(l.texts, numbered)
	}
	for _, c := range u.chunks {
		for i, call := range c.calls {
			if kept := l.kept[call]; kept || l.at == nil || l.after {
				l.at, l.i, l.after = c, i, kept
			}
		}
	}
	u.calls = l
	return nil
}

// chunk edits one chunk: the model, what it says of choice 0, and the end. A chunk
// whose delta loses all of its members goes, unless it says something else, or is the
// first one, which opens the stream with its id.
func (u *unfolding) chunk(c *chunk) error {
	root := c.Root()
	if choices := root.Get("choices"); choices.Len() > 0 && u.like.Get("choices").Len() == 0 || choices.Exists() && !u.like.Exists() {
		u.like = root // best one with a choice: Azure begins with one that has neither choice nor id
	}
	all := on.Edit(root)
	if u.resp.Model != u.a.is.Model && root.Get("model").Str() != "" {
		all.Put(lens.Text("model", u.resp.Model))
	}
	if c.choice.Exists() {
		first := u.like == root
		e := on.Edit(c.choice)
		cut, err := u.delta(e, c)
		if err != nil {
			return err
		}
		finish := c.choice.Get("finish_reason").Str()
		if u.finish != "" && finish != "" {
			e.Put(lens.Text("finish_reason", u.finish))
		}
		if cut > 0 && cut == c.delta.Len() && finish == "" && !first && root.Get("choices").Len() == 1 && len(usagesIn(root)) == 0 {
			u.gone = append(u.gone, rawjson.Edit{Start: c.Event.Start, End: c.Event.End})
			return nil
		}
		all.Add(e.Edits())
	}
	return c.Add(all.Edits())
}

// delta edits the delta of a choice, and what repeats it. It returns how many
// members it cuts.
func (u *unfolding) delta(e *lens.Edit, c *chunk) (cut int, err error) {
	if len(u.members) == 0 && u.calls.kept == nil {
		return 0, nil
	}
	at := c.delta.Key() + "/"
	put := func(m lens.Member) {
		if m.Raw == "" {
			cut++
		}
		e.Put(lens.Raw(at+m.Key, m.Raw))
	}
	for _, m := range u.members {
		if !says(c.delta.Get(m.Key)) {
			continue
		}
		if u.begun[m.Key] {
			m.Raw = ""
		}
		u.begun[m.Key] = m.Raw != "" || u.begun[m.Key]
		put(m)
	}
	if len(c.calls) > 0 && u.calls.kept != nil {
		if items := u.laidIn(c); len(items) == 0 {
			put(lens.None("tool_calls"))
		} else {
			e.Elements(at+"tool_calls", items)
		}
	}
	if u.said && spelled(c.choice) {
		e.Put(lens.Raw("logprobs", "null"))
	}
	copied := c.choice.Get("message")
	if copied.Kind() != rawjson.Object || copied == c.delta {
		return cut, nil
	}
	if hasReasoning(copied) || copied.Get("tool_calls").Len() > 0 {
		return 0, codec.Unencodablef("a message beside the deltas that repeats more than text")
	}
	for _, m := range u.members {
		if m.Key == "content" && says(copied.Get(m.Key)) {
			e.Put(lens.Raw("message/content", cmp.Or(m.Raw, "null")))
		}
	}
	return cut, nil
}

// laidIn returns the elements that tool_calls of a chunk has to have: pieces of calls
// that stay, and, at their place, those that are written.
func (u *unfolding) laidIn(c *chunk) []string {
	var items []string
	i := 0
	for v := range c.delta.Get("tool_calls").Each() {
		here := c == u.calls.at && i == u.calls.i
		if here && !u.calls.after {
			items = append(items, u.calls.texts...)
		}
		if u.calls.kept[c.calls[i]] {
			items = append(items, v.Raw())
		}
		if here && u.calls.after {
			items = append(items, u.calls.texts...)
		}
		i++
	}
	return items
}

// usage changes the figures of the last chunk that has some, and of those that
// say the same: others count what came before them.
func (u *unfolding) usage() error {
	last := true
	for _, c := range slices.Backward(u.chunks) {
		for _, v := range usagesIn(c.Root()) {
			if last || readUsage(v) == u.a.is.Usage {
				if err := c.Add(usageEdits(v, u.a.is.Usage, u.resp.Usage)); err != nil {
					return err
				}
			}
		}
		last = last && len(usagesIn(c.Root())) == 0
	}
	return nil
}

// inserted returns the chunks that come: with members that no delta had, and with
// calls where the stream had none.
func (u *unfolding) inserted() []rawjson.Edit {
	var deltas []string
	members := slices.DeleteFunc(u.members, func(m lens.Member) bool { return u.begun[m.Key] })
	if text := codec.Object(members...); text != "{}" {
		deltas = append(deltas, text)
	}
	if u.calls.at == nil && len(u.calls.texts) > 0 {
		deltas = append(deltas, codec.Object(lens.List("tool_calls", u.calls.texts)))
	}
	at, before := u.a.safe, ""
	if at == 0 && strings.HasPrefix(u.a.text, bom) {
		at, before = len(bom), "\n" // not every reader sees the line behind the mark
	}
	var out []rawjson.Edit
	for _, delta := range deltas {
		out = append(out, rawjson.Edit{Start: at, End: at, Text: before + eventText(chunkText(u.like, delta, "null"))})
		before = ""
	}
	return out
}

// numbered gives a call the index that a delta has, and that a call in a message
// does not.
func numbered(text string, i int64) (string, error) {
	v, err := codec.ParseObject(text)
	if err != nil {
		return "", err
	}
	return on.Set(v, lens.Raw("index", codec.Count(i)))
}
