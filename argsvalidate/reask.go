package argsvalidate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// ask makes the next request. It appends the failed turn and its replies, or
// does what Options.FreshOnRepeat says.
func (s *step) ask(ctx context.Context, sent middleware.Message) {
	if s.v.o.FreshOnRepeat && s.failures.Same() > 1 && s.held == nil {
		reply := middleware.User(s.afresh(ctx))
		s.tally.Note(fmt.Sprintf("attempt %d brought the same invalid calls again: attempt %d leaves the failed turns out", s.attempt, s.attempt+1))
		s.record([]middleware.Message{reply})
		s.turns = nil
		s.extend([]middleware.Message{reply})
		return
	}
	turn := s.turn(ctx, sent)
	s.record(turn[1:])
	s.extend(turn)
}

// turn returns the messages that the next request appends: the failed message
// and the replies to its calls. Replaced ids are numbered across the failed
// turns, so that they stay unique.
func (s *step) turn(ctx context.Context, sent middleware.Message) []middleware.Message {
	n := len(s.checked.calls)
	echo := s.last.Message
	sent.ToolCalls, echo.ToolCalls = sent.ToolCalls[:n], echo.ToolCalls[:n]
	echo = echo.Clone()
	for i, c := range history.FixIDs(s.asked.Messages, sent).ToolCalls {
		if sent.ToolCalls[i].ID != echo.ToolCalls[i].ID {
			echo.ToolCalls[i].ID = c.ID
		}
	}
	tools := append(s.v.o.Tools[:len(s.v.o.Tools):len(s.v.o.Tools)], s.req.Tools...)
	turn := batch.Turn(echo, tools, s.checked.verdicts, s.v.o.Batch, s.v.render(ctx, &s.checked, s.attempt, s.failures.Same() > 1, false))
	if left := s.held.left(); left != "" {
		last := &turn[len(turn)-1]
		last.Parts[0].Text += "\n\nStill to be corrected: " + left + "."
	}
	return turn
}

// extend appends a failed turn to the next request, after the earlier turns
// that fit into the limit.
func (s *step) extend(turn []middleware.Message) {
	limit := s.v.o.Limits.Turns
	if s.v.o.LastTurnOnly {
		limit = 0
	}
	s.turns = history.Recent(append(s.turns, turn), limit)
	asked := s.req.With(slices.Concat(s.turns...)...)
	asked.Sink = s.asked.Sink
	s.asked = asked
}

// afresh describes the errors of calls that the next request does not contain.
func (s *step) afresh(ctx context.Context) string {
	var b strings.Builder
	b.WriteString("Calling tools failed twice in the same way, and nothing was executed. Call them in another way, all that are needed. What was wrong:")
	for _, reply := range batch.Replies(s.checked.verdicts, batch.ReissueAll, s.v.render(ctx, &s.checked, s.attempt, false, true)) {
		if reply.IsError && b.Len() < maxText {
			b.WriteString("\n\n" + reply.Text())
		}
	}
	return text.Clip(b.String(), maxText)
}

// modelsFault reports whether a call is invalid for another reason than that
// it could not be checked.
func (s *step) modelsFault() bool {
	for v := range s.open() {
		for _, i := range v.Issues {
			if i.Code != codeUndecided {
				return true
			}
		}
	}
	return false
}

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
			said = history.Text("")
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

// call makes one model call, on a re-ask perhaps with a constraint.
func (s *step) call(ctx context.Context, asked *middleware.Request) (*middleware.Response, error) {
	tool, mode := s.forced(asked)
	if tool == nil {
		return s.tally.Call(ctx, s.next, asked)
	}
	forced := *asked
	if mode == ConstrainNamed {
		forced.ToolChoice = middleware.ToolChoice{Name: tool.Name}
		forced.Tools = slices.Clone(asked.Tools)
		for i := range forced.Tools {
			forced.Tools[i].Strict = forced.Tools[i].Strict || forced.Tools[i].Name == tool.Name
		}
	} else {
		forced.Output = callSchema(tool)
		if sink := asked.Sink; sink != nil {
			forced.Sink = func(e middleware.Event) error {
				if e.Kind == middleware.EventText {
					return nil // it is the call
				}
				return sink(e)
			}
		}
	}
	resp, err := s.tally.Call(ctx, s.next, &forced)
	why := "the provider refused it"
	switch {
	case err != nil && !refusesConstraint(err):
		return resp, err
	case err == nil && mode == ConstrainResponseFormat:
		resp = callOfText(resp, tool.Name)
		fallthrough
	case err == nil:
		if len(resp.Message.ToolCalls) > 0 {
			s.tally.Note(fmt.Sprintf("attempt %d was constrained to a call of %s (%s): such a call is valid more often than right", s.attempt, text.Label(tool.Name), mode))
			return resp, nil
		}
		why = "the answer had no call"
	}
	s.free = true
	s.tally.Note(fmt.Sprintf("attempt %d was made again without the constraint %s: %s", s.attempt, mode, why))
	if ctx.Err() != nil {
		return resp, err
	}
	return s.tally.Call(ctx, s.next, asked)
}

