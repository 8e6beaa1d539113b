package textcall

import (
	"context"
	"fmt"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/middleware"
)

// textStep is one request on its way through the middleware. It re-asks the model until its
// text can be used.
type textStep struct {
	config
	next    middleware.ModelCall
	req     *middleware.Request // the caller's, never changed
	asked   *middleware.Request // in text, with the failed attempts appended
	tools   toolset
	offered bool // the model may call tools
	tally   middleware.Tally

	failures loopstate.Watch // to notice a repetition
}

// newStep puts the request into text. Without tools to offer, the step asks
// once.
func newStep(ctx context.Context, c config, next middleware.ModelCall, req *middleware.Request) *textStep {
	s := &textStep{config: c, next: next, req: req, tools: newToolset(req), failures: loopstate.From(ctx)}
	s.offered = len(s.tools.callable) > 0
	s.asked = s.textual()
	return s
}

// run asks until a text can be used or no attempt is left. An error of the model
// call ends the step: package retry repeats such calls.
func (s *textStep) run(ctx context.Context) (*middleware.Response, error) {
	for attempt := 1; ; attempt++ {
		h := &eventBuffer{}
		resp, err := s.tally.Call(ctx, h.over(s.next), s.asked)
		if err != nil {
			return s.tally.Finish(nil, err)
		}
		r, problem := s.reading(resp)
		if problem != "" && s.req.OuterReads(resp) { // rescue, outside, makes the call
			r, problem = reading{}, ""
		}
		if problem == "" {
			return s.finish(h, resp, r)
		}
		// The model repeats texts that failed, in this step or in earlier steps of an agent's
		// run. White space is ignored.
		repeated := s.failures.Failed(loopstate.Text(resp.Message.Text())) >= loopstate.Hopeless && attempt < s.most
		if repeated || attempt >= s.most {
			return s.exhausted(ctx, h, resp, r, problem, attempt, repeated)
		}
		s.askAgain(resp, r, problem)
		if ctx.Err() != nil {
			return s.tally.Finish(nil, fmt.Errorf("textcall: ended before attempt %d: %w", attempt+1, run.ContextError(ctx)))
		}
	}
}

// reading reads the answer, and returns its problem, or "" if it can be used. Answers with
// native calls and answers that a filter stopped are not read.
func (s *textStep) reading(resp *middleware.Response) (r reading, problem string) {
	m := resp.Message
	if len(m.ToolCalls) > 0 || resp.FinishReason == middleware.FinishFilter {
		return reading{}, ""
	}
	r = s.read(afterThinking(m.Text()), s.tools)
	if !s.offered {
		if r.kind != isAnswer {
			return reading{}, ""
		}
		return r, ""
	}
	switch {
	case r.kind == isFault && resp.FinishReason == middleware.FinishLength:
		return r, r.text + "; it reached the length limit and was cut off, so be shorter"
	case r.kind == isFault:
		return r, r.text
	case r.kind == isCall && s.tools.only != "" && r.name != s.tools.only:
		return r, "it uses another tool than " + s.tools.only + ", which has to be used now"
	case r.kind != isCall && s.tools.must:
		return r, "it uses no tool, and a tool has to be used now"
	}
	return r, ""
}

// askAgain appends the text that could not be used, and a reply that names the problem.
func (s *textStep) askAgain(resp *middleware.Response, r reading, what string) {
	reply := s.reply(what)
	s.tally.SetIssues(issue(r, what), nil, []middleware.Message{reply})
	s.asked = s.asked.With(history.Text(resp.Message.Text()), reply)
}

// issue returns the problem of a text, for the report.
func issue(r reading, what string) []middleware.Issue {
	code := "tool_choice"
	if r.kind == isFault {
		code = "unreadable"
	}
	return []middleware.Issue{{Code: code, Message: what}}
}

// reply names the problem of the last text, and shows the form.
func (s *textStep) reply(what string) middleware.Message {
	return middleware.User(feedbackLead + what + ". Nothing was executed.\n\n" + s.reminder(s.tools))
}

// feedbackLead starts the reply to a text that cannot be used.
const feedbackLead = "Your last message could not be used: "

// finish makes the response, sends it to the sink and completes the report.
func (s *textStep) finish(h *eventBuffer, resp *middleware.Response, r reading) (*middleware.Response, error) {
	out, err := resp, error(nil)
	switch r.kind {
	case isCall:
		out = rewritten(resp, r.text)
		c := middleware.ToolCall{ID: history.NewIDs(s.req.Loaded().Messages, "textcall")(), Name: r.name, Arguments: r.input}
		if !s.tools.declares(c.Name) {
			c.Native = &middleware.Native{Dialect: dialect, Raw: c.Name}
		}
		out.Message.ToolCalls = []middleware.ToolCall{c}
		out.Report.Status = middleware.Unchecked // a layer inside may have validated the text
		if r.certain || resp.FinishReason != middleware.FinishLength {
			out.FinishReason = middleware.FinishToolCalls
		}
	case isAnswer:
		out = rewritten(resp, r.text)
		if s.req.Sink != nil && r.text != "" {
			err = s.req.Sink(middleware.Event{Kind: middleware.EventText, Text: r.text})
		}
	default:
		err = h.release(s.req.Sink)
	}
	if err != nil {
		return s.tally.Finish(nil, err)
	}
	return s.tally.Finish(out, nil)
}

// rewritten returns a copy of resp with text in the place of its text parts.
func rewritten(resp *middleware.Response, text string) *middleware.Response {
	out := *resp
	out.Native, out.Message = nil, resp.Message.Clone()
	m := &out.Message
	m.Native, m.Parts = nil, withText(m.Parts, text)
	return &out
}

// eventBuffer holds the text and the calls that a model streams until the text is read.
type eventBuffer struct{ events []middleware.Event }

// over returns next with the buffer before its sink. Reasoning is passed on at once, because it
// is never an action.
func (h *eventBuffer) over(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		sink := req.Sink
		if sink == nil {
			return next(ctx, req)
		}
		quiet := *req
		quiet.Sink = func(e middleware.Event) error {
			switch e.Kind {
			case middleware.EventText, middleware.EventToolCall:
				h.events = append(h.events, e)
				return nil
			case middleware.EventReset:
				h.events = nil
			}
			return sink(e)
		}
		return next(ctx, &quiet)
	}
}

// release sends the held events, in order.
func (h *eventBuffer) release(sink middleware.Sink) error {
	for _, e := range h.events {
		if err := sink(e); err != nil {
			return err
		}
	}
	return nil
}
