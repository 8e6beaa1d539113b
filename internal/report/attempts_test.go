package report_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/test/reports"
	"github.com/toolmend/toolmend/middleware"
)

// A step that ran: a call that was re-asked, then one that was repaired.
func TestAttempts(t *testing.T) {
	t.Parallel()
	answers := []string{`{}`, `{"city":"Oslo","days":"3"}`}
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		arguments := answers[0]
		answers = answers[1:]
		return &middleware.Response{
			Message:      middleware.Assistant("text", middleware.ToolCall{ID: "c1", Name: "get_weather", Arguments: arguments}),
			FinishReason: middleware.FinishToolCalls, Usage: middleware.Usage{InputTokens: 7, OutputTokens: 2},
		}, nil
	}
	req := &middleware.Request{Model: "m", Tools: reports.Tools, Messages: []middleware.Message{middleware.User("?")}}
	resp, err := argsvalidate.New(argsvalidate.Options{})(model)(t.Context(), req)
	require.NoError(t, err)
	r := middleware.ReportOf(resp, err)
	s := report.Step{Tools: reports.Tools, Final: r.Final, Attempts: report.NewChecker(argsvalidate.Options{}).Attempts(t.Context(), r, reports.Tools, nil)}
	require.Len(t, s.Attempts, 2)
	first, second := s.Attempts[0], s.Attempts[1]
	require.Equal(t, report.Invalid, first.Calls[0].AsSent)
	require.Equal(t, report.Invalid, first.Calls[0].Final)
	require.Equal(t, "required", first.Calls[0].Issues[0].Code)
	require.Equal(t, "text", first.Text)
	require.Contains(t, first.Replies[0].Text, "city")
	require.Equal(t, report.Invalid, second.Calls[0].AsSent, "the report holds no issue of a repaired call")
	require.Equal(t, "/days", second.Calls[0].Issues[0].Pointer)
	require.Equal(t, report.OK, second.Calls[0].Final)
	require.Equal(t, `{"city":"Oslo","days":3}`, second.Calls[0].Ran.Arguments)
	worst, reasked := s.Result()
	require.Equal(t, report.OK, worst)
	require.True(t, reasked)
	require.Equal(t, middleware.Usage{InputTokens: 14, OutputTokens: 4}, s.Usage())
	view := report.ViewStep(&s)
	require.Equal(t, "7 tokens in, 2 out", view[0].Usage)
	require.Equal(t, first.Replies, view[0].Replies)
	require.True(t, view[1].Final)
	require.NotEmpty(t, view[1].Calls[0].Ran)
}

// The issues of a message without calls are shown and counted by their code.
func TestIssuesOfAMessage(t *testing.T) {
	t.Parallel()
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant(""), FinishReason: middleware.FinishStop}, nil
	}
	req := &middleware.Request{Model: "m", Tools: reports.Tools, Messages: []middleware.Message{middleware.User("?")}}
	r := middleware.ReportOf(argsvalidate.New(argsvalidate.Options{})(model)(t.Context(), req))
	s := report.Step{Tools: reports.Tools, Final: r.Final, Attempts: report.NewChecker(argsvalidate.Options{}).Attempts(t.Context(), r, reports.Tools, nil)}
	require.Equal(t, []string{"empty: it has neither text nor a tool call"}, report.ViewStep(&s)[0].Issues)
	f := report.NewFigures(report.Options{})
	f.Add(&s)
	require.Equal(t, []report.CodeRow{{Code: "empty", Sent: 2, Final: 2}}, f.Summary().Codes)
}

