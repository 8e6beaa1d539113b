package chat

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// turn puts the deltas of one choice together to a message as it stands in
// history.
type turn struct {
	index   int64
	finish  string // the last finish_reason
	behind  bool   // a piece of a call stood in a choice that was not the first of its chunk
	role    string
	texts   [pieces]strings.Builder
	content []*item // set once a delta has a list: then content is one
	listed  bool
	silent  bool // no delta had a text for content
	details []*detail
	audio   string // its id, as JSON
	more    bag    // members that are not known here
	astray  astray // of the chunk at hand
	calls   []*streamed
	byIndex map[int64]*streamed
	top     int64 // above every index
	byID    map[string]*streamed
	old     *streamed // a function_call
	order   []int     // where in calls the n-th that came is; set by strip
}

// piece is a member whose text comes in pieces.
type piece uint8

const (
	pieceText piece = iota
	pieceRefusal
	pieceThinking // of a content list
	pieceReasoning
	pieceReasoningContent
	pieceDetails
	pieces // how many there are
)

// seer is told what a delta holds while it is put together.
type seer interface {
	// piece gets one text, where it stands. again says that another member of
	// the delta has told the same.
	piece(p piece, v rawjson.Value, text string, again bool) error
	// call gets one delta of a call, after c.deltas earlier ones.
	call(c *streamed, v rawjson.Value) error
}

func newTurn(index int64) *turn {
	return &turn{index: index, silent: true, more: newBag(),
		byIndex: map[int64]*streamed{}, byID: map[string]*streamed{}}
}

// add reads one delta. starts reports whether it has a piece of a call.
func (t *turn) add(delta rawjson.Value, see seer) (starts bool, err error) {
	f := readFields(delta)
	if err := f.check(); err != nil {
		return false, err
	}
	if t.role == "" {
		t.role = f.role.Str()
	}
	if err := t.reason(&f, see); err != nil {
		return false, err
	}
	if err := t.say(&f, see); err != nil {
		return false, err
	}
	if id := f.audio.Get("id"); t.audio == "" && id.Str() != "" {
		t.audio = id.Raw()
	}
	t.keep(delta, &f)
	if f.calls.Len() > 0 && t.old != nil {
		return true, codec.Shapef("calls in both forms in one stream")
	}
	for v := range f.calls.Each() {
		c, err := t.place(v)
		if err == nil {
			c.from(t.astray)
			err = c.add(v, see)
		}
		if err != nil {
			return true, err
		}
	}
	if !f.hasFunction() {
		return f.calls.Len() > 0, nil
	}
	if len(t.calls) > 0 {
		return true, codec.Shapef("calls in both forms in one stream")
	}
	if t.old == nil {
		t.old = &streamed{old: true, last: -1, more: newBag(), inner: newBag()}
	}
	t.old.from(t.astray)
	return true, t.old.add(f.function, see)
}

// write adds a text, and says so.
func (t *turn) write(p piece, v rawjson.Value, text string, again bool, see seer) error {
	if text == "" {
		return nil
	}
	t.texts[p].WriteString(text)
	return see.piece(p, v, text, again)
}

// reason reads the reasoning of a delta.
func (t *turn) reason(f *fields, see seer) error {
	content, plain := f.reasoningContent.Str(), f.reasoning.Str()
	if err := t.write(pieceReasoningContent, f.reasoningContent, content, false, see); err != nil {
		return err
	}
	if err := t.write(pieceReasoning, f.reasoning, plain, content != "", see); err != nil {
		return err
	}
	if f.details.Kind() != rawjson.Array {
		return nil
	}
	for d := range f.details.Each() {
		text := d.Get("text").Str() + d.Get("summary").Str()
		if err := t.write(pieceDetails, d, text, content != "" || plain != "", see); err != nil {
			return err
		}
		t.detail(d)
	}
	return nil
}

// say reads the content of a delta, a text or a list, and its refusal.
func (t *turn) say(f *fields, see seer) error {
	switch f.content.Kind() {
	case rawjson.String:
		t.silent = false
		if f.content.Str() != "" {
			t.last(pieceText).text.WriteString(f.content.Str())
		}
		if err := t.write(pieceText, f.content, f.content.Str(), false, see); err != nil {
			return err
		}
	case rawjson.Array:
		t.silent, t.listed = false, true
		for v := range f.content.Each() {
			if err := t.element(v, see); err != nil {
				return err
			}
		}
	}
	return t.write(pieceRefusal, f.refusal, f.refusal.Str(), false, see)
}

