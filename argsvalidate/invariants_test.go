package argsvalidate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/strip"
)

// The invariants of docs/design.md, over conversations with a model that makes
// every fault of recorded traffic, behind each strict provider. One check is
// one conversation of up to six steps: make check walks some 2,000 steps, make
// soak more than 100,000.
func TestInvariants(t *testing.T) {
	t.Parallel()
	for _, provider := range []middlewaretest.Provider{middlewaretest.OpenAI, middlewaretest.Anthropic, middlewaretest.Gemini} {
		for name, policy := range map[string]batch.Policy{"reissue": batch.ReissueAll, "keep": batch.KeepValid} {
			t.Run(string(provider)+"/"+name, func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					c := newConversation(t, provider, policy)
					for range rapid.IntRange(1, 6).Draw(t, "steps") {
						if !c.step() {
							return
						}
					}
				})
			})
		}
	}
}

// A context that ends during any model call ends the step before the next one.
func TestCancellation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newConversation(t, middlewaretest.OpenAI, batch.ReissueAll)
		c.cancelAt = rapid.IntRange(1, 4).Draw(t, "cancelled at call")
		c.step()
	})
}

var invariantTools = []middleware.Tool{
	{Name: "get_weather", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14},
		"unit":{"enum":["celsius","fahrenheit"]},"detailed":{"type":"boolean"}},"required":["city"],"additionalProperties":false}`)},
	{Name: "book_flight", Parameters: []byte(`{"type":"object","properties":{"passengers":{"type":"array","minItems":1,"items":{"type":"object",
		"properties":{"name":{"type":"string","minLength":1},"age":{"type":"integer"}},"required":["name"]}},"return_date":{"type":"string"},
		"options":{"type":"object","properties":{"seat":{"type":"string"}}},"tags":{"type":"array","items":{"type":"string"}}},"required":["passengers"]}`)},
	{Name: "ls", Parameters: []byte(`{"type":"object","properties":{}}`)},
	{Name: "search", Parameters: []byte(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"query":{"type":"string"},
		"limit":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["query","limit"]}`)},
	{Name: "anything"},
}

var oracles = compileOracles()

// compileOracles gives jsonschema/v5 as it is, past everything of ours.
func compileOracles() map[string]*jsonschema.Schema {
	m := map[string]*jsonschema.Schema{}
	for _, tool := range invariantTools {
		if tool.Parameters != nil {
			m[tool.Name] = jsonschema.MustCompileString(tool.Name+".json", string(tool.Parameters))
		}
	}
	return m
}

// conversation is a caller that keeps a history, as a loop does.
type conversation struct {
	t        *rapid.T
	o        argsvalidate.Options
	call     middleware.ModelCall
	messages []middleware.Message
	cancelAt int

	cancel context.CancelFunc
	calls  int              // of the model, in this step
	usage  middleware.Usage // of this step, as the model gave it
	limits []int            // Request.MaxTokens of the model calls of this step
	shown  []middleware.ToolCall
}

func newConversation(t *rapid.T, provider middlewaretest.Provider, policy batch.Policy) *conversation {
	c := &conversation{t: t, messages: []middleware.Message{middleware.User("go")}}
	c.o = argsvalidate.Options{
		MaxAttempts:  rapid.IntRange(0, 5).Draw(t, "attempts"),
		OnExhausted:  rapid.SampledFrom([]middleware.OnExhausted{middleware.Pass, middleware.Raise, middleware.DropInvalid}).Draw(t, "exhausted"),
		UnknownTools: rapid.SampledFrom([]argsvalidate.UnknownTools{argsvalidate.RejectUnknown, argsvalidate.PassUnknown}).Draw(t, "unknown"),
		Strip:        rapid.SampledFrom([]strip.Mode{strip.Optional, strip.WhenInvalid, strip.All, strip.Off}).Draw(t, "strip"),
		Batch:        policy,
		Mend:         rapid.SampledFrom([][]mend.Rule{mend.Default(), mend.All(), mend.Off()}).Draw(t, "mend"),
		Rules:        []argsvalidate.Rule{c.rule()},
	}
	seed := rapid.Uint64().Draw(t, "seed")
	model := sometimesEmpty(seed, middlewaretest.NewFaulty(seed, middlewaretest.FaultOptions{}).Call)
	strict := middlewaretest.Strict(provider, model)
	c.call = argsvalidate.New(c.o)(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		c.calls++
		c.limits = append(c.limits, req.MaxTokens)
		require.NoError(t, ctx.Err(), "no model call under a context that is done")
		resp, err := strict(ctx, req)
		require.NotErrorIs(t, err, middlewaretest.ErrRefused)
		if resp != nil {
			c.usage = c.usage.Add(resp.Usage)
		}
		if c.calls == c.cancelAt {
			c.cancel()
		}
		return resp, err
	})
	return c
}

