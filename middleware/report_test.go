package middleware_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

func TestReportOf(t *testing.T) {
	t.Parallel()
	recorded := middleware.Report{Status: middleware.Valid, Attempts: []middleware.Attempt{{Usage: tokens(1, 1)}, {Usage: tokens(2, 2)}}, Final: 1}
	for name, tc := range map[string]struct {
		resp     *middleware.Response
		err      error
		attempts int
		final    int
		usage    middleware.Usage
		status   middleware.Status
	}{
		"nothing":             {nil, nil, 0, -1, tokens(0, 0), ""},
		"plain error":         {nil, errBoom, 1, -1, tokens(0, 0), ""},
		"unrecorded response": {&middleware.Response{Usage: tokens(3, 4)}, nil, 1, 0, tokens(3, 4), ""},
		"recorded response":   {&middleware.Response{Usage: tokens(3, 3), Report: recorded}, nil, 2, 1, tokens(3, 3), "valid"},
		"noted, unrecorded": {
			&middleware.Response{Usage: tokens(3, 4), Report: middleware.Report{Status: middleware.Invalid, Notes: []string{"n"}}},
			nil, 1, 0, tokens(3, 4), "invalid",
		},
		"refused tool call": {nil, &middleware.ModelError{Err: middleware.ErrInvalidToolCall}, 1, -1, tokens(0, 0), "invalid"},
		"error wins":        {&middleware.Response{Usage: tokens(3, 3)}, errBoom, 1, -1, tokens(0, 0), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := middleware.ReportOf(tc.resp, tc.err)
			require.Len(t, got.Attempts, tc.attempts)
			require.Equal(t, tc.final, got.Final)
			require.Equal(t, tc.usage, got.Usage())
			require.Equal(t, tc.status, got.Status)
			if tc.err != nil {
				require.Equal(t, tc.err, got.Attempts[0].Err)
			}
		})
	}
}

func TestContextTokens(t *testing.T) {
	t.Parallel()
	attempts := []middleware.Attempt{{Usage: tokens(100, 50)}, {Usage: middleware.Usage{InputTokens: 200, Cached: 150, OutputTokens: 20, Reasoning: 5}}}
	for name, tc := range map[string]struct {
		resp middleware.Response
		want int64
	}{
		"unrecorded":     {middleware.Response{Usage: tokens(3, 4)}, 7},
		"final attempt":  {middleware.Response{Usage: tokens(300, 70), Report: middleware.Report{Attempts: attempts, Final: 1}}, 220},
		"earlier one":    {middleware.Response{Usage: tokens(300, 70), Report: middleware.Report{Attempts: attempts}}, 150},
		"no final":       {middleware.Response{Usage: tokens(3, 4), Report: middleware.Report{Attempts: attempts, Final: -1}}, 7},
		"out of bounds":  {middleware.Response{Usage: tokens(3, 4), Report: middleware.Report{Attempts: attempts, Final: 2}}, 7},
		"nothing at all": {middleware.Response{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, tc.resp.ContextTokens())
		})
	}
}

func TestUsageAdd(t *testing.T) {
	t.Parallel()
	u := middleware.Usage{InputTokens: 1, Cached: 2, CacheWrite: 3, OutputTokens: 4, Reasoning: 5}
	require.Equal(t, middleware.Usage{InputTokens: 2, Cached: 4, CacheWrite: 6, OutputTokens: 8, Reasoning: 10}, u.Add(u))
	require.Equal(t, u, u.Add(middleware.Usage{}))
}

func TestIssuePath(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"":                     "the arguments",
		"/config":              "config",
		"/config/thresholds/1": "config.thresholds[1]",
		"/0":                   "0", // arguments are an object: a first number is a key
		"/0/1/2":               "0[1][2]",
		"/a/01":                "a.01", // not an index by RFC 6901
		"/a/10":                "a[10]",
		"/a~1b/c~0d":           "a/b.c~d",
		"/a~01":                "a~1",
		"/a//b":                `a."".b`,
		"/":                    `""`,
		"/größe":               "größe",
	} {
		t.Run(fmt.Sprintf("%q", pointer), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, middleware.Issue{Pointer: pointer}.Path())
		})
	}
}

// A provider's figures are no reason for a sum that wraps around.
func TestUsageOfHostileFigures(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64
	all := func(n int64) middleware.Usage {
		return middleware.Usage{InputTokens: n, Cached: n, CacheWrite: n, OutputTokens: n, Reasoning: n}
	}
	for _, c := range []struct{ a, b, want int64 }{
		{1, 2, 3}, {most, 1, most}, {1, most, most}, {most, most, most}, {most - 1, 1, most},
		{-5, 2, 2}, {2, -5, 2}, {-1, -1, 0}, {math.MinInt64, math.MinInt64, 0}, {math.MinInt64, most, most}, {most, math.MinInt64, most},
	} {
		require.Equal(t, all(c.want), all(c.a).Add(all(c.b)), "%d and %d", c.a, c.b)
	}
	resp := middleware.Response{Usage: all(most), Report: middleware.Report{Final: -1}}
	require.EqualValues(t, most, resp.ContextTokens())
}
