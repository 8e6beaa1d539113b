package rescue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// rescueStep is one request on its way through the middleware.
type rescueStep struct {
	o     Options
	table *table
	tools *tools
	next  middleware.ModelCall
	req   *middleware.Request  // the caller's request
	asked *middleware.Request  // with the failed turns appended
	gate  *timedGate           // nil if the response is not streamed
	fault *middleware.Issue    // of the last response, if it is invalid
	last  *middleware.Response // the last response that holds no call that can be made
	tally middleware.Tally
}

// run asks the model until its answer can be returned. An error of the model call
// ends the step: package retry repeats such calls.
func (s *rescueStep) run(ctx context.Context) (*middleware.Response, error) {
	if s.req.Sink != nil {
		s.gate = &timedGate{streamGate: newStreamGate(run.Sink("rescue", s.req.Sink), s.table, s.tools, s.o.ReaskUnread)}
	}
	for attempt := 1; ; attempt++ {
		asked := middleware.MarkReads(s.asked, s.reads)
		if s.gate != nil {
			asked.Sink = s.gate.event
		}
		resp, err := s.tally.Call(ctx, s.next, asked)
		if s.gate != nil {
			if sinkErr := s.gate.stop(); err == nil {
				err = sinkErr
			}
		}
		if err != nil {
			return s.afterFailure(ctx, err)
		}
		out, again := s.handle(resp, attempt)
		switch {
		case again:
		case s.fault != nil && s.o.OnExhausted.Raises(s.req):
			return s.tally.Finish(nil, &Error{resp, *s.fault})
		default:
			return s.finish(resp, out)
		}
		if ctx.Err() != nil {
			return s.tally.Finish(nil, fmt.Errorf("rescue: ended before attempt %d: %w", attempt+1, run.ContextError(ctx)))
		}
	}
}

// afterFailure ends the step after a model call that failed. As in argsvalidate, a re-ask does not
// take away what the caller had.
func (s *rescueStep) afterFailure(ctx context.Context, err error) (*middleware.Response, error) {
	if s.last == nil || ctx.Err() != nil || errors.Is(err, middleware.ErrBudget) || s.o.OnExhausted.Raises(s.req) {
		return s.tally.Finish(nil, err)
	}
	s.tally.Note("rescue: a re-ask failed, so the last response was returned")
	if s.gate != nil {
		if err := s.gate.whole(s.last.Message); err != nil {
			return s.tally.Finish(nil, err)
		}
	}
	return s.tally.Finish(s.last, nil)
}

// readable reports whether a response may hold a lost call.
func readable(resp *middleware.Response) bool {
	return len(resp.Message.ToolCalls) == 0 && resp.FinishReason != middleware.FinishFilter &&
		resp.Report.Status != middleware.Invalid && !resp.Message.Refused()
}

// reads reports whether the text of a response holds a call that can be made.
func (s *rescueStep) reads(resp *middleware.Response) bool {
	if !readable(resp) {
		return false
	}
	f := s.find(resp, resp.Message.Text())
	return f.fault == nil && len(f.pieces) > 0 && !quotedInRequest(s.req, resp.Message.Text(), f, s.tools)
}

// handle reads a response. It returns the response with the calls in it, or the
// response itself. If again is true, the model is asked once more.
func (s *rescueStep) handle(resp *middleware.Response, attempt int) (out *middleware.Response, again bool) {
	if !readable(resp) {
		return resp, false
	}
	kind, whole := middleware.PartText, resp.Message.Text()
	f := s.find(resp, whole)
	if thought := reasoning(resp.Message); blank(whole) && thought != "" {
		kind, whole = middleware.PartReasoning, thought
		if f = s.find(resp, thought); !f.end(thought) && (f.fault == nil || f.fault.code != "truncated") {
			f = findings{}
		}
	}
	if len(f.pieces) == 0 && f.fault == nil {
		return resp, false
	}
	if quotedInRequest(s.req, whole, f, s.tools) {
		s.tally.Note("rescue: a call in the text was not made, because it occurs in the request")
		return resp, false
	}
	if f.fault == nil && !s.o.AllowDestructive {
		f = s.refuseDestructive(f)
	}
	if f.fault == nil && attempt < s.o.MaxAttempts {
		f = s.refuseEmpty(f)
	}
	if f.fault == nil {
		out := s.withCalls(resp, f, whole, kind)
		s.tally.SetIssues(nil, changes(f, whole), nil)
		s.tally.SetRescued(len(out.Message.ToolCalls))
		return out, false
	}
	return s.refuse(resp, f.fault, attempt)
}

// find reads one text of a response.
func (s *rescueStep) find(resp *middleware.Response, text string) findings {
	if s.req.Model == "" {
		s.tools.model = strings.ToLower(resp.Model)
	}
	sc := newScanner(s.table, s.tools)
	sc.text, sc.cut = text, resp.FinishReason == middleware.FinishLength
	return sc.finish()
}

// refuseDestructive turns a call to a destructive tool into a fault.
func (s *rescueStep) refuseDestructive(f findings) findings {
	for _, p := range f.pieces {
		for _, c := range p.calls {
			if s.tools.byName[c.name].Destructive || slices.Contains(s.o.Destructive, c.name) {
				return findings{fault: &fault{issue{"destructive", "the tool " + c.name + " is destructive"}, p.start, p.start, p.markup}}
			}
		}
	}
	return f
}

// refuseEmpty turns a call with an empty string for a required parameter into a fault: small
// models write that for values that they do not know. If the model repeats the call, it is
// made.
func (s *rescueStep) refuseEmpty(f findings) findings {
	for _, p := range f.pieces {
		for _, c := range p.calls {
			if name := s.tools.emptyRequired(c); name != "" {
				return findings{fault: &fault{issue{"empty_value", "the required parameter " + text.Label(name) + " is empty"}, p.start, p.start, p.markup}}
			}
		}
	}
	return f
}

// refuse re-asks the model, or returns the response unchanged.
func (s *rescueStep) refuse(resp *middleware.Response, f *fault, attempt int) (_ *middleware.Response, again bool) {
	issues := []middleware.Issue{{Code: f.code, Message: string(f.markup) + ": " + f.what}}
	again = attempt < s.o.MaxAttempts
	if f.code == "unread" {
		s.tally.Note(noteUnread)
		again = again && s.o.ReaskUnread
	}
	marked := *resp
	if f.code != "uncertain" && f.code != "unread" {
		marked.Report.Status = middleware.Invalid
	}
	if s.last = &marked; again {
		reply := s.reply(f)
		s.tally.SetIssues(issues, nil, []middleware.Message{reply})
		s.asked = s.asked.With(history.Text(resp.Message.Text()), reply)
		return nil, true
	}
	s.tally.SetIssues(issues, nil, nil)
	if marked.Report.Status == middleware.Invalid {
		s.fault = &issues[0]
	}
	return &marked, false
}

// finish sends the rest of the stream and completes the report.
func (s *rescueStep) finish(sent, out *middleware.Response) (*middleware.Response, error) {
	if s.gate != nil {
		var err error
		if len(out.Message.ToolCalls) > len(sent.Message.ToolCalls) {
			err = s.gate.replace(out.Message)
		} else {
			err = s.gate.release()
		}
		if err != nil {
			return s.tally.Finish(nil, err)
		}
	}
	return s.tally.Finish(out, nil)
}