// sometimesEmpty replaces some responses of model by messages without a call: nothing,
// reasoning alone, and both with a finish reason that announces calls.
func sometimesEmpty(seed uint64, model middleware.ModelCall) middleware.ModelCall {
	rng := rand.New(rand.NewPCG(seed, 1))
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		draw, kind := rng.IntN(8), rng.IntN(4)
		if draw > 0 {
			return model(ctx, req)
		}
		resp := &middleware.Response{Message: middleware.Assistant(""), FinishReason: middleware.FinishStop, Usage: middleware.Usage{InputTokens: 1}}
		if kind > 1 {
			resp.FinishReason = middleware.FinishToolCalls
		}
		if kind%2 > 0 {
			resp.Message.Parts = []middleware.Part{{Kind: middleware.PartReasoning, Text: "so"}}
			if req.Sink != nil {
				return resp, req.Sink(middleware.Event{Kind: middleware.EventReasoning, Text: "so"})
			}
		}
		return resp, nil
	}
}

// noneEmpty: a message without a call and without text comes out marked, or as the end of a
// turn behind the results of tools, and the model is asked at most once because of that.
func (c *conversation) noneEmpty(req *middleware.Request, resp *middleware.Response, report middleware.Report) {
	empties := 0
	for _, a := range report.Attempts {
		if len(a.Replies) > 0 && len(a.Issues) > 0 && a.Issues[0].Code != "unread_call" {
			empties++
		}
	}
	require.LessOrEqual(c.t, empties, 1)
	if resp == nil || len(resp.Message.ToolCalls) > 0 || resp.Message.Text() != "" || resp.Report.Status == middleware.Invalid {
		return
	}
	require.Equal(c.t, middleware.RoleTool, req.Messages[len(req.Messages)-1].Role, "an empty message came out")
	require.Empty(c.t, resp.Message.Parts)
	require.Equal(c.t, middleware.FinishStop, resp.FinishReason)
}

// raised: behind a call that was cut off, the length limit is twice as high.
func (c *conversation) raised(report middleware.Report) {
	at := -1
	for _, a := range report.Attempts {
		if at++; at+1 < len(c.limits) && a.FinishReason == middleware.FinishLength && len(a.Verdicts) > 0 && a.Replies != nil {
			require.Equal(c.t, 2*c.limits[at], c.limits[at+1])
		}
	}
}

// rule refuses some calls and fails on a few, so that both ways are walked.
func (c *conversation) rule() argsvalidate.Rule {
	mood := rapid.SampledFrom([]string{"none", "none", "none", "refuse", "fail", "panic"}).Draw(c.t, "rule")
	return argsvalidate.RuleFunc(func(_ context.Context, call *argsvalidate.Call) ([]middleware.Issue, error) {
		if c.wrong(call.ToolCall, false) != "" {
			c.t.Errorf("a rule saw an invalid call: %s %s", call.Name, call.Arguments)
		}
		if len(call.Arguments)%5 != 0 {
			return nil, nil
		}
		switch mood {
		case "refuse":
			return []middleware.Issue{{Message: "not this one"}}, nil
		case "fail":
			return nil, errors.New("the database is down")
		case "panic":
			panic("a rule of a user")
		}
		return nil, nil
	})
}

// step makes one model step and holds its outcome to the invariants. It
// reports whether the conversation can go on.
func (c *conversation) step() bool {
	t := c.t
	c.calls, c.usage, c.shown, c.limits = 0, middleware.Usage{}, nil, nil
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.cancel = cancel
	req := &middleware.Request{Messages: slices.Clone(c.messages), Tools: slices.Clone(invariantTools), Sink: c.sink, MaxTokens: rapid.SampledFrom([]int{0, 50}).Draw(t, "limit")}
	before := req.Clone()

	resp, err := c.call(ctx, req)

	req.Sink, before.Sink = nil, nil
	require.Equal(t, before, req, "the caller's request is not changed")
	require.NotEqual(t, resp == nil, err == nil, "a response exactly when there is no error")
	report := middleware.ReportOf(resp, err)
	require.Equal(t, c.usage, report.Usage(), "no usage is lost")
	limit := c.o.MaxAttempts
	if limit == 0 {
		limit = 3
	}
	require.LessOrEqual(t, c.calls, limit, "attempts never exceed the limit")
	if c.cancelAt > 0 {
		require.LessOrEqual(t, c.calls, c.cancelAt)
	}
	c.noneRejectedWrongly(report)
	c.noneEmpty(req, resp, report)
	c.raised(report)
	if err != nil {
		c.knownError(ctx, err)
		return false
	}
	c.outcome(resp)
	return len(resp.Message.ToolCalls) > 0
}

func (c *conversation) sink(e middleware.Event) error {
	switch e.Kind {
	case middleware.EventToolCall:
		c.shown = append(c.shown, *e.Call)
	case middleware.EventReset:
		c.shown = nil
	}
	return nil
}

