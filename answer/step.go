package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/middleware"
)

// answerStep is one request on its way through the middleware. It calls the model
// until the text is valid or an attempt must not follow.
type answerStep struct {
	*checker
	next   middleware.ModelCall
	req    *middleware.Request    // the caller's request
	asked  *middleware.Request    // with the failed turns appended
	turns  [][]middleware.Message // the failed turns
	buffer *textBuffer            // nil if the response is not streamed
	tally  middleware.Tally

	attempt  int
	last     *middleware.Response // the last response, as sent
	issues   []middleware.Issue   // the issues of last
	failures loopstate.Watch      // detects repetitions
	repaired bool                 // the text that is returned differs from the text that was sent
}

func newStep(c *checker, next middleware.ModelCall, req *middleware.Request) *answerStep {
	if c.o.Instruct {
		req = req.WithSystem(c.instructions())
	}
	s := &answerStep{checker: c, next: next, req: req, asked: req}
	if req.Sink != nil {
		s.buffer = &textBuffer{sink: run.Sink("answer", req.Sink)}
		watched := *s.asked
		watched.Sink = s.buffer.event
		s.asked = &watched
	}
	for _, note := range c.notes() {
		s.tally.Note(note)
	}
	return s
}

// notes returns remarks about the schema for an operator.
func (c *checker) notes() []string {
	if c.schema == nil {
		return nil
	}
	var notes []string
	for _, n := range c.schema.Notes() {
		notes = append(notes, "answer: "+n)
	}
	return notes
}

func (s *answerStep) run(ctx context.Context) (*middleware.Response, error) {
	for {
		s.attempt++
		resp, err := s.tally.Call(ctx, s.next, s.asked)
		if err != nil && s.last != nil && ctx.Err() == nil && s.o.OnExhausted == middleware.Pass && !errors.Is(err, middleware.ErrBudget) {
			s.tally.Note("answer: a re-ask failed, so the last response was returned") // as in argsvalidate, it takes nothing away
			out := *s.last
			out.Report.Status = middleware.Invalid
			return s.tally.Finish(&out, nil)
		}
		if err != nil {
			return s.tally.Finish(nil, s.interrupted(ctx, err))
		}
		if done, out, err := s.handle(ctx, resp); done {
			return s.finish(out, err)
		}
		if ctx.Err() != nil {
			return s.tally.Finish(nil, s.contextEnded(run.ContextError(ctx)))
		}
	}
}

// handle validates an answer. If done is true, resp and err are the outcome.
func (s *answerStep) handle(ctx context.Context, resp *middleware.Response) (done bool, _ *middleware.Response, _ error) {
	switch {
	case len(resp.Message.ToolCalls) > 0:
		return true, resp, nil
	case resp.Report.Status == middleware.Invalid:
		s.tally.Note("the answer was not validated: a layer inside found the message invalid")
		return true, resp, nil
	case resp.FinishReason == middleware.FinishFilter:
		s.tally.Note("the answer was not validated: the provider's filter stopped it")
		return true, resp, nil
	case resp.FinishReason == "pause_turn" && resp.Unpaired:
		s.tally.Note("the answer was not validated: it goes on behind a provider-executed tool")
		return true, resp, nil
	case resp.Message.Refused():
		s.tally.Note("the answer was not validated: the model refused to answer")
		return true, resp, nil
	}
	if len(resp.Choices) > 0 {
		s.tally.Note("only the first choice of the answer was validated")
	}
	s.last = resp
	sent := resp.Message.Text()
	j, err := s.text(ctx, sent, resp.FinishReason != middleware.FinishLength)
	if s.issues = j.issues; err != nil {
		if ctx.Err() != nil {
			return true, nil, s.contextEnded(err)
		}
		return true, nil, &Error{Response: resp, reasons: []error{ErrCheck, err}}
	}
	if len(j.issues) > 0 {
		return s.reask(ctx, sent)
	}
	s.tally.SetAnswer(nil, j.changes, nil)
	out := *resp
	out.Report.Status = middleware.Valid
	if slices.ContainsFunc(resp.Choices, func(m middleware.Message) bool { return len(m.ToolCalls) > 0 }) {
		out.Report.Status = middleware.Unchecked // no middleware has validated those calls
	}
	if s.repaired = j.text != sent; s.repaired {
		out.Message = withText(resp.Message, j.text)
	}
	return true, &out, nil
}

// reask appends the failed turn to the request, or ends the step.
func (s *answerStep) reask(ctx context.Context, sent string) (done bool, _ *middleware.Response, _ error) {
	s.failures.Failed(loopstate.Text(sent))
	why := s.failures.Ended(s.attempt, "invalid answer")
	switch {
	case s.attempt >= s.o.MaxAttempts:
		return s.exhausted()
	case s.last.Unpaired:
		why = "not asked again: the message holds a call or a result of a provider-executed tool whose other half is in another answer"
		fallthrough
	case why != "":
		s.tally.Note(why)
		return s.exhausted()
	}
	turn := s.turn(ctx, sent)
	s.tally.SetAnswer(s.issues, nil, turn[len(turn)-1:])
	s.turns = history.Recent(append(s.turns, turn), maxTurns)
	sink := s.asked.Sink
	s.asked = s.req.With(slices.Concat(s.turns...)...)
	s.asked.Sink = sink
	return false, nil, nil
}

// exhausted raises, or marks the message. A text that the options pass on is still
// an answer. Inside argsvalidate the text of the zero value is not: argsvalidate
// decides (see middleware.Response.Unusable).
func (s *answerStep) exhausted() (done bool, _ *middleware.Response, _ error) {
	raises := s.o.OnExhausted.Raises(s.req)
	if raises || s.o.OnExhausted == middleware.Pass {
		s.tally.SetAnswer(s.issues, nil, nil)
	} else {
		s.tally.SetIssues(s.issues, nil, nil)
	}
	if raises {
		return true, nil, s.invalidError(ErrExhausted)
	}
	out := *s.last
	out.Report.Status = middleware.Invalid
	return true, &out, nil
}

// invalidError returns the reasons why the last answer is invalid.
func (s *answerStep) invalidError(reasons ...error) *Error {
	return &Error{Response: s.last, Issues: s.issues, reasons: append(reasons, ErrInvalid), attempts: s.attempt}
}

// contextEnded adds the issues of the last answer to the error of an ended context.
func (s *answerStep) contextEnded(err error) error {
	if len(s.issues) == 0 {
		return fmt.Errorf("answer: ended in attempt %d: %w", s.attempt, err)
	}
	return fmt.Errorf("answer: ended after attempt %d: %w: %w", s.attempt, err, s.invalidError())
}

// interrupted does the same if the context ended during a model call.
func (s *answerStep) interrupted(ctx context.Context, err error) error {
	if s.last == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("answer: ended in attempt %d: %w: %w", s.attempt, err, s.invalidError())
}

// finish sends the text to the sink and completes the report.
func (s *answerStep) finish(resp *middleware.Response, err error) (*middleware.Response, error) {
	if err == nil && s.buffer != nil {
		err = s.buffer.show(resp.Message.Text(), s.repaired)
	}
	return s.tally.Finish(resp, err)
}

// withText returns m with text in place of its text parts.
func withText(m middleware.Message, text string) middleware.Message {
	m = m.Clone()
	m.Role = cmp.Or(m.Role, middleware.RoleAssistant)
	rest := m.Parts[:0]
	for _, p := range m.Parts {
		if p.Kind == middleware.PartText {
			if p.Text, text = text, ""; p.Text == "" {
				continue
			}
		}
		rest = append(rest, p)
	}
	m.Parts = rest
	return m
}
