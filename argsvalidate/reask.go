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

// reask makes the next request: with the failed turn and its replies, or without failed
// turns (Options.FreshOnRepeat).
func (s *validateStep) reask(ctx context.Context, sent middleware.Message) {
	s.rejected = s.rejected || s.isModelsFault()
	if s.v.o.FreshOnRepeat && s.repeats.Same() > 1 && s.kept == nil {
		reply := middleware.User(s.freshText(ctx))
		s.tally.Note(fmt.Sprintf("attempt %d brought the same invalid calls again: attempt %d leaves the failed turns out", s.attempt, s.attempt+1))
		s.record([]middleware.Message{reply})
		s.turns = nil
		s.extend([]middleware.Message{reply})
		return
	}
	turn := s.failedTurn(ctx, sent)
	s.record(turn[1:])
	s.extend(turn)
}

// failedTurn returns the failed message and the replies to its calls. Replaced ids are
// numbered across all failed turns of the request, so that they are unique.
func (s *validateStep) failedTurn(ctx context.Context, sent middleware.Message) []middleware.Message {
	echo := s.last.Message.Clone()
	for i, c := range history.FixAnswer(s.asked, sent).ToolCalls {
		if sent.ToolCalls[i].ID != echo.ToolCalls[i].ID {
			echo.ToolCalls[i].ID = c.ID
		}
	}
	tools := append(s.v.o.Tools[:len(s.v.o.Tools):len(s.v.o.Tools)], s.req.Tools...)
	turn := batch.Turn(echo, tools, s.checked.verdicts, s.batch, s.v.render(ctx, &s.checked, s.attempt, s.repeats.Same() > 1, false))
	if left := s.kept.stillInvalid(); left != "" {
		last := &turn[len(turn)-1]
		last.Parts[0].Text += "\n\nStill to be corrected: " + left + "."
	}
	return turn
}

// extend appends a failed turn to the next request, with the earlier turns that fit
// into the limit.
func (s *validateStep) extend(turn []middleware.Message) {
	limit := s.v.o.Limits.Turns
	if s.v.o.LastTurnOnly {
		limit = 0
	}
	s.turns = history.Recent(append(s.turns, turn), limit)
	s.asked = s.first.With(slices.Concat(s.turns...)...)
}

// freshText describes the issues of calls that the next request does not contain.
func (s *validateStep) freshText(ctx context.Context) string {
	var b strings.Builder
	b.WriteString("Calling tools failed twice in the same way, and nothing was executed. Call them in another way, all that are needed. What was wrong:")
	for _, reply := range batch.Replies(s.checked.verdicts, batch.ReissueAll, s.v.render(ctx, &s.checked, s.attempt, false, true)) {
		if reply.IsError && b.Len() < maxText {
			b.WriteString("\n\n" + reply.Text())
		}
	}
	return text.Clip(b.String(), maxText)
}

// isModelsFault reports whether the message has another issue than undecided.
func (s *validateStep) isModelsFault() bool {
	for v := range s.invalid() {
		if slices.ContainsFunc(v.Issues, func(i middleware.Issue) bool { return i.Code != codeUndecided }) {
			return true
		}
	}
	return false
}

// callModel makes one model call. A re-ask may be constrained.
func (s *validateStep) callModel(ctx context.Context, asked *middleware.Request) (*middleware.Response, error) {
	tool, mode := s.constraint(asked)
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
	if err != nil && !refusesConstraint(err) {
		return resp, err
	}
	why := "the provider refused it"
	if err == nil {
		if mode == ConstrainResponseFormat {
			resp = callOfText(resp, tool.Name)
		}
		if len(resp.Message.ToolCalls) > 0 {
			s.tally.Note(fmt.Sprintf("attempt %d was constrained to a call of %s (%s): such a call is valid more often than right", s.attempt, text.Label(tool.Name), mode))
			return resp, nil
		}
		why = "the answer had no call"
	}
	s.unconstrained = true
	s.tally.Note(fmt.Sprintf("attempt %d was made again without the constraint %s: %s", s.attempt, mode, why))
	if ctx.Err() != nil {
		return resp, err
	}
	return s.tally.Call(ctx, s.next, asked)
}

// constraint returns the tool to whose calls the next attempt is constrained; nil for none.
func (s *validateStep) constraint(asked *middleware.Request) (*middleware.Tool, Constrain) {
	if s.v.o.Constrain <= NoConstraint && s.v.o.PerTool == nil || !s.correctsOneCall() || asked.ToolChoice.Mode == middleware.ToolNone {
		return nil, 0
	}
	v := s.checked.verdicts[0]
	p := s.tools.find(v.Call.Name, v.Call.Namespace)
	if !p.constrainable() || !aboutForm(v.Issues) || !slices.ContainsFunc(asked.Tools, func(t middleware.Tool) bool { return t.Name == p.tool.Name }) {
		return nil, 0
	}
	return p.tool, p.options.Constrain
}

// correctsOneCall reports whether the next attempt corrects one call of the last response, and
// no attempt before has shown that a constraint does not help.
func (s *validateStep) correctsOneCall() bool {
	return s.attempt > 1 && !s.unconstrained && s.last != nil && s.refusal == nil && s.kept == nil && len(s.checked.verdicts) == 1 && len(s.last.Choices) == 0
}

// constrainable reports whether calls of the tool may be constrained.
func (p toolPlan) constrainable() bool {
	return p.declared() && p.options.Constrain > NoConstraint && p.tool.Kind == middleware.KindFunction && !p.tool.Destructive && !p.ambiguous && p.compiled.schema != nil &&
		!(p.options.Constrain == ConstrainResponseFormat && strings.Contains(string(p.tool.Parameters), `"$ref"`))
}

// aboutForm reports whether all issues are about the form of arguments.
func aboutForm(issues []middleware.Issue) bool {
	return len(issues) > 0 && !slices.ContainsFunc(issues, func(i middleware.Issue) bool { return !slices.Contains(formIssues, i.Code) })
}

// formIssues are the codes of issues about the form of arguments. A constraint helps
// against no other, such as one of a rule.
var formIssues = strings.Fields(`syntax trailing_data utf8 not_object truncated duplicate_key undeclared required type enum const
	additionalProperties unevaluatedProperties anyOf oneOf allOf false properties items prefixItems minItems maxItems minLength maxLength
	minimum maximum exclusiveMinimum exclusiveMaximum multipleOf pattern`)

// refusesConstraint reports whether err may mean that the provider refused the constraint.
func refusesConstraint(err error) bool {
	var e *middleware.ModelError
	refused := errors.As(err, &e) && (e.StatusCode == 400 || e.StatusCode == 422)
	return errors.Is(err, middleware.ErrUnencodable) || refused && !errors.Is(err, middleware.ErrInvalidToolCall)
}

// callSchema returns the schema of a call as a JSON text. It forbids undeclared properties
// if the tool's schema is open: in an open object, small models write keys without end.
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
