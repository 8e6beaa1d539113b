package argsvalidate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// TestRestrict holds that arguments must satisfy the tool's schema and the restriction, whatever the tool's schema is.
func TestRestrict(t *testing.T) {
	t.Parallel()
	const (
		own   = `{"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {"amount": {"type": "number"}, "currency": {"$ref": "#/definitions/c"}}, "definitions": {"c": {"type": "string"}}}`
		limit = `{"properties": {"amount": {"maximum": 1000}, "currency": {"enum": ["EUR", "USD"]}}}`
	)
	for name, c := range map[string]struct {
		tool, own, rule, on string
		args                string
		runs                string // "" means that the call is invalid
		issues              string
	}{
		"within":                    {own: own, args: `{"amount": 10, "currency": "EUR"}`, runs: `{"amount": 10, "currency": "EUR"}`},
		"beyond":                    {own: own, args: `{"amount": 1001}`, issues: "maximum /amount wanted a number of at most 1000; sent number 1001 (rule \"r\")"},
		"both refuse":               {own: own, args: `{"amount": 1001, "currency": 5}`, issues: "type /currency wanted string; sent number 5 ()\nmaximum /amount wanted a number of at most 1000; sent number 1001 (rule \"r\")\nenum /currency wanted one of \"EUR\", \"USD\"; sent number 5 (rule \"r\")"},
		"repaired by the tool's":    {own: own, args: `{"amount": "10"}`, runs: `{"amount": 10}`},
		"a repair that breaks it":   {own: own, args: `{"amount": "2000"}`, issues: `type /amount wanted number; sent string "2000" ()`},
		"repaired by the rule's":    {own: own, args: `{"currency": "eur"}`, runs: `{"currency": "EUR"}`},
		"beside an allOf":           {own: `{"allOf": [{"properties": {"amount": {"type": "number"}}}]}`, args: `{"currency": "usd"}`, runs: `{"currency": "USD"}`},
		"another tool":              {own: own, on: "refund_all", args: `{"amount": 1001}`, runs: `{"amount": 1001}`},
		"a pattern":                 {own: own, on: "re*nd", args: `{"amount": 1001}`, issues: "maximum /amount wanted a number of at most 1000; sent number 1001 (rule \"r\")"},
		"no schema":                 {args: `{"amount": 1001}`, issues: "maximum /amount wanted a number of at most 1000; sent number 1001 (rule \"r\")"},
		"no schema, within":         {args: `{"amount": 1}`, runs: `{"amount": 1}`},
		"a schema that is unusable": {own: `{"type": 7}`, args: `{"amount": 1001}`, issues: "maximum /amount wanted a number of at most 1000; sent number 1001 (rule \"r\")"},
		"unevaluatedProperties":     {own: `{"properties": {"a": true}, "unevaluatedProperties": false}`, rule: `{"properties": {"b": true}}`, args: `{"b": 1}`, issues: "unevaluatedProperties /b unknown property ()"},
		"a strip that breaks it":    {own: `{"properties": {"tags": {"type": "array"}}}`, rule: `{"required": ["tags"]}`, args: `{"tags": []}`, runs: `{"tags": []}`},
		"empty, and refused by it":  {own: `{"properties": {"tags": {"type": ["array", "null"]}}}`, rule: `{"properties": {"tags": {"type": "array"}}}`, args: `{"tags": null}`, runs: `{}`},
		"a format":                  {own: own, rule: `{"properties": {"on": {"format": "date"}}}`, args: `{"on": "tomorrow"}`, issues: "format /on wanted a date, for example 2026-05-01; sent string \"tomorrow\" (rule \"r\")"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.rule == "" {
				c.rule = limit
			}
			if c.on == "" {
				c.on = "refund"
			}
			o := withRules(argsvalidate.Named("r", restriction(c.on, c.rule)))
			o.Mend = mend.Default()
			v := verdictOf(t, o, tool("refund", c.own), c.args)
			var issues []string
			for _, i := range v.Issues {
				issues = append(issues, fmt.Sprintf("%s %s %s (%s)", i.Code, i.Pointer, i.Message, i.Rule))
			}
			require.Equal(t, c.issues, strings.Join(issues, "\n"))
			if c.runs != "" {
				require.JSONEq(t, c.runs, v.Call.Arguments)
			}
		})
	}
}

// TestRestrictUnlisted holds that a restriction applies to a tool that the request does not list.
func TestRestrictUnlisted(t *testing.T) {
	t.Parallel()
	o := withRules(restriction("refund", `{"properties": {"amount": {"maximum": 1000}}}`))
	o.UnknownTools = argsvalidate.PassUnknown
	v := argsvalidate.NewValidator(o)
	for args, want := range map[string][]string{`{"amount": 1}`: nil, `{"amount": 1001}`: {"maximum"}} {
		verdicts, _ := v.Validate(t.Context(), nil, call("1", "refund", args))
		require.Equal(t, want, codes(verdicts[0]), args)
	}
}

