package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

func TestCalculate(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]float64{
		"1 + 1":                   2,
		"25^(1/2)":                5,
		"25**(1/2)":               5,
		"(54 - 32) * 5 / 9":       12.222222222222221,
		"sqrt(25)":                5,
		"sqrt(2 + 2) * -3":        -6,
		"2^3^2":                   512,
		"1/2":                     0.5,
		"1e3 + 1":                 1001,
		"9223372036854775807 + 1": 9223372036854775808, // an int would wrap
	} {
		got, err := calculate(expression)
		require.NoError(t, err, expression)
		require.Equal(t, want, got, expression)
	}
	for _, expression := range []string{
		"", "1 +", "1,000 + 1", "x", "'a'", "[1]", "true", "nil", "1 == 1", "2(3 + 4)",
		"1/0", "0/0", "sqrt(-1)", "10^400", "sqrt()", "sqrt(1, 2)", "sqrt('1')",
		"sum(1..1000000000)", "len('a')", "repeat('a', 9)", "now()", "env", "sqrt(nil)",
		"sum([1, 2])", "let a = [1,1,1,1,1,1,1,1,1,1]; " + strings.Repeat("sum(a,", 14) + "1" + strings.Repeat(")", 14),
		"let a = 1; a", "1 < 2 ? 1 : 2", "{'a': 1}.a", "[1][0]", "1; 2", "1..2", "1 in [1]", "not 1", "'a' + 'b'",
		strings.Repeat("1+", 99) + "1", strings.Repeat("(", 99) + "1" + strings.Repeat(")", 98),
	} {
		v, err := calculate(expression)
		require.Error(t, err, "%s is %v", expression, v)
	}
}

// The schema keeps long expressions and empty queries from the tools.
func TestToolsAreBounded(t *testing.T) {
	t.Parallel()
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	tools := []middleware.Tool{calculator().Def, searchTool(offline).Def}
	for arguments, name := range map[string]string{
		`{"expression":"` + strings.Repeat("1", 201) + `"}`: "calculator",
		`{"expression":""}`: "calculator",
		`{"query":""}`:      "search",
		`{"query":"` + strings.Repeat("a", 401) + `"}`: "search",
	} {
		_, err := v.Validate(t.Context(), tools, middleware.ToolCall{ID: "c", Name: name, Arguments: arguments})
		require.ErrorIs(t, err, argsvalidate.ErrInvalid)
	}

	long := searchTool(func(context.Context, string) (string, error) { return strings.Repeat("ø", maxFound), nil })
	r, err := long.Func(t.Context(), middleware.ToolCall{Name: "search", Arguments: `{"query":"x"}`})
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("ø", maxFound/2)+" …", r.Text)
}

func TestWeb(t *testing.T) {
	t.Parallel()
	const key = "s3cr&t"
	for name, tc := range map[string]struct {
		status     int
		body       string
		want, fail string
	}{
		"answer":        {body: `{"answer_box":{"answer":"42","snippet":"x"},"organic_results":[{"snippet":"y"}]}`, want: "42"},
		"snippet":       {body: `{"answer_box":{"snippet":"x"},"organic_results":[{"snippet":"y"}]}`, want: "x"},
		"first result":  {body: `{"organic_results":[{"snippet":"y"},{"snippet":"z"}]}`, want: "y"},
		"nothing":       {body: `{}`, want: ""},
		"wrong key":     {status: 401, body: `{"error":"Invalid API key"}`, fail: "the search service answers 401 Unauthorized"},
		"no JSON":       {body: `<html>`, fail: "does not answer in JSON"},
		"half a result": {body: `{"answer_box":`, fail: "does not answer in JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("q") != "50% of Ø & more?" || r.FormValue("api_key") != key {
					w.WriteHeader(http.StatusTeapot)
					return
				}
				if tc.status != 0 {
					w.WriteHeader(tc.status)
				}
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			got, err := web(server.Client(), server.URL, key)(t.Context(), "50% of Ø & more?")
			if tc.fail != "" {
				require.ErrorContains(t, err, tc.fail)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

// What the model is told of a failure does not hold the key.
func TestWebKeepsItsKey(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := web(server.Client(), server.URL, "s3cret")(ctx, "x")
	require.ErrorContains(t, err, "cannot be reached")
	require.NotContains(t, err.Error(), "s3cret")
	cancel()
	_, err = web(server.Client(), server.URL, "s3cret")(ctx, "x")
	require.ErrorIs(t, err, context.Canceled)
	_, err = web(server.Client(), "http://[", "s3cret")(t.Context(), "x")
	require.EqualError(t, err, "the search service has no valid address")
}

func TestOffline(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"how long is the Rhine":  facts[4],
		"HIGHEST mountain, Alps": facts[2],
		"Norway's longest fjord": facts[3],
		"how high is it":         "",
		"":                       "",
	} {
		got, err := offline(t.Context(), query)
		require.NoError(t, err)
		require.Equal(t, want, got, query)
	}
}
