package chat

import (
	"cmp"
	"fmt"
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
	codec.Units
	req     *middleware.Request // that is answered; nil: not known
	sink    middleware.Sink
	before  int // how many calls the conversation has before this answer
	turns   map[int64]*turn
	model   string
	like    []lens.Member // what the chunks repeat, of the first one with a choice
	figures string        // the last usage object
	usage   middleware.Usage
	shown   map[int64]shown // what the client may be shown of each choice
	done    bool
	strange bool // an object that is not a chunk was seen
	failed  *middleware.ModelError
	answer  *answer // set by Close
}

// known has the members of a chunk that are written though a word for calls stands in
// them: text may speak of calls.
var known = codec.Tree{"choices": {"index": nil, "finish_reason": nil, "logprobs": nil, "delta": message, "message": message}}

var message = codec.Tree{"role": nil, "content": nil, "reasoning_content": nil, "reasoning": nil, "reasoning_details": nil, "refusal": nil, "audio": nil}

// NewStream returns a reader of one answer.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := newStream(req != nil && len(req.Tools) > 0)
	s.req, s.sink = req, sink
	if req != nil {
		s.before = codec.Calls(req.Messages)
	}
	return s
}

// newStream returns a reader at the beginning of an answer to a request that offered
// tools, or did not.
func newStream(tools bool) *stream {
	s := &stream{}
	s.Units = codec.NewUnits(s, known, false, tools)
	return s
}

// Fate returns what becomes of a unit. A call, an error and the end of the first choice are
// held.
func (s *stream) Fate(u *codec.Unit) (codec.Fate, error) {
	v := u.Value
	switch {
	case s.Buf.IsWhole(), u.Name == "error", strings.TrimSpace(u.Data) == "[DONE]":
		return codec.FateHold, nil
	case isFailure(v), isFailure(v.Get("x_groq")), v.Get("object").Str() == "error":
		return codec.FateHold, nil
	case u.Err != nil && strings.HasPrefix(strings.TrimSpace(u.Data), "{"):
		if s.Closed() && codec.CutShort(u.Err) {
			return codec.FateHold, nil
		}
		return codec.FateHold, u.Err
	}
	fate, at := codec.FatePass, int64(0)
	for c := range v.Get("choices").Each() {
		n, ok := indexOf(c)
		if !ok {
			n = at
		}
		at++
		delta := c.Get("delta")
		if !delta.Exists() {
			delta = c.Get("message")
		}
		switch {
		case isFailure(c), textOf(c.Get("finish_reason")) != "" && n == 0, !delta.Get("tool_calls").Empty() && delta.Get("tool_calls").Exists(), hasFunction(delta):
			return codec.FateHold, nil
		case says(delta.Get("content")), says(delta.Get("refusal")):
			fate = codec.FateShow
		case says(delta.Get("reasoning_content")), says(delta.Get("reasoning")), says(delta.Get("reasoning_details")):
			if fate == codec.FatePass {
				fate = codec.FateWait
			}
		}
	}
	return fate, nil
}

// Mark notes what the client may be shown.
func (s *stream) Mark() {
	s.shown = map[int64]shown{}
	for n, t := range s.turns {
		s.shown[n] = shown{role: t.role != "", message: t.raw()}
	}
}

// Read reads a unit. It keeps no value of u.
func (s *stream) Read(u *codec.Unit) error {
	data := strings.TrimSpace(u.Data)
	switch {
	case s.Buf.IsWhole():
		return s.whole(u)
	case data == "[DONE]":
		s.done = true
	case u.Value.Exists():
		return s.chunk(u)
	case u.Name == "error":
		s.failed = cmp.Or(s.failed, codec.ModelError(0, nil, codec.Refusal(codec.Failure{Message: cmp.Or(data, noMessage)}, rawjson.Value{})))
	}
	return nil
}

