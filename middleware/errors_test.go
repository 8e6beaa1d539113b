package middleware_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
)

func TestModelErrorText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*middleware.ModelError{
		"middleware: model error":                                    {},
		"middleware: model error: status 429":                        {StatusCode: 429},
		"middleware: model error: overloaded":                        {Code: "overloaded"},
		"middleware: model error: status 429: rate_limit: slow down": {StatusCode: 429, Code: "rate_limit", Err: errors.New("slow down")},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			require.EqualError(t, e, want)
		})
	}
}

// What a model wrote may hold anything: it stays out of the text, whatever
// wraps the error.
func TestModelErrorNeverShowsOutput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := "SECRET-" + rapid.StringMatching(`[a-z]{8}`).Draw(t, "secret")
		e := &middleware.ModelError{StatusCode: 400, Code: "tool_use_failed", Output: secret, Err: middleware.ErrInvalidToolCall}
		var tally middleware.Tally
		tally.Add(nil, e)
		_, err := tally.Finish(nil, fmt.Errorf("step: %w", e))
		for _, text := range []string{e.Error(), err.Error(), fmt.Sprint(e), fmt.Sprintf("%v %s", err, e)} {
			require.NotContains(t, text, secret)
		}
	})
}

func TestModelErrorUnwraps(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("adapter: %w", &middleware.ModelError{StatusCode: 400, Err: fmt.Errorf("groq: %w", middleware.ErrInvalidToolCall)})
	require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
	var me *middleware.ModelError
	require.ErrorAs(t, err, &me)
	require.Equal(t, 400, me.StatusCode)
	require.NoError(t, (&middleware.ModelError{}).Unwrap())
}
