package retry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

// script is a model that fails with errs in order and then answers.
type script struct {
	errs []error

	mu sync.Mutex
	at []time.Time
}

func (s *script) call(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Now())
	if n := len(s.at); n <= len(s.errs) {
		return nil, s.errs[n-1]
	}
	return &middleware.Response{Message: middleware.Assistant("hello"), Model: req.Model, Usage: middleware.Usage{InputTokens: 3, OutputTokens: 2}}, nil
}

func (s *script) waits() []time.Duration {
	var ds []time.Duration
	for i := 1; i < len(s.at); i++ {
		ds = append(ds, s.at[i].Sub(s.at[i-1]))
	}
	return ds
}

func status(code int) error { return &middleware.ModelError{StatusCode: code} }

func repeat(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

var request = &middleware.Request{Model: "m", Messages: []middleware.Message{middleware.User("hi")}}

func TestAttempts(t *testing.T) {
	t.Parallel()
	busy, refused := status(503), status(400)
	for name, c := range map[string]struct {
		o      retry.Options
		errs   []error
		calls  int
		is     []error
		isNot  []error
		reason error
	}{
		"first time":             {calls: 1},
		"second time":            {errs: repeat(busy, 1), calls: 2},
		"last of the default":    {errs: repeat(busy, 3), calls: 4},
		"default exhausted":      {errs: repeat(busy, 9), calls: 4, is: []error{busy, retry.ErrExhausted}, reason: retry.ErrExhausted},
		"one attempt":            {o: retry.Options{MaxAttempts: 1}, errs: repeat(busy, 9), calls: 1, is: []error{busy}, reason: retry.ErrExhausted},
		"seven attempts":         {o: retry.Options{MaxAttempts: 7}, errs: repeat(busy, 9), calls: 7, is: []error{busy}, reason: retry.ErrExhausted},
		"refused at first":       {errs: repeat(refused, 1), calls: 1, is: []error{refused}, isNot: []error{retry.ErrExhausted}},
		"refused later":          {errs: []error{busy, busy, refused}, calls: 3, is: []error{refused}, isNot: []error{busy, retry.ErrExhausted}},
		"own condition":          {o: retry.Options{If: retry.Status(400)}, errs: repeat(refused, 2), calls: 3},
		"own condition says no":  {o: retry.Options{If: retry.Status(400)}, errs: repeat(busy, 2), calls: 1, is: []error{busy}},
		"own condition panics":   {o: retry.Options{If: func(error) bool { panic("x") }}, errs: repeat(busy, 2), calls: 1, is: []error{busy}},
		"attempt timed out":      {errs: repeat(context.DeadlineExceeded, 1), calls: 2},
		"attempt was cancelled":  {errs: repeat(context.Canceled, 1), calls: 1, is: []error{context.Canceled}},
		"MaxElapsed in between":  {o: retry.Options{MaxElapsed: 100 * time.Millisecond}, errs: repeat(busy, 9), calls: 1, is: []error{busy}, isNot: []error{retry.ErrExhausted}, reason: retry.ErrElapsed},
		"MaxElapsed not reached": {o: retry.Options{MaxElapsed: time.Minute}, errs: repeat(busy, 3), calls: 4},
		"a delay of centuries": {
			o:    retry.Options{MinDelay: 1<<63 - 1, MaxElapsed: time.Hour},
			errs: repeat(busy, 1), calls: 1, is: []error{busy}, reason: retry.ErrElapsed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &script{errs: c.errs}
				resp, err := retry.New(c.o)(m.call)(t.Context(), request)
				require.Equal(t, err == nil, resp != nil)
				require.Len(t, m.at, c.calls)
				r := middleware.ReportOf(resp, err)
				require.Len(t, r.Attempts, c.calls)
				if len(c.is) == 0 {
					require.NoError(t, err)
					require.Equal(t, "hello", resp.Message.Text())
					require.Equal(t, c.calls-1, r.Final)
				}
				for _, e := range c.is {
					require.ErrorIs(t, err, e)
				}
				for _, e := range c.isNot {
					require.NotErrorIs(t, err, e)
				}
				var e *retry.Error
				require.Equal(t, c.reason != nil, errors.As(err, &e))
				if c.reason != nil {
					require.Equal(t, c.calls, e.Attempts)
					require.ErrorIs(t, e.Reason, c.reason)
					require.Equal(t, c.errs[c.calls-1], e.Last)
				}
			})
		})
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{errs: repeat(status(529), 2)}
		slow := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			time.Sleep(3 * time.Second)
			return m.call(ctx, req)
		}
		resp, err := retry.New(retry.Options{})(slow)(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, middleware.Usage{InputTokens: 3, OutputTokens: 2}, resp.Usage)
		for i, a := range resp.Report.Attempts {
			require.Equal(t, 3*time.Second, a.Duration)
			require.Equal(t, m.at[i].Add(-3*time.Second), a.Start)
			require.Equal(t, i < 2, a.Err != nil)
		}
	})
}

