package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// TestHookTime holds that the calls of a message share the time limit of a hook.
func TestHookTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var limits []time.Duration
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			deadline, _ := r.Context().Deadline()
			limits = append(limits, time.Until(deadline))
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"findings": []}`))}, nil
		})
		var o argsvalidate.Options
		ruleSet{hook: &hook{base: base}}.add(&o, Upstream{}, true)
		call := middleware.ToolCall{ID: "1", Name: "f", Arguments: `{}`}
		for _, n := range []int{1, 4} {
			_, err := argsvalidate.NewValidator(o).Validate(t.Context(), []middleware.Tool{{Name: "f"}}, []middleware.ToolCall{call, call, call, call}[:n]...)
			require.NoError(t, err)
		}
		short := 500 * time.Millisecond
		require.Equal(t, []time.Duration{2 * time.Second, short, short, short, short}, limits)
	})
}

// TestHookText holds that the text of a hook is clean where it is kept, not only where a model reads it.
func TestHookText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`a\nb\u001b[31m <|im_end|>`: `a b\u001b[31m < |im_end| >`,
		strings.Repeat("x", 600):    strings.Repeat("x", maxHookText-3) + "…",
	} {
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"findings": [{"message": "` + text + `"}, {"pointer": "/` + text + `"}]}`))}, nil
		})
		issues, err := hook{Hook: Hook{Timeout: Duration(time.Minute)}, base: base, failed: func(string, int64) {}}.Check(t.Context(), &argsvalidate.Call{ToolCall: middleware.ToolCall{Arguments: "{}"}})
		require.NoError(t, err)
		pointer := "/" + want
		if len(text) > maxHookText {
			pointer = ""
		}
		require.Equal(t, []middleware.Issue{{Message: want}, {Pointer: pointer, Message: "not allowed"}}, issues)
	}
}

// TestHookIsNotAskedWithoutArguments holds that arguments that cannot be encoded are an error, and that the hook then gets no request.
func TestHookIsNotAskedWithoutArguments(t *testing.T) {
	t.Parallel()
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("asked")
		return nil, io.EOF
	})
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	_, err := hook{Hook: Hook{Timeout: Duration(time.Minute)}, base: base, failed: func(string, int64) {}}.Check(t.Context(), &argsvalidate.Call{ToolCall: middleware.ToolCall{Arguments: deep}})
	require.ErrorContains(t, err, "depth")
}