// forced returns the tool to whose calls the next attempt is constrained; nil for none.
func (s *step) forced(asked *middleware.Request) (*middleware.Tool, Constrain) {
	if s.v.o.Constrain <= NoConstraint && s.v.o.PerTool == nil || s.attempt == 1 || s.free || s.last == nil || s.refusal != nil || s.held != nil ||
		asked.ToolChoice.Mode == middleware.ToolNone || len(s.checked.verdicts) != 1 || len(s.last.Choices) > 0 {
		return nil, 0
	}
	v := s.checked.verdicts[0]
	p := s.known.find(v.Call.Name, v.Call.Namespace)
	ofForm := func(i middleware.Issue) bool { return slices.Contains(formIssues, i.Code) }
	if !p.declared() || p.o.Constrain <= NoConstraint || p.tool.Kind != middleware.KindFunction || p.tool.Destructive || p.twice || p.compiled.schema == nil || len(v.Issues) == 0 ||
		slices.ContainsFunc(v.Issues, func(i middleware.Issue) bool { return !ofForm(i) }) ||
		!slices.ContainsFunc(asked.Tools, func(t middleware.Tool) bool { return t.Name == p.tool.Name }) ||
		p.o.Constrain == ConstrainResponseFormat && strings.Contains(string(p.tool.Parameters), `"$ref"`) {
		return nil, 0
	}
	return p.tool, p.o.Constrain
}

// formIssues are the codes of issues about the form of arguments. A constraint helps
// against no other, such as one of a rule.
var formIssues = strings.Fields(`syntax trailing_data utf8 not_object truncated duplicate_key undeclared required type enum const
	additionalProperties unevaluatedProperties anyOf oneOf allOf false properties items prefixItems minItems maxItems minLength maxLength
	minimum maximum exclusiveMinimum exclusiveMaximum multipleOf pattern`)

// refusesConstraint reports whether an error may say that the request's constraint was refused.
func refusesConstraint(err error) bool {
	var e *middleware.ModelError
	refused := errors.As(err, &e) && (e.StatusCode == 400 || e.StatusCode == 422)
	return errors.Is(err, middleware.ErrUnencodable) || refused && !errors.Is(err, middleware.ErrInvalidToolCall)
}

// callSchema returns the schema of a call as a JSON text. The arguments are closed where
// their schema says nothing: in an open object small models write keys until they are cut off.
func callSchema(t *middleware.Tool) json.RawMessage {
	arguments := string(t.Parameters)
	doc, err := rawjson.Parse(arguments, rawjson.Limits{})
	if err == nil && doc.Root().Get("properties").Len() > 0 && !doc.Root().Get("additionalProperties").Exists() && !doc.Root().Get("patternProperties").Exists() {
		end := strings.LastIndexByte(arguments, '}')
		arguments = arguments[:end] + `,"additionalProperties":false}`
	}
	return json.RawMessage(`{"type":"object","properties":{"name":{"const":` + rawjson.Quote(t.Name) + `},"arguments":` + arguments +
		`},"required":["name","arguments"],"additionalProperties":false}`)
}

// callOfText returns resp with the call in place of its text, if the text is one. Else the
// response has no call.
func callOfText(resp *middleware.Response, name string) *middleware.Response {
	doc, err := rawjson.Parse(strings.TrimSpace(resp.Message.Text()), rawjson.Limits{})
	if err != nil || doc.Root().Get("name").Str() != name || doc.Root().Get("arguments").Kind() != rawjson.Object || len(resp.Message.ToolCalls) > 0 || resp.Message.Refused() {
		return resp
	}
	out := *resp
	out.Message = resp.Message.Clone()
	out.Message.Parts = slices.DeleteFunc(out.Message.Parts, func(p middleware.Part) bool { return p.Kind == middleware.PartText })
	out.Message.ToolCalls = []middleware.ToolCall{{Name: name, Arguments: doc.Root().Get("arguments").Raw()}}
	out.FinishReason = middleware.FinishToolCalls
	return &out
}