// A limit that allows no further attempt does not hide the failure before it. It is the error of a first attempt.
func TestALimitKeepsTheLastFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy, limit := status(503), fmt.Errorf("used up: %w", middleware.ErrNotSent)
		m := &script{errs: []error{busy, limit}}
		_, err := retry.New(retry.Options{})(m.call)(t.Context(), request)
		e, ok := errors.AsType[*retry.Error](err)
		require.True(t, ok)
		require.Equal(t, []error{limit, busy}, []error{e.Reason, e.Last})
		require.Len(t, m.at, 2)
		_, err = retry.New(retry.Options{})((&script{errs: []error{limit}}).call)(t.Context(), request)
		require.ErrorIs(t, err, limit)
		require.False(t, retry.GaveUp(err))
	})
}

func TestPanickingConditionIsNoted(t *testing.T) {
	t.Parallel()
	m := &script{errs: repeat(status(503), 1)}
	_, err := retry.New(retry.Options{If: func(error) bool { panic("secret") }})(m.call)(t.Context(), request)
	notes := middleware.ReportOf(nil, err).Notes
	require.Len(t, notes, 1)
	require.NotContains(t, notes[0], "secret")
}

func TestModelPanicIsPassedOn(t *testing.T) {
	t.Parallel()
	call := retry.New(retry.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) { panic("model") })
	require.PanicsWithValue(t, "model", func() { _, _ = call(t.Context(), request) })
}

func TestNoResponseIsNotRepeated(t *testing.T) {
	t.Parallel()
	calls := 0
	call := retry.New(retry.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		calls++
		return nil, nil
	})
	resp, err := call(t.Context(), request)
	require.Nil(t, resp)
	require.ErrorIs(t, err, middleware.ErrNoResponse)
	require.Equal(t, 1, calls)
}

func TestRequestIsUntouched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		req := request.Clone()
		req.Sink = func(middleware.Event) error { return nil }
		m := &script{errs: repeat(status(503), 2)}
		_, err := retry.New(retry.Options{})(m.call)(t.Context(), req)
		require.NoError(t, err)
		require.NotNil(t, req.Sink)
		req.Sink = nil
		require.Equal(t, request, req)
	})
}

func TestConcurrentSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		layer := retry.New(retry.Options{})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				m := &script{errs: repeat(status(503), 3)}
				resp, err := layer(m.call)(t.Context(), request)
				if err != nil || len(resp.Report.Attempts) != 4 {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]retry.Options{
		"retry: MaxAttempts: must not be negative, got -1":             {MaxAttempts: -1},
		"retry: MinDelay: must not be negative, got -1ns":              {MinDelay: -1},
		"retry: MaxDelay: must not be negative, got -1s":               {MaxDelay: -time.Second},
		"retry: MaxDelay: must not be less than MinDelay (2s), got 1s": {MinDelay: 2 * time.Second, MaxDelay: time.Second},
		"retry: MaxElapsed: must not be negative, got -1m0s":           {MaxElapsed: -time.Minute},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			require.EqualError(t, o.Validate(), want)
			require.PanicsWithError(t, want, func() { retry.New(o) })
		})
	}
	require.NoError(t, retry.Options{}.Validate())
	require.Panics(t, func() { retry.New(retry.Options{})(nil) })
}
