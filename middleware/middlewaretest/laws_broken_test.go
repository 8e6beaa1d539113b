package middlewaretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// recorder is a test that only notes its failures.
type recorder struct {
	mu   sync.Mutex
	said []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// TestRunCatches: each broken middleware is caught by the law that it breaks,
// in words that say what is wrong.
func TestRunCatches(t *testing.T) {
	t.Parallel()
	type call = middleware.ModelCall
	type request = middleware.Request
	type response = middleware.Response
	cases := map[string]struct {
		law, says string
		mw        middleware.Middleware
	}{
		"changes a message": {"the caller's request is not changed", "request was changed", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				req.Messages[0] = middleware.System("mine")
				return next(ctx, req)
			})},
		"changes a call in the history": {"the caller's request is not changed", "request was changed", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				shallow := *req
				shallow.Messages[2].ToolCalls[0].Arguments = "{}"
				return next(ctx, &shallow)
			})},
		"sets a header": {"the caller's request is not changed", "request was changed", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				req.Header["X-Mine"] = []string{"1"}
				return next(ctx, req)
			})},
		"appends into spare room": {"the caller's request is not changed", "appended to the caller's slices", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				shallow := *req
				shallow.Messages = append(shallow.Messages, middleware.User("more"))
				return next(ctx, &shallow)
			})},
		"returns both": {"a response exactly when there is no error", "response true", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err != nil {
					resp = &response{}
				}
				return resp, err
			})},
		"returns neither": {"a response exactly when there is no error", "response false", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err != nil {
					return nil, nil
				}
				return resp, nil
			})},
		"trusts the model's contract": {"a response exactly when there is no error", "panics", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err != nil {
					return nil, err
				}
				_ = resp.Message // resp is nil where the model returned nothing
				return resp, nil
			})},
		"trusts it, in other words": {"a response exactly when there is no error",
			"; next had returned neither a response nor an error; middleware.Tally.Call makes that ErrNoResponse\n", wrap(
				func(next call, ctx context.Context, req *request) (*response, error) {
					resp, err := next(ctx, req)
					if err == nil {
						_ = resp.Message
					}
					return resp, err
				})},
		"retries without a tally": {"usage is never lost", "spent", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err != nil || len(resp.Message.ToolCalls) > 0 {
					return next(ctx, req)
				}
				return resp, err
			})},
		"counts twice": {"usage is never lost", "spent", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				var tally middleware.Tally
				resp, err := tally.Call(ctx, next, req)
				tally.Add(resp, err)
				return tally.Finish(resp, err)
			})},
		"drops the ledger of an error": {"usage is never lost", "the report says", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err != nil {
					return nil, errors.New(err.Error())
				}
				return resp, nil
			})},
		"sets the response's usage only": {"usage is never lost", "the response says", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				var tally middleware.Tally
				resp, err := tally.Call(ctx, next, req)
				if resp, err = tally.Finish(resp, err); err == nil {
					resp.Usage = middleware.Usage{}
				}
				return resp, err
			})},
		"hides the error": {"a model's error is found", "errors.Is does not find", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err != nil {
					return nil, fmt.Errorf("failed: %v", err)
				}
				return resp, nil
			})},
		"keeps the cause, drops the type": {"a model's error is found", "errors.As does not find", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err != nil {
					return nil, errors.Unwrap(err)
				}
				return resp, nil
			})},
		"drops a call": {"a valid answer comes out", "is missing", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err == nil && len(resp.Message.ToolCalls) > 1 {
					resp.Message.ToolCalls = resp.Message.ToolCalls[:1]
				}
				return resp, err
			})},
		"reverses the calls": {"a valid answer comes out", "out of order", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err == nil && len(resp.Message.ToolCalls) > 1 {
					c := resp.Message.ToolCalls
					c[0], c[1] = c[1], c[0]
				}
				return resp, err
			})},
		"formats valid arguments": {"a valid answer comes out", "changed", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err == nil {
					for i := range resp.Message.ToolCalls {
						c := &resp.Message.ToolCalls[i]
						c.Arguments = strings.ReplaceAll(c.Arguments, " ", "")
					}
				}
				return resp, err
			})},
		"replaces the text": {"a valid answer comes out", "the model said", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err == nil {
					resp.Message.Parts = nil
				}
				return resp, err
			})},
		"refuses everything": {"a valid answer comes out", "is lost", wrap(
			func(call, context.Context, *request) (*response, error) { return nil, errors.New("no") })},
		"starts a context of its own": {"the context is passed on", "a value of the caller's context", wrap(
			func(next call, _ context.Context, req *request) (*response, error) {
				return next(context.Background(), req)
			})},
		"detaches the context": {"the context is passed on", "the cancellation", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				return next(context.WithoutCancel(ctx), req)
			})},
		"waits before it asks": {"a cancelled context ends the call", "took", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				<-time.After(time.Minute)
				return next(ctx, req)
			})},
		"renames cancellation": {"a cancelled context ends the call", "not context.Canceled", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				if ctx.Err() != nil {
					return nil, errors.New("stopped")
				}
				return next(ctx, req)
			})},
		"retries a cancelled call": {"a cancelled context ends the call", "asked 2 times", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err != nil {
					return next(ctx, req)
				}
				return resp, nil
			})},
		"asks on after cancellation": {"no model call after cancellation", "1 times more", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err != nil && ctx.Err() != nil && !errors.Is(err, context.Canceled) {
					return next(ctx, req)
				}
				return resp, err
			})},
		"waits on after cancellation": {"no model call after cancellation", "another", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if me := (*middleware.ModelError)(nil); errors.As(err, &me) {
					<-time.After(me.RetryAfter)
				}
				return resp, err
			})},
		"streams both attempts": {"a sink sees one attempt at a time", "2 attempts", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				var tally middleware.Tally
				resp, err := next(ctx, req)
				tally.Add(resp, err)
				if err != nil {
					resp, err = next(ctx, req)
					tally.Add(resp, err)
				}
				return tally.Finish(resp, err)
			})},
		"swallows the sink's error": {"a sink's error ends the step", "the sink failed", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				c := req.Clone()
				if req.Sink != nil {
					c.Sink = func(e middleware.Event) error { _ = req.Sink(e); return nil }
				}
				return next(ctx, c)
			})},
		"asks again without replies": {"requests sent on are accepted", "refuses", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err == nil && resp != nil && len(resp.Message.ToolCalls) > 0 {
					return next(ctx, req.With(resp.Message, middleware.User("again")))
				}
				return resp, err
			})},
		"echoes rubbish": {"requests sent on are accepted", "not a JSON object", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				resp, err := next(ctx, req)
				if err == nil && resp != nil && len(resp.Message.ToolCalls) > 0 {
					again := req.With(resp.Message)
					for _, c := range resp.Message.ToolCalls {
						again.Messages = append(again.Messages, middleware.ToolReply(c, "no"))
					}
					return next(ctx, again)
				}
				return resp, err
			})},
		"puts system messages last": {"requests sent on are accepted", "gemini refuses", wrap(
			func(next call, ctx context.Context, req *request) (*response, error) {
				return next(ctx, req.With(middleware.System("Mind the units.")))
			})},
		"keeps the first model": {"one value serves many models", "the model said", keepsFirstModel()},
		"panics":                {"works inside a chain", "panics: oh", wrap(func(call, context.Context, *request) (*response, error) { panic("oh") })},
		"mixes up callers":      {"one value serves many goroutines", "the model said", mixesUpCallers()},
	}
	tried := map[string]bool{}
	for _, tc := range cases {
		tried[tc.law] = true
	}
	for _, l := range laws {
		require.True(t, tried[l.name], "no middleware here breaks the law that %s", l.name)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{}
				for _, l := range laws {
					if l.name == tc.law {
						l.check(r, tc.mw)
					}
				}
				require.NotEmpty(t, r.said, "the law has to find it")
				require.Contains(t, strings.Join(r.said, "\n"), tc.says)
			})
		})
	}
}

// TestAskBlamesTheRightOne: a panic is laid to next only if next was the last
// to break its contract.
func TestAskBlamesTheRightOne(t *testing.T) {
	t.Parallel()
	const blame = "next had returned neither"
	panics := wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		_, _ = next(ctx, req)
		panic("oh")
	})
	for _, s := range scenes {
		r := &recorder{}
		_, _, ok := ask(r, t.Context(), panics((&spy{play: s.play}).call), sample(question()))
		require.False(t, ok)
		require.Len(t, r.said, 1)
		require.Contains(t, r.said[0], "panics: oh")
		require.Equal(t, s.name == "returns nothing", strings.Contains(r.said[0], blame), s.name)
	}
}

// keepsFirstModel remembers the first next in the value.
func keepsFirstModel() middleware.Middleware {
	var first middleware.ModelCall
	return func(next middleware.ModelCall) middleware.ModelCall {
		if first == nil {
			first = next
		}
		return first
	}
}

// mixesUpCallers keeps a call's request in the value, where another finds it.
func mixesUpCallers() middleware.Middleware {
	var mu sync.Mutex
	var first *middleware.Request
	return wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		mu.Lock()
		if first == nil {
			first = req
		}
		mu.Unlock()
		return next(ctx, first)
	})
}
