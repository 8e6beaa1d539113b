package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// stream reads an answer. Recorded answers end with [DONE], or with a
// finish_reason and no [DONE] (Perplexity, Cerebras), or with [DONE] and no
// finish_reason (Snowflake, audio): one of the two makes it whole.
type stream struct {
	codec.Reader
	req     *middleware.Request // that is answered; nil: not known
	sink    middleware.Sink
	before  int // how many calls the conversation has before this answer
	turns   map[int64]*turn
	model   string
	id      string // of the first chunk that has one
	astray  astray // what the chunk at hand has else
	usage   middleware.Usage
	keeps   bool     // an edit wants the chunks
	chunks  []*chunk // if it keeps them
	done    bool
	strange bool // an object that is not a chunk was seen
	failed  *middleware.ModelError
	answer  *answer // set by Close
}

// chunk is an event of a stream, and what it says of choice 0.
type chunk struct {
	lens.Chunk
	choice, delta rawjson.Value
	calls         []*piecemeal // that the elements of tool_calls belong to
}

// NewStream is part of wire.Codec.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := newStream()
	s.req, s.sink = req, sink
	if req != nil {
		s.before = codec.Calls(req.Messages)
	}
	return s
}

func newStream() *stream {
	s := &stream{}
	s.Reader = codec.NewReader(codec.NewBuffer(false), s.event, s.response)
	return s
}

// event reads one event. A whole answer is read at the end.
func (s *stream) event(e codec.Event) (hold bool, err error) {
	data := strings.TrimSpace(e.Data)
	switch {
	case s.Buf.IsWhole(), s.Buf.IsArray():
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
	var kept *chunk
	if s.keeps {
		doc, _ := codec.ParseBody(e.Data) // without one, borrowAnswer fails too
		kept = &chunk{Chunk: lens.Chunk{Event: e, Doc: doc}}
	}
	cut, err := borrowAnswer(e.Data, func(v rawjson.Value) (err error) {
		if kept != nil {
			s.chunks = append(s.chunks, kept)
			v = kept.Doc.Root()
		}
		hold, err = s.chunk(v, e.Name == "error")
		return err
	})
	if s.Closed() && cut {
		return true, nil
	}
	return hold || err != nil, err
}

// chunk reads a chunk of the answer, and keeps no value of it unless keeps is set.
// Servers add chunks without choices: with the figures at the end, with the verdict
// of a filter at the beginning (Azure), or as a sign of life. An object without
// choices that is none of those is noted as strange: a stream of nothing else is not
// an answer of this format.
func (s *stream) chunk(v rawjson.Value, isError bool) (hold bool, err error) {
	failed := s.fail(v)
	hold = s.fail(v.Get("x_groq")) || failed
	object, id := v.Get("object").Str(), v.Get("id")
	if !hold && (isError || object == "error") { // its members are the data itself
		s.failed, hold = modelError(v, v), true
	}
	choices := v.Get("choices")
	switch choices.Kind() {
	case rawjson.Array:
	case rawjson.Invalid, rawjson.Null:
		s.strange = s.strange || !hold
	default:
		return true, codec.Shapef("choices is of kind %s", choices.Kind())
	}
	s.id, s.astray = cmp.Or(s.id, id.Str()), 0
	if id.Str() != s.id {
		s.astray |= astrayID
	}
	if !isText(id) {
		s.astray |= astrayOdd
	}
	if object != "chat.completion.chunk" {
		s.astray |= astrayObject
	}
	s.model = cmp.Or(v.Get("model").Str(), s.model)
	if figures := usagesIn(v); len(figures) > 0 {
		s.usage = readUsage(figures[0])
	}
	if err := distinct(choices); err != nil {
		return true, err
	}
	at := int64(0)
	for c := range choices.Each() {
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
	var seen []int64
	for c := range choices.Each() {
		n, ok := indexOf(c)
		if !ok {
			n = int64(len(seen))
		}
		if slices.Contains(seen, n) {
			return codec.Shapef("two choices with one index")
		}
		seen = append(seen, n)
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
	delta := v.Get("delta")
	if !delta.Exists() && t.role == "" && !t.text && !t.listed {
		delta = v.Get("message") // Perplexity repeats in message what was said so far; where there is only that, it is the delta
	}
	if k := delta.Kind(); k != rawjson.Object && k != rawjson.Null && k != rawjson.Invalid {
		return true, codec.Shapef("a delta is of kind %s", k)
	}
	sink := s.sink
	if t.index != 0 {
		sink = nil // further choices are not shown
	}
	calls, err := t.add(delta, s.astray, sink)
	if s.keeps && t.index == 0 {
		c := s.chunks[len(s.chunks)-1]
		c.choice, c.delta, c.calls = v, delta, slices.Clone(calls)
	}
	t.behind = t.behind || len(calls) > 0 && at > 0
	switch {
	case err != nil || len(calls) == 0:
	case s.done:
		err = codec.Shapef("a call behind the end of the stream")
	case s.failed != nil:
		err = codec.Shapef("calls beside or behind an error")
	}
	return hold || len(calls) > 0, err
}

// maxIndex bounds the indices of choices.
const maxIndex = 1 << 16

// turn returns the turn that a choice belongs to: by its index or, where that is
// no sensible one, by its place in the list. Choices may come in any order, and
// interleaved.
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
		t = &turn{index: n}
		if s.turns == nil {
			s.turns = map[int64]*turn{}
		}
		s.turns[n] = t
	}
	return t, nil
}

// response puts together what was read.
func (s *stream) response() (*middleware.Response, error) {
	var a *answer
	var err error
	switch {
	case s.Buf.IsWhole():
		a, err = s.whole(s.Text())
	case s.Buf.IsArray():
		err = codec.Shapef("an array")
	default:
		a, err = s.streamed(s.Text())
	}
	if err == nil {
		err = codec.Unasked(s.req, dialect, a.is, "n")
	}
	if err != nil {
		return nil, err
	}
	s.answer = a
	resp := a.is.Clone()
	resp.Native = on.Remember(a.text, a)
	return resp, nil
}

// streamed returns the answer that the events made. A stream without an end, and
// one of which clients read different calls, is none.
func (s *stream) streamed(text string) (*answer, error) {
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
	var turns []*turn
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
	a := &answer{text: text, streamed: true, word: turns[0].finish, safe: s.Buf.Safe(), late: turns[0].index != 0}
	messages := make([]rawjson.Value, len(turns))
	for i, t := range turns {
		var err error
		if messages[i], err = codec.ParseObject(t.raw()); err != nil {
			return nil, err
		}
	}
	return a, s.read(a, messages)
}

// failure returns the error that the provider sent, with what it has cost.
func (s *stream) failure() error {
	if s.usage == (middleware.Usage{}) {
		return s.failed
	}
	return codec.WithUsage(s.failed, s.model, s.usage)
}
