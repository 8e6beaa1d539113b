package middleware_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// Whether calls may run has one answer, in every order of middlewares.
func TestRunnable(t *testing.T) {
	t.Parallel()
	call := middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "a", Arguments: "{}"})
	for name, c := range map[string]struct {
		m        middleware.Message
		others   []middleware.Message
		set      middleware.Status
		want     middleware.Status
		runnable bool
	}{
		"valid calls":                {m: call, set: middleware.Valid, want: middleware.Valid, runnable: true},
		"invalid calls":              {m: call, set: middleware.Invalid, want: middleware.Invalid},
		"calls that none validated":  {m: call, want: middleware.Unchecked},
		"calls in another choice":    {m: middleware.Assistant("x"), others: []middleware.Message{call}, want: middleware.Unchecked},
		"an answer":                  {m: middleware.Assistant("x"), want: middleware.NoCalls},
		"an answer that satisfies":   {m: middleware.Assistant("x"), set: middleware.Valid, want: middleware.Valid},
		"calls marked as unchecked":  {m: call, set: middleware.Unchecked, want: middleware.Unchecked},
		"a text that cannot be used": {m: middleware.Assistant("x"), set: middleware.Invalid, want: middleware.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := &middleware.Response{Message: c.m, Choices: c.others}
			resp.Report.Status = c.set
			require.Equal(t, c.runnable, resp.Runnable())
			require.Equal(t, c.want, middleware.ReportOf(resp, nil).Status)
			_, unusable := resp.Unusable()
			require.Equal(t, c.set == middleware.Invalid && len(c.m.ToolCalls) == 0, unusable)

			var tally middleware.Tally // as in a middleware that validates nothing
			_, err := tally.Call(context.Background(), func(context.Context, *middleware.Request) (*middleware.Response, error) { return resp, nil }, &middleware.Request{})
			require.NoError(t, err)
			resp, err = tally.Finish(resp, nil)
			require.NoError(t, err)
			require.Equal(t, c.want, resp.Report.Status)
			require.Equal(t, c.want, middleware.ReportOf(resp, nil).Status)
			require.Equal(t, c.runnable, resp.Runnable())
		})
	}
}

// A text that was validated as an answer stays one, also if it is invalid.
func TestUnusable(t *testing.T) {
	t.Parallel()
	issues := []middleware.Issue{{Code: "ambiguous", Message: "two calls in one"}}
	invalid := &middleware.Response{Message: middleware.Assistant("x")}
	invalid.Report.Status = middleware.Invalid
	finish := func(set func(t *middleware.Tally)) *middleware.Response {
		var tally middleware.Tally
		tally.Add(invalid, nil)
		set(&tally)
		resp, err := tally.Finish(invalid, nil)
		require.NoError(t, err)
		return resp
	}
	why, unusable := finish(func(t *middleware.Tally) { t.SetIssues(issues, nil, nil) }).Unusable()
	require.True(t, unusable)
	require.Equal(t, "two calls in one", why)
	why, unusable = finish(func(*middleware.Tally) {}).Unusable()
	require.True(t, unusable)
	require.Equal(t, "it holds neither a tool call that can be read nor an answer", why)
	_, unusable = finish(func(t *middleware.Tally) { t.SetAnswer(issues, nil, nil) }).Unusable()
	require.False(t, unusable)
}

// Calls that are not those that were validated are unchecked.
func TestRunnableAfterAChange(t *testing.T) {
	t.Parallel()
	call := func(id, name, arguments string) middleware.ToolCall {
		return middleware.ToolCall{ID: id, Name: name, Arguments: arguments}
	}
	a, b, bad := call("1", "a", "{}"), call("2", "b", `{"n":1}`), call("2", "b", `{"n":"x"}`)
	valid := func(calls ...middleware.ToolCall) (all []middleware.Verdict) {
		for _, c := range calls {
			all = append(all, middleware.Verdict{Call: c})
		}
		return all
	}
	broken := []middleware.Verdict{{Call: a}, {Call: bad, Issues: []middleware.Issue{{Code: "type"}}}}
	for name, c := range map[string]struct {
		calls    []middleware.ToolCall
		verdicts [][]middleware.Verdict // of each attempt
		want     bool
	}{
		"as validated":           {[]middleware.ToolCall{a, b}, [][]middleware.Verdict{broken, valid(a, b)}, true},
		"no verdicts":            {[]middleware.ToolCall{a}, nil, true},
		"spliced":                {[]middleware.ToolCall{a, b}, [][]middleware.Verdict{broken, valid(call("9", "b", `{"n":1}`))}, true},
		"fewer calls":            {[]middleware.ToolCall{b}, [][]middleware.Verdict{valid(a, b)}, true},
		"other arguments":        {[]middleware.ToolCall{a, call("2", "b", `{"n":2}`)}, [][]middleware.Verdict{valid(a, b)}, false},
		"another name":           {[]middleware.ToolCall{a, call("2", "c", `{"n":1}`)}, [][]middleware.Verdict{valid(a, b)}, false},
		"another call":           {[]middleware.ToolCall{a, b}, [][]middleware.Verdict{valid(a)}, false},
		"the invalid call":       {[]middleware.ToolCall{a, bad}, [][]middleware.Verdict{broken, valid(a, b)}, false},
		"a call in front of all": {[]middleware.ToolCall{bad, a, b}, [][]middleware.Verdict{valid(a, b)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := &middleware.Response{Message: middleware.Assistant("", c.calls...)}
			resp.Report.Status, resp.Report.Final = middleware.Valid, len(c.verdicts)-1
			for _, v := range c.verdicts {
				resp.Report.Attempts = append(resp.Report.Attempts, middleware.Attempt{Verdicts: v})
			}
			status := map[bool]middleware.Status{true: middleware.Valid, false: middleware.Unchecked}[c.want]
			require.Equal(t, c.want, resp.Runnable())
			require.Equal(t, status, middleware.ReportOf(resp, nil).Status)

			var tally middleware.Tally // of a middleware outside of it
			tally.Add(resp, nil)
			out, err := tally.Finish(resp, nil)
			require.NoError(t, err)
			require.Equal(t, status, out.Report.Status)
		})
	}
}
