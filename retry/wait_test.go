package retry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

func limited(after time.Duration) error {
	return &middleware.ModelError{StatusCode: 429, RetryAfter: after}
}

// Every wait lies within ±50% of an interval that grows by half and stops at
// MaxDelay, and all of them together within MaxElapsed.
func TestWaitsStayInTheirBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		o := retry.Options{
			MaxAttempts: rapid.IntRange(1, 12).Draw(rt, "attempts"),
			MinDelay:    time.Duration(rapid.Int64Range(1000, int64(time.Minute)).Draw(rt, "min")),
			MaxElapsed:  time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "elapsed")),
		}
		o.MaxDelay = o.MinDelay + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "max"))
		asked := time.Duration(rapid.Int64Range(0, int64(5*time.Minute)).Draw(rt, "asked"))
		synctest.Test(t, func(t *testing.T) {
			m := &script{errs: repeat(limited(asked), 20)}
			start := time.Now()
			_, err := retry.New(o)(m.call)(t.Context(), request)
			var e *retry.Error
			if !errors.As(err, &e) || len(m.at) > o.MaxAttempts || e.Attempts != len(m.at) {
				rt.Fatalf("%d attempts, %v", len(m.at), err)
			}
			if o.MaxElapsed > 0 && time.Since(start) > o.MaxElapsed {
				rt.Fatalf("took %s", time.Since(start))
			}
			interval := float64(o.MinDelay)
			for i, d := range m.waits() {
				low, high := max(interval*0.5-2, float64(asked)), max(interval*1.5+2, float64(asked))
				if float64(d) < low || float64(d) > high {
					rt.Fatalf("wait %d is %s, not within %s and %s", i, d, time.Duration(low), time.Duration(high))
				}
				interval = min(interval*1.5, float64(o.MaxDelay))
			}
		})
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o        retry.Options
		asked    time.Duration
		deadline time.Duration
		wait     time.Duration // 0: none
		reason   error
	}{
		"is waited":                       {asked: 7 * time.Second, wait: 7 * time.Second},
		"even past MaxDelay":              {asked: 2 * time.Minute, wait: 2 * time.Minute},
		"up to ten minutes":               {asked: 10 * time.Minute, wait: 10 * time.Minute},
		"no longer by default":            {asked: 10*time.Minute + 1, reason: retry.ErrElapsed},
		"the longest of all":              {asked: math.MaxInt64, reason: retry.ErrElapsed},
		"the longest with a MaxElapsed":   {o: retry.Options{MaxElapsed: time.Hour}, asked: math.MaxInt64, reason: retry.ErrElapsed},
		"longer with a longer MaxDelay":   {o: retry.Options{MaxDelay: time.Hour}, asked: time.Hour, wait: time.Hour},
		"longer with a longer MaxElapsed": {o: retry.Options{MaxElapsed: 3 * time.Hour}, asked: time.Hour, wait: time.Hour},
		"longer with a later deadline":    {asked: time.Hour, deadline: 2 * time.Hour, wait: time.Hour},
		"past MaxElapsed":                 {o: retry.Options{MaxElapsed: time.Minute}, asked: time.Minute + 1, reason: retry.ErrElapsed},
		"past the deadline":               {asked: time.Minute, deadline: 50 * time.Second, reason: context.DeadlineExceeded},
		"at the deadline":                 {asked: time.Minute, deadline: time.Minute, reason: context.DeadlineExceeded},
		"past both":                       {o: retry.Options{MaxElapsed: time.Minute}, asked: time.Hour, deadline: time.Second, reason: retry.ErrElapsed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				start := time.Now()
				busy := limited(c.asked)
				m := &script{errs: []error{busy}}
				_, err := retry.New(c.o)(m.call)(ctx, request)
				if c.reason == nil {
					require.NoError(t, err)
					require.Equal(t, []time.Duration{c.wait}, m.waits())
					return
				}
				require.ErrorIs(t, err, c.reason)
				require.ErrorIs(t, err, busy)
				require.Len(t, m.at, 1)
				require.Zero(t, time.Since(start), "it waited in vain")
			})
		})
	}
}

// An interval of centuries, whose jitter overflows, is waited and not skipped.
func TestJitterOfCenturies(t *testing.T) {
	t.Parallel()
	for range 50 { // half of the jitters overflow
		synctest.Test(t, func(t *testing.T) {
			m := &script{errs: repeat(status(503), 9)}
			_, err := retry.New(retry.Options{MinDelay: math.MaxInt64, MaxElapsed: time.Hour})(m.call)(t.Context(), request)
			require.ErrorIs(t, err, retry.ErrElapsed)
			require.Len(t, m.at, 1)
		})
	}
}

// A negative Retry-After is none.
func TestRetryAfterInThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{errs: repeat(limited(-time.Hour), 1)}
		_, err := retry.New(retry.Options{})(m.call)(t.Context(), request)
		require.NoError(t, err)
		require.GreaterOrEqual(t, m.waits()[0], 250*time.Millisecond)
	})
}

// MaxElapsed counts the time that attempts take.
func TestMaxElapsedCountsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		_, err := retry.New(retry.Options{MaxElapsed: time.Minute})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
			calls++
			time.Sleep(59 * time.Second)
			return nil, status(503)
		})(t.Context(), request)
		require.ErrorIs(t, err, retry.ErrElapsed)
		require.Equal(t, 2, calls)
	})
}