// noneRejectedWrongly: a call that was valid as sent is only ever refused by a
// rule, or because the answer was cut off.
func (c *conversation) noneRejectedWrongly(report middleware.Report) {
	for _, a := range report.Attempts {
		for i, v := range a.Verdicts {
			sent := a.Message.ToolCalls[i]
			if v.OK() || slices.ContainsFunc(v.Issues, func(i middleware.Issue) bool {
				return slices.Contains([]string{"rule", "truncated", "undecided"}, i.Code)
			}) {
				continue
			}
			require.NotEmpty(c.t, c.wrong(sent, true), "valid as sent, but refused: %s %s: %v", sent.Name, sent.Arguments, v.Issues)
		}
	}
}

func (c *conversation) knownError(ctx context.Context, err error) {
	var invalid *argsvalidate.Error
	var refusal *middleware.ModelError
	switch {
	case errors.As(err, &invalid):
		if errors.Is(err, argsvalidate.ErrExhausted) {
			require.True(c.t, c.o.OnExhausted != middleware.Pass || invalid.Response == nil, "Pass hands on the last response")
		}
	case errors.As(err, &refusal), errors.Is(err, middleware.ErrNoResponse):
	case ctx.Err() != nil:
		require.ErrorIs(c.t, err, context.Canceled)
	default:
		c.t.Fatalf("an error of no known kind: %v", err)
	}
}

// outcome checks a response, and puts it and its results into the history.
func (c *conversation) outcome(resp *middleware.Response) {
	t := c.t
	verdicts := make([]middleware.Verdict, len(resp.Message.ToolCalls))
	ids := map[string]bool{}
	var valid []middleware.ToolCall
	for i, call := range resp.Message.ToolCalls {
		require.NotEmpty(t, strings.TrimSpace(call.ID))
		require.False(t, ids[call.ID], "ids are unique")
		ids[call.ID] = true
		verdicts[i].Call = call
		why := c.wrong(call, false)
		if resp.Report.Status != middleware.Invalid {
			require.Empty(t, why, "an invalid call came out: %s %s", call.Name, call.Arguments)
			valid = append(valid, call)
			continue
		}
		require.Equal(t, middleware.Pass, c.o.OnExhausted)
		if slices.Contains(c.shown, call) {
			require.Empty(t, why, "an invalid call was shown")
			valid = append(valid, call)
		} else {
			verdicts[i].Issues = []middleware.Issue{{Code: "invalid"}}
		}
	}
	require.Equal(t, valid, c.shown, "what the sink saw is what comes out, byte for byte")
	say := func(middleware.Verdict) string { return "invalid" }
	c.messages = append(c.messages, batch.Turn(resp.Message, invariantTools, verdicts, batch.ReissueAll, say)...)
	for i := range c.messages {
		if m := &c.messages[i]; m.Role == middleware.RoleTool && !m.IsError {
			m.Parts = []middleware.Part{{Text: "done"}}
		}
	}
}

// wrong is the oracle: it says why a call may not run, "" if it may. asSent
// also refuses what is within the rights of the validator to refuse: duplicate
// keys and what is past the limits.
func (c *conversation) wrong(call middleware.ToolCall, asSent bool) string {
	declared := slices.ContainsFunc(invariantTools, func(t middleware.Tool) bool { return t.Name == call.Name })
	if !declared && c.o.UnknownTools == argsvalidate.RejectUnknown {
		return "unknown tool"
	}
	text := call.Arguments
	if s := strings.TrimSpace(text); asSent && (s == "" || s == "null") {
		text = "{}"
	}
	if strings.ToValidUTF8(text, "") != text {
		return "not UTF-8"
	}
	for _, unlimited := range []string{"e3000000", strings.Repeat("[", 64), strings.Repeat(`{"a":`, 64)} {
		if strings.Contains(text, unlimited) {
			return "past the limits"
		}
	}
	v, dup, err := decodeStrictly(text)
	if err != nil {
		return err.Error()
	}
	if _, isObject := v.(map[string]any); !isObject || dup {
		return "no object without duplicate keys"
	}
	if s := oracles[call.Name]; s != nil {
		if err := s.Validate(v); err != nil {
			return err.Error()
		}
	}
	return ""
}

// decodeStrictly decodes one JSON text with encoding/json alone.
func decodeStrictly(text string) (v any, dup bool, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, false, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false, fmt.Errorf("more after the value: %w", err)
	}
	return v, keysOf(v) != countKeys(text), nil
}

func keysOf(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += 1 + keysOf(e)
		}
	case []any:
		for _, e := range v {
			n += keysOf(e)
		}
	}
	return n
}

// countKeys counts the keys of a valid text, those that stand twice twice.
func countKeys(text string) int {
	d := json.NewDecoder(strings.NewReader(text))
	n := 0
	var open []json.Delim // '{' while a key is next, ':' while its value is
	for {
		tok, err := d.Token()
		if err != nil {
			return n
		}
		if delim, ok := tok.(json.Delim); ok && (delim == '}' || delim == ']') {
			open = open[:len(open)-1]
		} else if len(open) > 0 && open[len(open)-1] == '{' {
			n++
			open[len(open)-1] = ':'
			continue
		} else if ok {
			open = append(open, delim)
			continue
		}
		if len(open) > 0 && open[len(open)-1] == ':' {
			open[len(open)-1] = '{'
		}
	}
}