// A call whose name was repaired has the verdict of the tool that it ran as.
func TestAttemptsWithAnotherName(t *testing.T) {
	t.Parallel()
	sent := middleware.ToolCall{Name: "getWeather", Arguments: `{"city":"Oslo"}`}
	ran := sent
	ran.Name = "get_weather"
	r := middleware.Report{Attempts: []middleware.Attempt{{
		Message:  middleware.Assistant("", sent),
		Verdicts: []middleware.Verdict{{Call: ran, Changes: []middleware.Change{{By: "name"}}}},
	}}}
	call := report.NewChecker(argsvalidate.Options{}).Attempts(t.Context(), r, reports.Tools, nil)[0].Calls[0]
	require.Equal(t, report.OK, call.Final)
	require.Equal(t, "getWeather", call.Sent.Name)
	require.Equal(t, "get_weather", call.Ran.Name)
}

// Verdicts of the report are kept, whatever the Checker would say; calls that no
// middleware validated are unchecked.
func TestAttemptsKeepVerdicts(t *testing.T) {
	t.Parallel()
	call := middleware.ToolCall{Name: "get_weather", Arguments: `{"city":"Oslo"}`}
	rule := middleware.Issue{Code: "rule", Pointer: "/city", Message: "not this city"}
	r := middleware.Report{Final: -1, Attempts: []middleware.Attempt{
		{Message: middleware.Assistant("", call), Verdicts: []middleware.Verdict{{Call: call, Issues: []middleware.Issue{rule}}}, Duration: time.Second},
		{Message: middleware.Assistant("", call, call), Verdicts: []middleware.Verdict{{Call: call, Unchecked: true}}},
		{Err: errors.New("secret text")},
	}}
	got := report.NewChecker(argsvalidate.Options{}).Attempts(t.Context(), r, reports.Tools, nil)
	require.Equal(t, report.Invalid, got[0].Calls[0].AsSent)
	require.Equal(t, []middleware.Issue{rule}, got[0].Calls[0].Issues)
	for _, c := range got[1].Calls {
		require.Equal(t, report.NoSchema, c.AsSent)
		require.Equal(t, report.NoSchema, c.Final)
	}
	require.Equal(t, "error", got[2].Error)
	got = report.NewChecker(argsvalidate.Options{}).Attempts(t.Context(), r, reports.Tools, func(error) string { return "timeout" })
	require.Equal(t, "timeout", got[2].Error)
}

func TestJoin(t *testing.T) {
	t.Parallel()
	attempt := func(id string, n, final int) *report.Step {
		return &report.Step{ID: id, File: "f", Final: final, Status: "valid", Duration: time.Second, Attempts: []report.Attempt{{N: n}}}
	}
	s := attempt("17-1/1", 1, -1)
	require.True(t, s.Join(attempt("17-1/2", 2, 0)))
	require.Len(t, s.Attempts, 2)
	require.Equal(t, 1, s.Final)
	require.Equal(t, 2*time.Second, s.Duration)
	for name, next := range map[string]*report.Step{
		"another exchange":  attempt("17-2/3", 3, 0),
		"an earlier number": attempt("17-1/2", 2, 0),
		"no number":         attempt("17-1/3", 0, 0),
		"no slash":          attempt("17-1", 3, 0),
		"no attempt":        {ID: "17-1/3", File: "f"},
		"another file":      {ID: "17-1/3", File: "g", Attempts: []report.Attempt{{N: 3}}},
	} {
		require.False(t, s.Join(next), name)
	}
	require.False(t, (&report.Step{}).Join(s))
	plain := attempt("log/1", 0, 0)
	require.False(t, plain.Join(attempt("log/2", 0, 0)), "ids of another recorder")
	for n := 3; n < 1000; n++ {
		s.Join(attempt("17-1/x", n, -1))
	}
	require.Len(t, s.Attempts, 64)
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for v, want := range map[report.Verdict][3]bool{ // good, unchecked, failed
		report.OK: {true, false, false}, report.NoSchema: {true, true, false}, report.BadSchema: {false, true, false},
		report.Invalid: {false, false, true}, report.BadJSON: {false, false, true}, report.NotObject: {false, false, true},
		report.Announced: {true, true, false}, report.UnknownTool: {false, false, true}, report.Truncated: {false, false, true},
	} {
		require.Equal(t, want, [3]bool{v.Good(), v.Unchecked(), v.Failed()}, v)
	}
}