// chunk reads a chunk of the answer.
// Servers add chunks without choices: with the figures at the end, with the verdict
// of a filter at the beginning (Azure), or as a sign of life. An object without
// choices that is none of those is noted as strange: a stream of nothing else is not
// an answer of this format.
func (s *stream) chunk(u *codec.Unit) error {
	v := u.Value
	failed := s.fail(v)
	failed = s.fail(v.Get("x_groq")) || failed
	if !failed && (u.Name == "error" || v.Get("object").Str() == "error") { // its members are the data itself
		s.failed, failed = modelError(v, v), true
	}
	choices := v.Get("choices")
	switch choices.Kind() {
	case rawjson.Array:
	case rawjson.Invalid, rawjson.Null:
		s.strange = s.strange || !failed
	default:
		return codec.Shapef("choices is of kind %s", choices.Kind())
	}
	if len(s.like) == 0 && choices.Len() > 0 {
		s.like = envelope(v)
	}
	s.model = cmp.Or(v.Get("model").Str(), s.model)
	if figures := usagesIn(v); len(figures) > 0 {
		s.usage, s.figures = readUsage(figures[0]), figures[0].Raw()
	}
	at := int64(0)
	for c := range choices.Each() {
		if err := s.choice(c, at); err != nil {
			return err
		}
		at++
	}
	if at == 1 {
		s.repeats(u)
	}
	return nil
}

// repeats has the chunks that bring another text, and say the same as u beside it, read
// without being parsed.
func (s *stream) repeats(u *codec.Unit) {
	for c := range u.Value.Get("choices").Each() {
		n, ok := indexOf(c)
		content := c.Get("delta").Get("content")
		if !ok || content.Str() == "" {
			return
		}
		for m := range c.Get("delta").Each() {
			if k := m.Key(); k != "content" && k != "role" && m.Kind() != rawjson.Null {
				return
			}
		}
		t := s.turns[n]
		s.Repeats(u, func(text string) error {
			if t.half != "" { // what follows is not a second half
				t.half, text = "", "\ufffd"+text
			}
			return t.sayText(text, s.sinkOf(t))
		}, content, u.Value.Get("obfuscation"), u.Value.Get("p"))
	}
}

// sinkOf returns the sink for what t says: further choices are not shown.
func (s *stream) sinkOf(t *turn) middleware.Sink {
	if t.index != 0 {
		return nil
	}
	return s.sink
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
func (s *stream) choice(v rawjson.Value, at int64) error {
	t, err := s.turn(v, at)
	if err != nil {
		return err
	}
	s.fail(v)
	if word := textOf(v.Get("finish_reason")); word != "" {
		t.finish = word
	}
	delta := t.deltaIn(v)
	if k := delta.Kind(); k != rawjson.Object && k != rawjson.Null && k != rawjson.Invalid {
		return codec.Shapef("a delta is of kind %s", k)
	}
	calls, err := t.add(delta, s.sinkOf(t))
	switch {
	case err != nil || !calls:
	case s.done:
		err = codec.Shapef("a call behind the end of the stream")
	case s.failed != nil:
		err = codec.Shapef("calls beside or behind an error")
	}
	return err
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

// Response returns the answer after the last unit.
func (s *stream) Response() (*middleware.Response, error) {
	a := s.answer // of one object
	var err error
	switch {
	case s.Buf.IsWhole():
	default:
		a, err = s.streamed(s.Text())
	}
	if err == nil && a == nil {
		err = codec.ErrIncomplete
	}
	if err == nil {
		err = codec.Unasked(s.req, dialect, &a.Is, "n")
	}
	if err != nil {
		return nil, err
	}
	s.answer = a
	resp := a.Is.Clone()
	resp.Native = on.Remember(a.Text, a)
	return resp, nil
}

// streamed returns the answer that the events made. A stream without an end is none.
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
	for _, t := range s.turns {
		if t.finish == "" && !s.done {
			return nil, codec.ErrIncomplete
		}
	}
	return s.put(text, true)
}

// failure returns the error that the provider sent, with what it has cost.
func (s *stream) failure() error {
	if s.usage == (middleware.Usage{}) {
		return s.failed
	}
	return codec.WithUsage(s.failed, s.model, s.usage)
}
