package run_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/run"
)

func TestIsolated(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		f    func(context.Context) (int, error)
		want string
		is   error
	}{
		"a value":            {f: func(context.Context) (int, error) { return 7, nil }},
		"an error":           {f: func(context.Context) (int, error) { return 0, broken }, want: "broken", is: broken},
		"a panic":            {f: func(context.Context) (int, error) { panic("secret") }, want: "panic: string"},
		"an ended goroutine": {f: func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }, want: "it ended its goroutine"},
		"a timeout": {
			f:    func(ctx context.Context) (int, error) { <-ctx.Done(); time.Sleep(time.Second); return 7, nil },
			want: "did not return within 1s: context deadline exceeded", is: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(time.Minute) // until f has returned as well
				got, err := run.Isolated(t.Context(), time.Second, c.f)
				if c.want == "" {
					require.NoError(t, err)
					require.Equal(t, 7, got)
					return
				}
				require.EqualError(t, err, c.want)
				if c.is != nil {
					require.ErrorIs(t, err, c.is)
				}
			})
		})
	}
}

func TestIsolatedObeysTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Hour) // until slow has returned as well
		why := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		called := 0
		slow := func(context.Context) (int, error) {
			called++
			cancel(why)
			time.Sleep(time.Minute)
			return 0, nil
		}
		for range 2 { // the second time the context has ended already
			_, err := run.Isolated(ctx, time.Second, slow)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, why)
		}
		synctest.Wait()
		require.Equal(t, 1, called)
	})
}

// Without a timeout f has all the time it needs, and its context ends with it.
func TestIsolatedWithoutATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var inside context.Context
		got, err := run.Isolated(t.Context(), 0, func(ctx context.Context) (int, error) {
			inside = ctx
			time.Sleep(24 * time.Hour)
			return 7, ctx.Err()
		})
		require.NoError(t, err)
		require.Equal(t, 7, got)
		require.Error(t, inside.Err())
	})
}
