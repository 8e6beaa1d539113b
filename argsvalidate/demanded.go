package argsvalidate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// lacksCall reports whether the request demands a tool call and the response
// has none. It returns false for a response that was refused, filtered or cut
// off, or that has a call that the provider ran itself.
func (s *step) lacksCall(resp *middleware.Response) bool {
	if s.req.ToolChoice.Mode != middleware.ToolRequired && s.req.ToolChoice.Name == "" {
		return false
	}
	if resp.Message.Refused() || len(resp.Message.ToolCalls) > 0 || len(resp.Choices) > 0 || len(s.known.available()) == 0 {
		return false
	}
	switch resp.FinishReason {
	case "", middleware.FinishStop, middleware.FinishToolCalls:
	default:
		return false
	}
	return !slices.ContainsFunc(resp.Message.Parts, func(p middleware.Part) bool { return p.Kind == middleware.PartOpaque })
}

// obeyChoice makes the calls to other tools invalid if the request demands a call
// to one tool and none of the calls, the held ones included, is to that one.
func (j *validation) obeyChoice() {
	only := j.req.ToolChoice.Name
	if only == "" || !j.known.find(only, "").declared() ||
		slices.ContainsFunc(j.held, func(c middleware.ToolCall) bool { return c.Name == only }) ||
		slices.ContainsFunc(j.verdicts, func(v middleware.Verdict) bool { return v.Call.Name == only || !validated(v.Call.Kind) }) {
		return
	}
	for i := range j.calls {
		if v := &j.verdicts[i]; v.OK() {
			v.Issues = issue(codeToolChoice, "", fmt.Sprintf("the tool %s must be called now, and this is a call to another tool", text.Label(only)))
			v.Call, v.Changes = j.calls[i], nil
		}
	}
}

// demand asks the model once more for the call that the request demands. If
// done is true, the step returns the response or the held batch, or err.
func (s *step) demand(ctx context.Context) (done bool, err error) {
	limit, policy := s.v.o.MaxAttempts, s.v.o.OnExhausted
	if p := s.known.find(s.req.ToolChoice.Name, ""); p.declared() {
		limit, policy = p.o.MaxAttempts, p.o.OnExhausted
	}
	inside := slices.ContainsFunc(s.last.Report.Attempts, func(a middleware.Attempt) bool { return len(a.Replies) > 0 })
	if !inside && !s.demanded && s.attempt < limit { // an inner middleware such as textcall has already re-asked
		s.demanded = true
		reply := middleware.User(demandText(s.req.ToolChoice.Name, s.known.available()))
		s.record([]middleware.Message{reply})
		said := s.last.Message
		if strings.TrimSpace(said.Text()) == "" {
			said = history.Said("")
		}
		s.extend([]middleware.Message{said, reply})
		return false, nil
	}
	s.tally.Note(fmt.Sprintf("the request demands a tool call, and attempt %d has none", s.attempt))
	if s.held != nil || policy == middleware.Pass {
		return true, nil
	}
	s.record(nil)
	return true, &Error{Response: s.last, reasons: []error{ErrExhausted, ErrNoCall}}
}

// demandText is the reply to a response without a call.
func demandText(only string, available []string) string {
	if only != "" {
		return fmt.Sprintf("Your last message calls no tool, but the tool '%.64s' must be called now. Call it.", strings.ToValidUTF8(only, "\uFFFD"))
	}
	return fmt.Sprintf("Your last message calls no tool, but a tool must be called now. Call one of these tools: %s.", names(available))
}