// TestRestrictRefuses holds that a schema that would not be checked as it is written is an error.
func TestRestrictRefuses(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{`:                                      "schema is not JSON",
		`7`:                                      "schema is neither an object nor a boolean",
		`{"maximum": "10"}`:                      `schema is not valid at "/maximum"`,
		`{"properties": {"a": {"maximun": 10}}}`: "/properties/a/maximun: unknown property",
		`{"anyOf": [{"x-note": 1}]}`:             "/anyOf/0/x-note: unknown property",
		`{"properties": {"a": {"pattern": "(?=a)"}}}`:         "pattern",
		`{"$ref": "https://example.com/schema"}`:              "is not followed",
		`{"properties": {"maximun": {"const": {"any": {}}}}}`: "",
	} {
		_, err := argsvalidate.Restrict("t", json.RawMessage(schema))
		if want == "" {
			require.NoError(t, err, schema)
			continue
		}
		require.ErrorContains(t, err, want, schema)
	}
}

// TestRejectedCalls holds that a call that a rule rejects is not passed on where other invalid calls are, and that
// the model is told the limit.
func TestRejectedCalls(t *testing.T) {
	t.Parallel()
	limited := restriction("note", `{"properties": {"text": {"maxLength": 3}}}`)
	for name, c := range map[string]struct {
		calls   []middleware.ToolCall
		perTool middleware.OnExhausted
		choice  middleware.ToolChoice
		passed  int // -1 means an error
		told    string
	}{
		"own schema":           {calls: []middleware.ToolCall{call("1", "note", badNote)}, passed: -1, told: "wanted string; sent number 5"},
		"no rule":              {calls: []middleware.ToolCall{call("1", "weather", `{}`)}, passed: 1, told: "required property is missing"},
		"a name like it":       {calls: []middleware.ToolCall{call("1", "Note", `{`)}, passed: -1, told: "Note"},
		"rule":                 {calls: []middleware.ToolCall{call("1", "note", goodNote)}, passed: -1, told: "wanted at most 3 characters; sent 4"},
		"rule, and a good one": {calls: []middleware.ToolCall{call("1", "note", goodNote), call("2", "weather", goodWeather)}, passed: 1, told: "wanted at most 3 characters; sent 4"},
		"rule, and a setting":  {calls: []middleware.ToolCall{call("1", "note", goodNote)}, perTool: middleware.Pass, passed: 1, told: "wanted at most 3 characters; sent 4"},
		"forbidden, no tools":  {calls: []middleware.ToolCall{call("1", "delete", `{}`)}, choice: middleware.ToolChoice{Mode: middleware.ToolNone}, passed: -1, told: "allows no tool call"},
		"forbidden, too many":  {calls: []middleware.ToolCall{call("1", "weather", goodWeather), call("2", "weather", goodWeather), call("3", "delete", `{}`)}, passed: 2},
		"forbidden":            {calls: []middleware.ToolCall{call("1", "delete", `{`)}, passed: -1, told: "Tool 'delete' was not executed: ask a person."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := withRules(limited, argsvalidate.Forbid("del*", "ask a person."))
			o.MaxAttempts, o.OnExhausted, o.RejectedCalls = 2, middleware.Pass, middleware.DropInvalid
			o.PerTool = map[string]argsvalidate.ToolOptions{"note": {OnExhausted: c.perTool}}
			turn := answer(c.calls...)
			req := request(weather, note, tool("delete", ""))
			o.Limits.Calls, req.ToolChoice = 2, c.choice
			turns := []middlewaretest.Turn{turn, turn}
			if c.told == "" { // too many calls end the step
				turns = turns[:1]
			}
			out := run(t, o, req, turns...)
			if c.told != "" {
				require.Contains(t, out.told(2)[1].Text(), c.told)
			}
			if c.passed < 0 {
				require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
				return
			}
			require.Len(t, out.resp.Message.ToolCalls, c.passed)
		})
	}
}

// TestForbid holds which calls a rule forbids, and that they have one issue.
func TestForbid(t *testing.T) {
	t.Parallel()
	o := withRules(argsvalidate.Named("no", argsvalidate.Forbid("delete_*", "")))
	o.UnknownTools = argsvalidate.PassUnknown
	v := argsvalidate.NewValidator(o)
	for name, c := range map[string]struct {
		call middleware.ToolCall
		want []middleware.Issue
	}{
		"another tool": {call: call("1", "note", goodNote)},
		"invalid":      {call: call("1", "delete_file", `{`), want: []middleware.Issue{{Code: "tool_choice", Message: "calls of this tool are not allowed here. Go on without it", Rule: `rule "no"`}}},
		"custom":       {call: middleware.ToolCall{ID: "1", Name: "delete_all", Kind: middleware.KindCustom}, want: []middleware.Issue{{Code: "tool_choice", Message: "calls of this tool are not allowed here. Go on without it", Rule: `rule "no"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdicts, err := v.Validate(t.Context(), []middleware.Tool{note}, c.call)
			require.Equal(t, c.want, verdicts[0].Issues)
			if failed := (*argsvalidate.Error)(nil); errors.As(err, &failed) {
				require.Contains(t, failed.ClientMessage(), "this call is not allowed")
				require.NotContains(t, failed.ClientMessage(), "Go on")
			}
		})
	}
}

// TestRejectedLoop holds that a call that NoLoops rejects does not count as rejected: if its re-ask is not allowed, it passes
// where other invalid calls do.
func TestRejectedLoop(t *testing.T) {
	t.Parallel()
	o := withRules(argsvalidate.NoLoops(3))
	o.MaxAttempts, o.OnExhausted, o.RejectedCalls = 1, middleware.Pass, middleware.DropInvalid
	out := run(t, o, looping(3, failed("no such city")), answer(call("1", "weather", `{"city": "Oslo"}`)))
	require.NoError(t, out.err)
	require.Len(t, out.resp.Message.ToolCalls, 1)
}