// A call of a name that several tools have, with different schemas, is not validated.
func TestSeveralTools(t *testing.T) {
	t.Parallel()
	tools := []middleware.Tool{{Name: "t", Parameters: []byte(`{"type":"object","required":["a"]}`)}, {Name: "t", Parameters: []byte(`{"type":"object","required":["b"]}`)}}
	calls, err := report.NewChecker(argsvalidate.Options{}).Check(t.Context(), tools, "", middleware.ToolCall{Name: "t", Arguments: `{"b":1}`})
	require.NoError(t, err)
	require.Equal(t, []report.Verdict{report.BadSchema, report.BadSchema}, []report.Verdict{calls[0].AsSent, calls[0].Final})
	require.Equal(t, "several tools have this name, with different schemas", calls[0].Note)
}

// A property that one branch of a schema declares and another does not has the wrong name, and
// not the wrong type.
func TestFaultOfAName(t *testing.T) {
	t.Parallel()
	tools := []middleware.Tool{{Name: "t", Parameters: []byte(`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}},{"additionalProperties":false}]}`)}}
	calls, err := report.NewChecker(argsvalidate.Options{}).Check(t.Context(), tools, "", middleware.ToolCall{Name: "t", Arguments: `{"a":1}`})
	require.NoError(t, err)
	got := map[string]string{}
	for _, f := range report.ViewStep(&report.Step{Tools: tools, Attempts: []report.Attempt{{Calls: calls}}})[0].Calls[0].Faults {
		got[f.Code] = f.Expected
	}
	require.Equal(t, map[string]string{"additionalProperties": "", "type": "string"}, got)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := reports.Turn(1, "m", reports.Check(t, middleware.FinishToolCalls, "get_weather", `{"city":null,"days":0.5,"x":1}`, "nothing", `{}`, "plan", `nonsense`))
	got := report.ViewStep(s)[0].Calls
	byPlace := map[string]report.Fault{}
	for _, f := range got[0].Faults {
		byPlace[f.Pointer] = f
	}
	require.Equal(t, "string", byPlace["/city"].Expected)
	require.Equal(t, "null", byPlace["/city"].Received)
	require.Equal(t, `{"type":"string"}`, byPlace["/city"].Schema)
	require.Equal(t, "integer", byPlace["/days"].Expected)
	require.Equal(t, "number", byPlace["/days"].Received)
	require.Equal(t, "additionalProperties", byPlace["/x"].Code)
	require.Equal(t, "get_weather, plan, free, odd", got[1].Faults[0].Expected)
	like := reports.Turn(1, "m", reports.Check(t, middleware.FinishToolCalls, "pla", `{}`))
	require.Equal(t, "plan (the most similar), get_weather, free, odd", report.ViewStep(like)[0].Calls[0].Faults[0].Expected)
	require.Empty(t, got[2].Faults[0].Received, "not JSON has no type")
	many := reports.Turn(1, "m", reports.Check(t, middleware.FinishToolCalls, "plan", `{"steps":[`+manyWrong(500)+`]}`))
	shown := report.ViewStep(many)[0].Calls[0]
	require.Len(t, shown.Faults, 20)
	require.Equal(t, 480, shown.More)
}

