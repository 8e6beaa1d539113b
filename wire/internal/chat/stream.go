package chat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// stream reads an answer. Recorded answers end with [DONE], or with a
// finish_reason and no [DONE] (Perplexity, Cerebras), or with [DONE] and no
// finish_reason (Snowflake, audio): one of the two makes it whole.
type stream struct {
	req     *middleware.Request // that is answered; nil: not known
	buf     *codec.Buffer
	sink    middleware.Sink
	calls   int // how many the conversation has before this answer
	turns   map[int64]*turn
	model   string
	id      string // of the first chunk that has one
	astray  astray // what the chunk at hand has else
	usage   middleware.Usage
	events  int
	usageAt int // the event with the final figures; 0 for none
	done    bool
	strange bool // an object that is no chunk was seen
	ending  bool
	failed  *middleware.ModelError
	err     error // ends the stream
	closed  bool
	resp    *middleware.Response // set by Close, with answer
	answer  *answer
	see     seer // nil: the sink
}

// NewStream is part of wire.Codec.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := &stream{req: req, buf: codec.NewBuffer(false), sink: sink, turns: map[int64]*turn{}}
	if req != nil {
		s.calls = codec.Calls(req.Messages)
	}
	return s
}

// Write is part of wire.Stream.
func (s *stream) Write(p []byte) (int, error) {
	if s.err == nil {
		s.err = s.buf.Feed(p, s.event)
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// Safe is part of wire.Stream.
func (s *stream) Safe() int { return s.buf.Safe() }

// Text is part of codec.Stream.
func (s *stream) Text() string { return s.buf.Text() }

// event reads one event. A whole answer is read at the end.
func (s *stream) event(e codec.Event) (hold bool, err error) {
	s.events++
	data := strings.TrimSpace(e.Data)
	switch {
	case s.buf.IsWhole(), s.buf.IsArray():
		return true, nil
	case data == "[DONE]":
		s.done = true
		return true, nil
	case strings.HasPrefix(data, "{"):
	case e.Name == "error":
		s.failed = cmp.Or(s.failed, codec.ModelError(0, nil, codec.Refusal(codec.Failure{Message: cmp.Or(data, noMessage)}, rawjson.Value{})))
		return true, nil
	case strings.HasPrefix(e.Text, "{"): // an error in the middle may have no field before it
		v, _ := codec.ParseObject(e.Text)
		return s.fail(v), nil
	default:
		return false, nil
	}
	v, err := parseAnswer(e.Data)
	var cut *rawjson.Error
	switch {
	case s.ending && errors.As(err, &cut) && cut.AtEnd:
		return true, nil
	case err != nil:
		return true, err
	}
	return s.chunk(v, e.Name == "error")
}

// chunk reads a chunk of the answer.
func (s *stream) chunk(v rawjson.Value, isError bool) (hold bool, err error) {
	f := readChunk(v)
	hold = f.failed.Exists() && s.fail(v) || f.groq.Exists() && s.fail(f.groq)
	if !hold && (isError || f.object.Str() == "error") { // its members are the data itself
		s.failed, hold = modelError(v, v), true
	}
	switch f.choices.Kind() {
	case rawjson.Array:
	case rawjson.Invalid, rawjson.Null:
		s.strange = s.strange || !hold
	default:
		return true, codec.Shapef("choices is of kind %s", f.choices.Kind())
	}
	if s.id == "" {
		s.id = f.id.Str()
	}
	s.astray = 0
	if f.id.Str() != s.id {
		s.astray |= astrayID
	}
	if !isText(f.id) {
		s.astray |= astrayOdd
	}
	if f.object.Str() != "chat.completion.chunk" {
		s.astray |= astrayObject
	}
	if m := f.model.Str(); m != "" {
		s.model = m
	}
	if figures := f.figures(); len(figures) > 0 {
		s.usage, s.usageAt = readUsage(figures[0]), s.events
	}
	if err := distinct(f.choices); err != nil {
		return true, err
	}
	at := int64(0)
	for c := range f.choices.Each() {
		holds, err := s.choice(c, at)
		if err != nil {
			return true, err
		}
		hold = hold || holds
		at++
	}
	return hold, nil
}

// distinct returns an error if two choices of a chunk have one index: many
// clients read the first of them only.
func distinct(choices rawjson.Value) error {
	if choices.Len() < 2 {
		return nil
	}
	seen := map[int64]bool{}
	at := int64(0)
	for c := range choices.Each() {
		n, ok := indexOf(c)
		if !ok {
			n = at
		}
		if seen[n] {
			return codec.Shapef("two choices with one index")
		}
		seen[n] = true
		at++
	}
	return nil
}

// fail notes the error that v holds, and reports whether it has one.
func (s *stream) fail(v rawjson.Value) bool {
	e, ok := failureIn(v)
	if ok && s.failed == nil {
		s.failed = e
	}
	return ok
}

// usageIn returns the usage objects of a body or a chunk; Groq has two.
func usageIn(v rawjson.Value) []rawjson.Value { return readChunk(v).figures() }

func (f chunkFields) figures() []rawjson.Value {
	var out []rawjson.Value
	for _, u := range []rawjson.Value{f.usage, f.groq.Get("usage")} {
		if u.Kind() == rawjson.Object && !u.Empty() {
			out = append(out, u)
		}
	}
	return out
}

// choice reads a chunk's part of one choice, the element at of a list.
func (s *stream) choice(v rawjson.Value, at int64) (hold bool, err error) {
	t, err := s.turn(v, at)
	if err != nil {
		return true, err
	}
	hold = s.fail(v)
	if word := wordOf(v.Get("finish_reason")); word != "" {
		t.finish = word
		hold = hold || t.index == 0 // the end of a further choice is not the end
	}
	delta := deltaOf(v, t)
	if k := delta.Kind(); k != rawjson.Object && k != rawjson.Null && k != rawjson.Invalid {
		return true, codec.Shapef("a delta is of kind %s", k)
	}
	t.astray = s.astray
	starts, err := t.add(delta, s.seer(t))
	t.behind = t.behind || starts && at > 0
	switch {
	case err != nil || !starts:
	case s.done:
		err = codec.Shapef("a call behind the end of the stream")
	case s.failed != nil:
		err = codec.Shapef("calls beside or behind an error")
	}
	return hold || starts, err
}

// deltaOf returns a choice's delta. Perplexity repeats in message what was
// said so far; where there is only that, it is the delta.
func deltaOf(choice rawjson.Value, t *turn) rawjson.Value {
	if d := choice.Get("delta"); d.Exists() || t.role != "" || !t.silent {
		return d
	}
	return choice.Get("message")
}

// turn returns the turn that a choice belongs to: by its index or, where that is
// no sensible one, by its place in the list.
func (s *stream) turn(choice rawjson.Value, at int64) (*turn, error) {
	if choice.Kind() != rawjson.Object {
		return nil, codec.Shapef("a choice is of kind %s", choice.Kind())
	}
	n, ok := indexOf(choice)
	if !ok {
		n = at
	}
	if n > maxIndex {
		return nil, codec.Shapef("more than %d choices", maxIndex)
	}
	t := s.turns[n]
	if t == nil {
		t = newTurn(n)
		s.turns[n] = t
	}
	return t, nil
}

// seer returns who is told what a delta of t holds.
func (s *stream) seer(t *turn) seer {
	switch {
	case t.index != 0:
		return teller{}
	case s.see != nil:
		return s.see
	}
	return teller{s.sink}
}

// teller passes texts on to a sink.
type teller struct{ sink middleware.Sink }

func (t teller) piece(p piece, _ rawjson.Value, text string, again bool) error {
	if t.sink == nil || again {
		return nil
	}
	kind := middleware.EventReasoning
	if p == pieceText || p == pieceRefusal {
		kind = middleware.EventText
	}
	return t.sink(middleware.Event{Kind: kind, Text: text})
}

func (teller) call(*streamed, rawjson.Value) error { return nil }

// tell passes on what an answer that is no stream says.
func (s *stream) tell(m middleware.Message) error {
	piece := map[middleware.PartKind]piece{middleware.PartText: pieceText, middleware.PartReasoning: pieceReasoning}
	for _, p := range m.Parts {
		if kind, ok := piece[p.Kind]; ok && p.Text != "" {
			if err := (teller{s.sink}).piece(kind, rawjson.Value{}, p.Text, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close is part of wire.Stream.
func (s *stream) Close() (*middleware.Response, error) {
	if s.closed {
		return s.resp, s.err
	}
	s.closed = true
	if s.err == nil {
		s.resp, s.err = s.end()
	}
	if s.err == nil {
		s.err = codec.Unasked(s.req, dialect, s.resp, "n")
	}
	if s.err != nil {
		return nil, s.err
	}
	s.answer = s.resp.Native.Ref.(*answer)
	return s.resp, nil
}

func (s *stream) end() (*middleware.Response, error) {
	s.ending = true
	if err := s.buf.End(s.event); err != nil {
		return nil, err
	}
	switch {
	case s.buf.IsWhole():
		resp, err := s.whole(s.buf.Text())
		if err != nil {
			return nil, err
		}
		return resp, s.tell(resp.Message)
	case s.buf.IsArray():
		return nil, codec.Shapef("an array")
	}
	return s.streamed(s.buf.Text())
}

// streamed returns the answer that the events made.
func (s *stream) streamed(text string) (*middleware.Response, error) {
	if s.failed != nil {
		return nil, s.failure()
	}
	if len(s.turns) == 0 {
		switch {
		case s.strange:
			return nil, codec.Shapef("events without choices")
		case s.done:
			return nil, &middleware.ModelError{Err: fmt.Errorf("wire: the provider sent a stream without an answer: %w", codec.ErrIncomplete)}
		}
		return nil, codec.ErrIncomplete
	}
	turns := make([]*turn, 0, len(s.turns))
	for _, t := range s.turns {
		if t.finish == "" && !s.done {
			return nil, codec.ErrIncomplete
		}
		if err := t.divided(); err != nil {
			return nil, err
		}
		turns = append(turns, t)
	}
	slices.SortFunc(turns, func(a, b *turn) int { return cmp.Compare(a.index, b.index) })
	if turns[0].behind { // many clients read the first choice of each chunk
		return nil, codec.Shapef("a call in a choice behind another one")
	}
	a := &answer{text: text, main: turns[0], usageAt: s.usageAt, safe: s.buf.Safe(), word: turns[0].finish, model: s.model, usage: s.usage}
	resp, err := a.response(s.calls, len(turns), func(i int) (rawjson.Value, error) { return codec.ParseObject(turns[i].raw()) })
	for _, t := range turns {
		t.strip()
	}
	return resp, err
}

// failure returns the error that the provider sent, with what it has cost.
func (s *stream) failure() error {
	if s.usage == (middleware.Usage{}) {
		return s.failed
	}
	return codec.WithUsage(s.failed, s.model, s.usage)
}
