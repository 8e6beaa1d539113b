package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

func TestFallback(t *testing.T) {
	t.Parallel()
	busy, limit, down, refused := status(503), status(429), status(502), status(400)
	for name, c := range map[string]struct {
		when  func(error) bool
		errs  []error // one a model; nil: it answers
		calls int
		is    []error
		text  string
	}{
		"the first answers":       {errs: []error{nil, nil}, calls: 1},
		"the second answers":      {errs: []error{busy, nil, nil}, calls: 2},
		"all fail":                {errs: []error{busy, limit, down}, calls: 3, is: []error{busy, limit, down, retry.ErrExhausted}, text: "retry: attempts exhausted (attempts: 3): middleware: model error: status 503; middleware: model error: status 429; middleware: model error: status 502"},
		"the only one fails":      {errs: []error{busy}, calls: 1, is: []error{busy, retry.ErrExhausted}, text: "retry: attempts exhausted (attempts: 1): middleware: model error: status 503"},
		"a refusal":               {errs: []error{refused, nil}, calls: 1, is: []error{refused}, text: refused.Error()},
		"a refusal by the last":   {errs: []error{busy, refused}, calls: 2, is: []error{refused}, text: refused.Error()},
		"own condition":           {when: retry.Status(400), errs: []error{refused, nil}, calls: 2},
		"own condition says no":   {when: retry.Status(400), errs: []error{busy, nil}, calls: 1, is: []error{busy}, text: busy.Error()},
		"a condition that panics": {when: func(error) bool { panic("x") }, errs: []error{busy, nil}, calls: 1, is: []error{busy}, text: busy.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			var models []middleware.ModelCall
			for _, err := range c.errs {
				models = append(models, func(context.Context, *middleware.Request) (*middleware.Response, error) {
					calls++
					if err != nil {
						return nil, err
					}
					return &middleware.Response{Usage: middleware.Usage{InputTokens: 1}}, nil
				})
			}
			call := retry.Fallback(c.when, models...)
			clear(models) // the models were copied
			resp, err := call(t.Context(), request)
			require.Equal(t, c.calls, calls)
			require.Len(t, middleware.ReportOf(resp, err).Attempts, c.calls)
			require.Equal(t, err == nil, resp != nil)
			if c.is == nil {
				require.NoError(t, err)
				require.Equal(t, c.calls-1, resp.Report.Final)
			} else {
				require.EqualError(t, err, c.text)
			}
			for _, e := range c.is {
				require.ErrorIs(t, err, e)
			}
		})
	}
}

// Each model has its retries, and the ledger has them all.
func TestFallbackOverRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{errs: repeat(status(503), 9)}, &script{errs: repeat(status(429), 9)}
		layer := retry.New(retry.Options{MaxAttempts: 3})
		_, err := retry.Fallback(nil, layer(a.call), layer(b.call))(t.Context(), request)
		require.Len(t, a.at, 3)
		require.Len(t, b.at, 3)
		require.Len(t, middleware.ReportOf(nil, err).Attempts, 6)
		require.ErrorIs(t, err, a.errs[0])
		require.ErrorIs(t, err, b.errs[0])
		var e *retry.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, 2, e.Attempts)

		b = &script{errs: repeat(status(429), 1)}
		resp, err := retry.Fallback(nil, layer(a.call), layer(b.call))(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, 4, resp.Report.Final)
	})
}

// A first model whose wait would cross the deadline leaves its time to the
// second.
func TestFallbackInsteadOfAVainWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a, b := &script{errs: repeat(limited(time.Hour), 9)}, &script{}
		layer := retry.New(retry.Options{})
		_, err := retry.Fallback(nil, layer(a.call), layer(b.call))(ctx, request)
		require.NoError(t, err)
		require.Len(t, a.at, 1)
	})
}

func TestFallbackCancelledBetweenModels(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	busy, second := status(503), &script{}
	_, err := retry.Fallback(nil, func(context.Context, *middleware.Request) (*middleware.Response, error) {
		cancel()
		return nil, busy
	}, second.call)(ctx, request)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, busy)
	require.Empty(t, second.at)
}

func TestFallbackRefusesNoModels(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, "retry: Fallback: models: must not be empty", func() { retry.Fallback(nil) })
	m := &script{}
	require.PanicsWithValue(t, "retry: Fallback: models: must not be nil, got nil at 1", func() { retry.Fallback(nil, m.call, nil) })
}

func TestErrorWithoutParts(t *testing.T) {
	t.Parallel()
	e := &retry.Error{}
	require.EqualError(t, e, "retry: no reason given (attempts: 0)")
	require.Empty(t, e.Unwrap())
	require.NotErrorIs(t, e, errors.ErrUnsupported)
}
