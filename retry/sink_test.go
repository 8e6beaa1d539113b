package retry_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

// streaming is a model that shows a word before each outcome of m.
func streaming(m *script, hide bool) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: "wo"}); err != nil && !hide {
			return nil, err
		}
		return m.call(ctx, req)
	}
}

func TestPartlyShownAttemptIsVoided(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(middleware.ModelCall) middleware.ModelCall{
		"New":      retry.New(retry.Options{}),
		"Fallback": func(m middleware.ModelCall) middleware.ModelCall { return retry.Fallback(nil, m, m) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var kinds []middleware.EventKind
				req := request.Clone()
				req.Sink = func(e middleware.Event) error {
					kinds = append(kinds, e.Kind)
					return nil
				}
				_, err := wrap(streaming(&script{errs: repeat(status(503), 1)}, false))(t.Context(), req)
				require.NoError(t, err)
				require.Equal(t, []middleware.EventKind{middleware.EventText, middleware.EventReset, middleware.EventText}, kinds)
			})
		})
	}
}

// A lost connection to the one who watches is not one to the model.
func TestSinkErrorEndsTheStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failAt int // event, from 1
		hide   bool
		calls  int
		reason bool
	}{
		"in an attempt":              {failAt: 1, calls: 0},
		"hidden by the model":        {failAt: 1, hide: true, calls: 1, reason: true},
		"while the text is voided":   {failAt: 2, calls: 1},
		"in the second attempt":      {failAt: 3, calls: 1},
		"hidden, the model succeeds": {failAt: 3, hide: true, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				events, busy := 0, status(503)
				req := request.Clone()
				req.Sink = func(middleware.Event) error {
					if events++; events >= c.failAt {
						return syscall.ECONNRESET
					}
					return nil
				}
				m := &script{errs: repeat(busy, 1)}
				resp, err := retry.New(retry.Options{})(streaming(m, c.hide))(t.Context(), req)
				require.Len(t, m.at, c.calls)
				if c.calls == 2 {
					require.NoError(t, err)
					require.NotNil(t, resp)
					return
				}
				require.ErrorIs(t, err, syscall.ECONNRESET)
				require.Equal(t, c.reason, errors.Is(err, busy))
				require.Equal(t, c.reason, errors.As(err, new(*retry.Error)), "the sink's error goes up as it is")
			})
		})
	}
}