// element reads an element of a content list.
func (t *turn) element(v rawjson.Value, see seer) error {
	switch at := v.Get("text"); itemType(v) {
	case "text":
		it := t.last(pieceText)
		it.text.WriteString(at.Str())
		it.keep(v, "text")
		return t.write(pieceText, at, at.Str(), false, see)
	case "thinking":
		it := t.last(pieceThinking)
		it.keep(v, "thinking")
		at := v.Get("thinking")
		if at.Kind() == rawjson.String {
			it.text.WriteString(at.Str())
			return t.write(pieceThinking, at, at.Str(), false, see)
		}
		for inner := range at.Each() {
			text := inner.Get("text")
			it.text.WriteString(text.Str())
			if err := t.write(pieceThinking, text, text.Str(), false, see); err != nil {
				return err
			}
		}
		return nil
	}
	t.content = append(t.content, &item{raw: v.Raw()})
	return nil
}

// itemType returns what an element is: all with a text are the same to a
// reader.
func itemType(v rawjson.Value) string {
	kind := v.Get("type")
	switch word := kind.Str(); {
	case word == "thinking":
		return word
	case kind.Kind() != rawjson.String || word == "text" || word == "input_text" || word == "output_text":
		if v.Get("text").Kind() == rawjson.String {
			return "text"
		}
	}
	return ""
}

// last returns the item that a piece of content belongs to.
func (t *turn) last(p piece) *item {
	if n := len(t.content); n > 0 && t.content[n-1].piece == p && t.content[n-1].raw == "" {
		return t.content[n-1]
	}
	it := &item{piece: p, more: newBag()}
	t.content = append(t.content, it)
	return it
}

// keep notes the members of a delta that are not known here.
func (t *turn) keep(delta rawjson.Value, f *fields) {
	for m := range delta.Each() {
		if f.slot(m.Key()) == nil {
			t.more.add(m)
		}
	}
}

// raw returns the message, as JSON.
func (t *turn) raw() string {
	role := t.role
	if role == "" {
		role = "assistant"
	}
	members := []codec.Member{{Key: "role", Raw: rawjson.Quote(role)}, {Key: "content", Raw: t.contentRaw()}}
	add := func(key string, p piece) {
		if b := &t.texts[p]; b.Len() > 0 {
			members = append(members, codec.Member{Key: key, Raw: rawjson.Quote(b.String())})
		}
	}
	add("reasoning_content", pieceReasoningContent)
	add("reasoning", pieceReasoning)
	if len(t.details) > 0 {
		items := make([]string, len(t.details))
		for i, d := range t.details {
			items[i] = d.json()
		}
		members = append(members, codec.Member{Key: "reasoning_details", Raw: codec.Array(items)})
	}
	add("refusal", pieceRefusal)
	if t.audio != "" {
		members = append(members, codec.Member{Key: "audio", Raw: codec.Object(codec.Member{Key: "id", Raw: t.audio})})
	}
	members = append(members, t.more.members()...)
	return codec.Object(append(members, t.callsRaw()...)...)
}

func (t *turn) contentRaw() string {
	switch {
	case t.silent:
		return "null"
	case !t.listed:
		return rawjson.Quote(t.texts[pieceText].String())
	}
	items := make([]string, len(t.content))
	for i, it := range t.content {
		items[i] = it.json()
	}
	return codec.Array(items)
}

func (t *turn) callsRaw() []codec.Member {
	t.sortCalls()
	if len(t.calls) == 0 {
		if t.old == nil {
			return nil
		}
		return []codec.Member{{Key: "function_call", Raw: t.old.json()}}
	}
	items := make([]string, len(t.calls))
	for i, c := range t.calls {
		items[i] = c.json()
	}
	return []codec.Member{{Key: "tool_calls", Raw: codec.Array(items)}}
}

// sortCalls brings the calls into the order that clients give them.
func (t *turn) sortCalls() {
	slices.SortStableFunc(t.calls, func(a, b *streamed) int { return cmp.Compare(a.index, b.index) })
}

// strip drops the texts and leaves what an edit has to know.
func (t *turn) strip() {
	t.texts = [pieces]strings.Builder{}
	t.content, t.details, t.more, t.byIndex, t.byID = nil, nil, bag{}, nil, nil
	t.order = make([]int, len(t.calls))
	for i, c := range t.calls {
		t.order[c.seq] = i
		c.args, c.more, c.inner = strings.Builder{}, bag{}, bag{}
	}
}
