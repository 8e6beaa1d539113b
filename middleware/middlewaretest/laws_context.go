package middlewaretest

import (
	"context"
	"errors"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// atOnce is how long a middleware may take to notice that its caller has gone.
const atOnce = time.Second

// contextKey is the key of a value that must reach the model.
type contextKey struct{}

// lawContext checks that the values and the cancellation of the caller's context
// reach the model.
func lawContext(t tester, mw middleware.Middleware) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), contextKey{}, "given"))
	defer cancel()
	call := mw(func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
		if ctx.Value(contextKey{}) != "given" {
			t.Errorf("a value of the caller's context does not reach the model")
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(atOnce):
			t.Errorf("the cancellation of the caller's context does not reach the model")
		}
		return words(1), nil
	})
	ask(t, ctx, call, sample(question()))
}

// lawCancelledBefore makes a call with a cancelled context. The call may reach the
// model, end before it, or be answered without it. It must not wait, ask twice or
// hide the reason.
func lawCancelledBefore(t tester, mw middleware.Middleware) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	model := &spy{play: func(n int, ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return words(n), nil
	}}
	start := time.Now()
	resp, err, ok := ask(t, ctx, mw(model.call), sample(question()))
	if took := time.Since(start); took > atOnce {
		t.Errorf("with a cancelled context the call took %v", took)
	}
	if !ok {
		return
	}
	if model.count() > 1 {
		t.Errorf("with a cancelled context the model was asked %d times", model.count())
	}
	if resp == nil && !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context the error is not context.Canceled, got: %v", err)
	}
}

// lawCancelledDuring cancels during a model call whose outcome asks for another
// one. The result of mw is not checked: the answer may be good.
func lawCancelledDuring(t tester, mw middleware.Middleware) {
	t.Helper()
	for name, end := range map[string]func(context.Context) (*middleware.Response, error){
		"its context's error":      func(ctx context.Context) (*middleware.Response, error) { return nil, ctx.Err() },
		"a temporary error":        func(context.Context) (*middleware.Response, error) { return nil, modelError(503) },
		"invalid calls":            func(context.Context) (*middleware.Response, error) { return badCalls(1), nil },
		"neither answer nor error": func(context.Context) (*middleware.Response, error) { return nil, nil },
		"an error that asks to wait": func(context.Context) (*middleware.Response, error) {
			return nil, &middleware.ModelError{StatusCode: 429, RetryAfter: time.Hour, Err: errSample}
		},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		model := &spy{play: func(n int, ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
			if n == 1 {
				cancel()
			}
			return end(ctx)
		}}
		start := time.Now()
		ask(t, ctx, mw(model.call), sample(question()))
		if took := time.Since(start); took > atOnce {
			t.Errorf("cancelled while the model returned %s: the call took another %v", name, took)
		}
		if n := model.count(); n > 1 {
			t.Errorf("cancelled while the model returned %s: the model was asked %d times more", name, n-1)
		}
		cancel()
	}
}
