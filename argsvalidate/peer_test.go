package argsvalidate_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// peerCases is what the peer's own 39 tests assert, in our words.
type peerCases struct {
	Toolsets map[string][]middleware.Tool
	Steps    []peerStep
	Strips   []struct {
		Name            string
		Placeholders    []string
		Arguments, Want string
	}
	Schemas []struct {
		Name      string
		Tools     []middleware.Tool
		Validated []string
		Checks    []struct {
			Tool, Arguments string
			Valid           bool
			Names, Text     []string
		}
	}
	Rules []peerRule
}

type peerStep struct {
	Name          string
	Toolset       string
	ExplicitTools bool `json:"explicit_tools"`
	MaxAttempts   int  `json:"max_attempts"`
	Strip, Raise  bool
	InternalIDs   bool `json:"internal_ids"`
	UnderDeadline bool `json:"under_deadline"`
	Answers       [][]middleware.ToolCall
	Want          struct {
		ModelCalls int `json:"model_calls"`
		Error      string
		Answer     int
		Arguments  map[string]string
		Invalid    bool
		Asked      [][]struct {
			Role     middleware.Role
			CallIDs  []string `json:"call_ids"`
			Answers  string
			Contains []string
		}
	}
}

type peerRule struct {
	Name, Path, Message string
	Check               struct {
		Op              string
		Min, Max, Value float64
	}
	Tools      []string
	Required   bool
	ViaOptions bool `json:"via_options"`
	Checks     []struct {
		Tool, Arguments string
		Count           *int
		Exact           []string
		Contains        [][]string
	}
}

func TestPeerCases(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/peer_cases.json")
	require.NoError(t, err)
	var cases peerCases
	require.NoError(t, json.Unmarshal(data, &cases))
	require.Equal(t, 39, len(cases.Steps)+len(cases.Strips)+len(cases.Schemas)+len(cases.Rules))

	for _, c := range cases.Steps {
		// strip.All is the peer's own behaviour; Optional is ours.
		for _, mode := range []strip.Mode{strip.All, strip.Optional} {
			t.Run(c.Name+"/"+mode.String(), func(t *testing.T) {
				t.Parallel()
				c.run(t, cases.Toolsets[c.Toolset], mode)
			})
		}
	}
	for _, c := range cases.Strips {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			s, err := strip.New(nil, strip.Options{Mode: strip.All, Placeholders: c.Placeholders})
			require.NoError(t, err)
			got, _, err := s.JSON(c.Arguments)
			require.NoError(t, err)
			require.JSONEq(t, c.Want, got)
		})
	}
	for _, c := range cases.Schemas {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			v := argsvalidate.NewValidator(argsvalidate.Options{Strip: strip.Off})
			var validated []string
			for _, tool := range c.Tools {
				if ok, _ := v.Inspect(tool); ok {
					validated = append(validated, tool.Name)
				}
			}
			slices.Sort(validated)
			require.ElementsMatch(t, c.Validated, validated)
			for _, check := range c.Checks {
				_, err := v.Validate(t.Context(), c.Tools, middleware.ToolCall{ID: "1", Name: check.Tool, Arguments: check.Arguments})
				require.Equal(t, check.Valid, err == nil, "%s", check.Arguments)
				if check.Valid {
					continue
				}
				var invalid *argsvalidate.Error
				require.ErrorAs(t, err, &invalid)
				for _, name := range check.Names {
					require.True(t, slices.ContainsFunc(invalid.Verdicts[0].Issues, func(i middleware.Issue) bool { return i.Pointer == "/"+name }))
				}
				for _, text := range check.Text {
					require.Contains(t, invalid.Replies[0].Text(), text)
				}
			}
		})
	}
	for _, c := range cases.Rules {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

func (c peerStep) run(t *testing.T, tools []middleware.Tool, mode strip.Mode) {
	o := argsvalidate.Options{MaxAttempts: c.MaxAttempts, UnknownTools: argsvalidate.PassUnknown, OnExhausted: middleware.Pass, Strip: mode}
	if !c.Strip {
		o.Strip = strip.Off
	}
	if c.Raise {
		o.OnExhausted = middleware.Raise
	}
	if c.InternalIDs {
		o.Rules = []argsvalidate.Rule{argsvalidate.InternalIDs()}
	}
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("hi")}, Tools: tools}
	if c.ExplicitTools {
		o.Tools, req.Tools = tools, nil
	}
	ctx := t.Context()
	if c.UnderDeadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
	}
	var asked [][]middleware.Message
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		asked = append(asked, req.Messages)
		m := middleware.Assistant("", c.Answers[len(asked)-1]...)
		return &middleware.Response{Message: m}, nil
	}

	resp, err := argsvalidate.New(o)(model)(ctx, req)

	require.Len(t, asked, c.Want.ModelCalls)
	require.Len(t, req.Messages, 1, "the caller's request stays as it was")
	for n, want := range c.Want.Asked {
		require.Len(t, asked[n+1], len(want))
		for i, m := range asked[n+1] {
			var ids []string
			for _, call := range m.ToolCalls {
				ids = append(ids, call.ID)
			}
			require.Equal(t, want[i].Role, m.Role)
			require.Equal(t, want[i].CallIDs, ids)
			require.Equal(t, want[i].Answers, m.ToolCallID)
			for _, text := range want[i].Contains {
				require.Contains(t, m.Text(), text)
			}
		}
	}
	if c.Want.Error == "exhausted" {
		require.ErrorIs(t, err, argsvalidate.ErrExhausted)
		require.Nil(t, resp)
		return
	}
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, len(c.Answers[c.Want.Answer]))
	for _, call := range resp.Message.ToolCalls {
		require.JSONEq(t, c.Want.Arguments[call.ID], call.Arguments)
	}
	require.Equal(t, c.Want.Invalid || c.Name == "fail_open_after_exhaustion", resp.Report.Status == middleware.Invalid)
}

func (c peerRule) run(t *testing.T) {
	rule := argsvalidate.FieldRule[any]{Path: argsvalidate.Dotted(c.Path), Tools: c.Tools, Message: c.Message, Required: c.Required, Valid: c.valid}
	for _, check := range c.Checks {
		call := middleware.ToolCall{ID: "1", Name: check.Tool, Arguments: check.Arguments}
		issues, err := rule.Check(t.Context(), &argsvalidate.Call{ToolCall: call})
		require.NoError(t, err)
		if c.ViaOptions {
			v := argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{rule}, UnknownTools: argsvalidate.PassUnknown, Strip: strip.Off})
			verdicts, _ := v.Validate(t.Context(), nil, call)
			issues = verdicts[0].Issues
		}
		var lines []string
		for _, i := range issues {
			lines = append(lines, argsvalidate.Line(check.Tool, i))
		}
		if check.Count != nil {
			require.Len(t, lines, *check.Count)
		}
		if check.Exact != nil {
			require.Equal(t, check.Exact, lines)
		}
		for i, contains := range check.Contains {
			for _, text := range contains {
				require.Contains(t, lines[i], text)
			}
		}
	}
}

func (c peerRule) valid(v any) bool {
	n, isNumber := v.(float64)
	a, isArray := v.([]any)
	switch c.Check.Op {
	case "always":
		return true
	case "int_between_exclusive":
		return isNumber && n == float64(int(n)) && c.Check.Min < n && n < c.Check.Max
	case "array_len_between":
		return isArray && int(c.Check.Min) <= len(a) && len(a) <= int(c.Check.Max)
	case "gt":
		return isNumber && n > c.Check.Value
	case "gte":
		return isNumber && n >= c.Check.Value
	}
	return false // never
}
