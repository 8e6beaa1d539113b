package middlewaretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// wrap makes a middleware of a function that gets next as an argument.
func wrap(f func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error)) middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			return f(next, ctx, req)
		}
	}
}

// lastWords is the text of the last message.
func lastWords(req *middleware.Request) string { return req.Messages[len(req.Messages)-1].Text() }

func retryOnce() middleware.Middleware {
	return wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		var tally middleware.Tally
		resp, err := tally.Call(ctx, next, req)
		if err != nil && ctx.Err() == nil {
			select {
			case <-time.After(time.Minute):
				resp, err = tally.Call(ctx, next, req)
			case <-ctx.Done():
				err = errors.Join(ctx.Err(), err)
			}
		}
		return tally.Finish(resp, err)
	})
}

func cache() middleware.Middleware {
	var mu sync.Mutex
	known := map[string]*middleware.Response{}
	return wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		// The model's name stands in for the many things a real key is made of.
		key := req.Model + lastWords(req)
		mu.Lock()
		hit := known[key]
		mu.Unlock()
		if hit != nil {
			return hit.Clone(), nil
		}
		resp, err := next(ctx, req)
		if err == nil && resp != nil {
			mu.Lock()
			known[key] = resp.Clone()
			mu.Unlock()
		}
		return resp, err
	})
}

func appendText() middleware.Middleware {
	return wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		resp, err := next(ctx, req)
		if err != nil || resp == nil {
			return nil, err
		}
		out := resp.Clone()
		out.Message.Parts = append(out.Message.Parts, middleware.Part{Text: " -- as an answer."})
		return out, nil
	})
}

// reask answers every call of a turn that holds a bad one, and asks again.
func reask(attempts int) middleware.Middleware {
	return wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		var tally middleware.Tally
		for n := 1; ; n++ {
			resp, err := tally.Call(ctx, next, req)
			if err != nil || n == attempts || ctx.Err() != nil || wellFormed(resp.Message.ToolCalls) {
				return tally.Finish(resp, err)
			}
			turn := resp.Message.Clone()
			var replies []middleware.Message
			for i := range turn.ToolCalls {
				c := &turn.ToolCalls[i]
				c.ID = fmt.Sprintf("made_%d_%d", len(req.Messages), i)
				if !isObject(c.Arguments) {
					c.Arguments = "{}"
				}
				replies = append(replies, middleware.ToolReply(*c, "not executed: a call of this turn is invalid"))
				replies[i].IsError = true
			}
			req = req.With(turn).With(replies...)
		}
	})
}

func wellFormed(calls []middleware.ToolCall) bool {
	for _, c := range calls {
		if !isObject(c.Arguments) || c.Name != "weather" && c.Name != "note" || strings.Contains(c.Arguments, "many") || c.ID == "" {
			return false
		}
	}
	return true
}

func TestRunPasses(t *testing.T) {
	t.Parallel()
	for name, mw := range map[string]middleware.Middleware{
		"identity": wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			return next(ctx, req)
		}),
		"nothing":    middleware.Chain(),
		"retry once": retryOnce(),
		"cache":      cache(),
		"appends":    appendText(),
		"asks again": reask(3),
		"adds system": wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			return next(ctx, req.WithSystem("Answer in rhyme."))
		}),
		"falls back": wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			resp, err := next(ctx, req)
			if err == nil || ctx.Err() != nil {
				return resp, err
			}
			var tally middleware.Tally
			tally.Add(resp, err)
			second := req.Clone()
			second.Model = "another"
			if second.Sink != nil {
				first := req.Sink
				second.Sink = func(e middleware.Event) error { return first(e) }
			}
			return tally.Finish(tally.Call(ctx, func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				if req.Sink != nil {
					if err := req.Sink(middleware.Event{Kind: middleware.EventReset}); err != nil {
						return nil, err
					}
				}
				return next(ctx, req)
			}, second))
		}),
		"all of them": middleware.Chain(appendText(), cache(), reask(2), retryOnce()),
		"with a timeout": wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return next(ctx, req)
		}),
		"on another goroutine": wrap(func(next middleware.ModelCall, ctx context.Context, req *middleware.Request) (resp *middleware.Response, err error) {
			done := make(chan struct{})
			go func() { resp, err = next(ctx, req); close(done) }()
			<-done
			return resp, err
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Run(t, mw)
		})
	}
}