// The report shows which rule of the configuration a fault came from, whatever the fault is.
func TestRuleOfAFault(t *testing.T) {
	t.Parallel()
	declared := []middleware.Tool{{Name: "pay", Parameters: []byte(`{"type":"object","properties":{"amount":{"type":"number"}}}`)}, {Name: "wipe"}}
	limit, err := argsvalidate.Restrict("pay", []byte(`{"properties":{"amount":{"maximum":5}}}`))
	require.NoError(t, err)
	checker := report.NewChecker(argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.Named("limit", limit), argsvalidate.Named("never", argsvalidate.Forbid("wipe", ""))}})
	calls, err := checker.Check(t.Context(), declared, middleware.FinishToolCalls,
		middleware.ToolCall{Name: "pay", Arguments: `{"amount":9}`}, middleware.ToolCall{Name: "wipe", Arguments: `{}`}, middleware.ToolCall{Name: "pay", Arguments: `{"amount":"x"}`})
	require.NoError(t, err)
	f := report.NewFigures(report.Options{Content: true})
	f.Add(&report.Step{Tools: declared, Attempts: []report.Attempt{{Calls: calls}}})
	s := f.Summary()
	got := map[string]string{}
	for _, finding := range s.Findings {
		got[finding.Tool+" "+finding.Faults[0].Code] = finding.Faults[0].Rule
	}
	require.Equal(t, map[string]string{"pay maximum": `rule "limit"`, "wipe tool_choice": `rule "never"`, "pay type": ""}, got)
	page := html.Written(t, s, report.Layout{Values: true})
	require.Contains(t, page, `, from rule &#34;limit&#34;`)
	require.Contains(t, page, `, from rule &#34;never&#34;`)
	require.Equal(t, 2, strings.Count(page, ", from rule "))
}

// Where the type is right, the demand of the keyword is what the schema expects.
func TestDemands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, value, want string }{
		"enum":             {`{"type":"string","enum":["a b","c"]}`, `"x"`, `enum: expected one of "a b", "c", received another string`},
		"long enum":        {`{"enum":[1,2,3,4,5,6,7,8,9,10]}`, `"x"`, `enum: expected one of 1, 2, 3, 4, 5, 6, 7, 8, 2 more, received another string`},
		"const":            {`{"const":"a"}`, `"x"`, `const: expected "a", received another string`},
		"by reference":     {`{"$ref":"#/$defs/e"}`, `"x"`, `enum: expected one of "e", received another string`},
		"pattern":          {`{"type":"string","pattern":"^a$"}`, `"x"`, `pattern: expected text that matches "^a$", received another string`},
		"minimum":          {`{"type":"number","minimum":1}`, `0`, `minimum: expected at least 1, received another number`},
		"minItems":         {`{"type":"array","minItems":1}`, `[]`, `minItems: expected at least 1 elements, received another array`},
		"uniqueItems":      {`{"type":"array","uniqueItems":true}`, `[1,1]`, `uniqueItems: expected elements that all differ, received another array`},
		"type":             {`{"type":"integer"}`, `[]`, `type: expected integer, received array`},
		"null":             {`{"enum":["a"]}`, `null`, `enum: expected one of "a", received null`},
		"two alternatives": {`{"allOf":[{"type":"string","enum":["a"]},{"type":"string","enum":["b"]}]}`, `"c"`, `enum: received another string`},
		"not":              {`{"type":"string","not":{"type":"string"}}`, `"x"`, `not: received string`},
	} {
		declared := []middleware.Tool{{Name: "t", Parameters: []byte(`{"type":"object","properties":{"v":` + c.schema + `},"$defs":{"e":{"enum":["e"]}}}`)}}
		calls, err := report.NewChecker(argsvalidate.Options{}).Check(t.Context(), declared, middleware.FinishToolCalls, middleware.ToolCall{Name: "t", Arguments: `{"v":` + c.value + `}`})
		require.NoError(t, err)
		step := report.Step{Tools: declared, Attempts: []report.Attempt{{Calls: calls}}}
		f := report.NewFigures(report.Options{})
		f.Add(&step)
		var got []string
		for _, fault := range f.Summary().Findings[0].Faults {
			require.Equal(t, "/v", fault.Pointer, name)
			got = append(got, fault.Code+": "+report.Types(fault))
		}
		require.Contains(t, got, c.want, name)
	}
}

func manyWrong(n int) string {
	out := "1"
	for range n - 1 {
		out += ",1"
	}
	return out
}
