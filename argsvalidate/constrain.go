package argsvalidate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Constrain selects whether a re-ask makes the provider's server constrain what the
// model writes to a call of the tool whose call was invalid. A constrained call is
// valid more often than right: see docs/feedback.md.
//
// A re-ask is constrained only if the message had one call, its issues are about the
// form of the arguments, and the tool is not destructive: a forced call cannot be taken
// back by the model. If the provider refuses the constraint, or the answer has no call,
// the model is asked once more without it, and not constrained again in this step. The
// refused model call is in the report and does not count as an attempt.
type Constrain uint8

// The constraints.
const (
	// NoConstraint is the default.
	NoConstraint Constrain = iota + 1
	// ConstrainNamed sets the request's tool choice to the tool, and the tool to strict.
	// The format must have a tool choice: Ollama's own has none.
	ConstrainNamed
	// ConstrainResponseFormat demands the call as a JSON text, and makes a call of it. It is for
	// servers that ignore a tool choice, such as llama.cpp: OpenAI Chat's format and
	// Ollama's. A schema with $ref is not used.
	ConstrainResponseFormat
)

var constrainWords = text.Words{"", "off", "named", "response-format"}

// String returns the word of the constant, such as "named", and "default" for 0.
func (c Constrain) String() string { return constrainWords.Of(uint8(c)) }

// MarshalText returns the text of String.
func (c Constrain) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText sets c to the constant with this word: off, named or response-format.
func (c *Constrain) UnmarshalText(word []byte) error { return constrainWords.Parse(word, (*uint8)(c)) }

// formIssues are the codes of issues about the form of arguments. A constraint helps
// against no other, such as one of a rule.
var formIssues = strings.Fields(`syntax trailing_data utf8 not_object truncated duplicate_key undeclared required type enum const
	additionalProperties unevaluatedProperties anyOf oneOf allOf false properties items prefixItems minItems maxItems minLength maxLength
	minimum maximum exclusiveMinimum exclusiveMaximum multipleOf pattern`)

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
