package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

var errLeft = errors.New("the user left")

func TestCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	m := &script{}
	for name, call := range map[string]middleware.ModelCall{
		"New":      retry.New(retry.Options{})(m.call),
		"Fallback": retry.Fallback(nil, m.call),
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := call(ctx, request)
			require.Nil(t, resp)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errLeft)
			require.EqualError(t, err, "retry: context canceled: the user left (attempts: 0)")
			require.Empty(t, m.at)
			require.Empty(t, middleware.ReportOf(resp, err).Attempts)
		})
	}
}

func TestCancelledDuringAnAttempt(t *testing.T) {
	t.Parallel()
	busy := status(503)
	for name, c := range map[string]struct {
		before []error // failures before the attempt that is cut
		err    func(ctx context.Context) error
		last   func(cut error) error
	}{
		"the first":          {nil, context.Context.Err, func(cut error) error { return cut }},
		"the second":         {[]error{busy}, context.Context.Err, func(error) error { return busy }},
		"wrapped":            {[]error{busy}, func(ctx context.Context) error { return fmt.Errorf("post: %w", ctx.Err()) }, func(error) error { return busy }},
		"which fails anyway": {nil, func(context.Context) error { return busy }, func(error) error { return busy }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				m := &script{errs: c.before}
				var cut error
				call := retry.New(retry.Options{})(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
					if len(m.at) < len(c.before) {
						return m.call(ctx, req)
					}
					time.AfterFunc(time.Second, func() { cancel(errLeft) })
					<-ctx.Done()
					cut = c.err(ctx)
					return nil, cut
				})
				_, err := call(ctx, request)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, errLeft)
				var e *retry.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, c.last(cut), e.Last)
				require.Equal(t, len(c.before)+1, e.Attempts)
				require.Len(t, middleware.ReportOf(nil, err).Attempts, len(c.before)+1)
			})
		})
	}
}

// A refusal says more than the context that ended meanwhile; an answer is one.
func TestCancelledTooLate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	refused := status(422)
	_, err := retry.New(retry.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		cancel()
		return nil, refused
	})(ctx, request)
	require.ErrorIs(t, err, refused)
	require.NotErrorIs(t, err, context.Canceled)

	ctx, cancel = context.WithCancel(t.Context())
	resp, err := retry.New(retry.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		cancel()
		return &middleware.Response{}, nil
	})(ctx, request)
	require.NoError(t, err)
	require.NotNil(t, resp)
}

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errLeft) })
		busy := limited(time.Minute)
		m := &script{errs: repeat(busy, 9)}
		_, err := retry.New(retry.Options{})(m.call)(ctx, request)
		require.Equal(t, time.Second, time.Since(start))
		require.Len(t, m.at, 1)
		for _, want := range []error{context.Canceled, errLeft, busy} {
			require.ErrorIs(t, err, want)
		}
		require.EqualError(t, err, "retry: context canceled: the user left (attempts: 1): middleware: model error: status 429")
	})
}

// A deadline ends the step without a wait that could lead nowhere.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		busy := status(503)
		m := &script{errs: repeat(busy, 1000)}
		_, err := retry.New(retry.Options{MaxAttempts: 1000})(m.call)(ctx, request)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, busy)
		require.Less(t, time.Since(start), 3*time.Second)
		require.NoError(t, ctx.Err())
	})
}

// The client's own timeout for an attempt is repeated as long as the caller's
// context lives.
func TestTimeoutOfAnAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		calls := 0
		_, err := retry.New(retry.Options{})(func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
			calls++
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		})(ctx, request)
		require.Equal(t, 4, calls)
		require.ErrorIs(t, err, retry.ErrExhausted)
	})
}
