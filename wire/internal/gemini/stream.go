package gemini

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// stream reads an answer: server-sent events, a JSON array, or one object.
type stream struct {
	req     *middleware.Request // that is answered; nil: not known
	sink    middleware.Sink
	buf     *codec.Buffer
	calls   int // of the conversation before
	builtin func(string) bool
	a       *answer
	ending  bool
	cut     bool // the last event is not whole
	closed  bool
	failed  error // of the provider
	err     error
}

// NewStream is part of wire.Codec.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := &stream{req: req, sink: sink, buf: codec.NewBuffer(false), a: &answer{}}
	if req != nil {
		s.calls, s.builtin = codec.Calls(req.Messages), builtinsOf(req.Tools)
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

func (s *stream) event(e codec.Event) (hold bool, err error) {
	data := e.Data
	if data == "" {
		data = strings.TrimSpace(e.Text) // an error in the middle has no field before it
	}
	if !strings.HasPrefix(strings.TrimLeft(data, " \t\r\n"), "{") {
		if data != "" && (s.buf.IsWhole() || s.buf.IsArray()) {
			return true, codec.Shapef("an answer that is no object")
		}
		return false, nil
	}
	doc, err := codec.Parse(data)
	if err != nil {
		var bad *rawjson.Error
		if s.ending && errors.As(err, &bad) && bad.AtEnd {
			s.cut = true
			return true, nil
		}
		return true, err
	}
	if err := answerEnvelope.Check(doc.Root()); err != nil {
		return true, err
	}
	if failure := get(doc.Root(), "error"); isFailure(failure) {
		status := int(codec.Int(get(failure, "code")))
		if status < 400 || status > 599 {
			status = 0
		}
		s.failed = modelError(status, nil, failure)
	}
	if s.failed != nil {
		if get(doc.Root(), "candidates").Len() > 0 {
			return true, codec.Shapef("candidates beside or behind an error")
		}
		return true, nil
	}
	if e.Data == "" {
		return false, nil
	}
	return s.a.read(e, doc, s.show)
}

// show sends a piece of text to the sink.
func (s *stream) show(p middleware.Part) error {
	if s.sink == nil || p.Text == "" {
		return nil
	}
	switch p.Kind {
	case middleware.PartText:
		return s.sink(middleware.Event{Kind: middleware.EventText, Text: p.Text})
	case middleware.PartReasoning:
		return s.sink(middleware.Event{Kind: middleware.EventReasoning, Text: p.Text})
	}
	return nil
}

// Close is part of wire.Stream. An answer is whole when it says why it ended.
func (s *stream) Close() (*middleware.Response, error) {
	if !s.closed && s.err == nil {
		s.ending = true
		if s.err = s.buf.End(s.event); s.err == nil {
			s.err = s.finish()
		}
	}
	s.closed = true
	if s.err != nil {
		return nil, s.err
	}
	if s.err = codec.Unasked(s.req, dialect, &s.a.was, "generationConfig", "candidateCount"); s.err != nil {
		return nil, s.err
	}
	out := s.a.was.Clone()
	out.Native = &s.a.native
	return out, nil
}

func (s *stream) finish() error {
	a := s.a
	a.native = middleware.Native{Dialect: dialect, Raw: s.buf.Text(), Ref: a}
	if err := s.whole(); err != nil {
		return err
	}
	for i, sp := range a.speakers {
		m := sp.message(s.calls, s.builtin)
		if i > 0 {
			a.was.Choices = append(a.was.Choices, m)
			continue
		}
		a.was.Message = m
		a.was.FinishReason = finishReason(sp.finish, len(m.ToolCalls) > 0)
	}
	sp := a.main()
	switch {
	case sp == nil:
		a.was.Message = middleware.Message{Role: middleware.RoleAssistant}
		fallthrough
	case sp.finish == "":
		a.was.FinishReason = middleware.FinishFilter
	case len(a.was.Message.ToolCalls) == 0 && slices.Contains(refusalWords, sp.finish):
		refused := codec.ModelError(0, nil, codec.Failure{Code: sp.finish, Refused: true, Output: cmp.Or(sp.finishMessage(), a.was.Message.Text())})
		return codec.WithUsage(refused, a.was.Model, a.was.Usage)
	}
	return nil
}

// whole returns what is wrong with the answer as a whole.
func (s *stream) whole() error {
	if s.failed != nil {
		return s.failed
	}
	a := s.a
	if s.buf.IsArray() {
		if _, err := codec.Parse(a.native.Raw); err != nil {
			var bad *rawjson.Error
			if errors.As(err, &bad) && bad.AtEnd {
				return codec.ErrIncomplete
			}
			return err
		}
	}
	sp := a.main()
	switch {
	case s.cut:
		return codec.ErrIncomplete
	case a.blocked && (sp == nil || sp.joined == nil):
		return nil
	case sp == nil && s.buf.IsWhole() && len(a.chunks) > 0 && !a.usage.Exists():
		return codec.Shapef("an object without candidates")
	case sp == nil || sp.finish == "":
		return codec.ErrIncomplete
	case sp.behind && slices.ContainsFunc(sp.content.pieces, func(p *piece) bool { return p.call != nil }):
		return codec.Shapef("a call in a candidate behind another one") // many clients read the first one of each chunk
	case sp.joined != nil:
		return codec.Shapef("a call that does not end")
	}
	return nil
}
