package agentloop

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

// CacheTools answers a call that was answered before, to the same tool with the
// same arguments byte for byte, with the same result, side value included. Of
// each tool it keeps the last n results, over all runs of the agent; errors and
// error results are not kept. It panics if n is not positive.
//
// It is for tools that only look something up. To cache some of them, give the
// others to an agent's Options without it, or wrap Tool.Func.
//
// Position: outside RetryTools and LimitTools, so that a known answer waits for
// neither; inside tooltrace.New, to see it.
func CacheTools(n int) ToolMiddleware {
	if n <= 0 {
		panic(fmt.Sprintf("agentloop: CacheTools: n must be positive, got %d", n))
	}
	return func(next ToolFunc) ToolFunc {
		c := &toolCache{size: n, entries: map[string]*list.Element{}}
		return func(ctx context.Context, call middleware.ToolCall) (Result, error) {
			key := call.Name + "\x00" + call.Arguments
			if r, ok := c.get(key); ok {
				return r, nil
			}
			r, err := next(ctx, call)
			if err == nil && !r.IsError {
				c.put(key, r)
			}
			return r, err
		}
	}
}

// toolCache keeps the results used last.
type toolCache struct {
	size int

	mu      sync.Mutex
	entries map[string]*list.Element // of cachedResult
	recent  list.List
}

type cachedResult struct {
	key    string
	result Result
}

func (c *toolCache) get(key string) (Result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.entries[key]
	if !ok {
		return Result{}, false
	}
	c.recent.MoveToFront(el)
	return el.Value.(cachedResult).result, true
}

func (c *toolCache) put(key string, r Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[key]; ok {
		c.recent.Remove(el)
	}
	c.entries[key] = c.recent.PushFront(cachedResult{key, r})
	if c.recent.Len() > c.size {
		oldest := c.recent.Remove(c.recent.Back()).(cachedResult)
		delete(c.entries, oldest.key)
	}
}

// LimitTools returns a ToolMiddleware that lets at most n calls to one tool run
// at once, over all runs of the Agent: for what cannot take more, such as a
// database. The others wait for their turn, as long as their context allows.
// Options.Parallel limits the tools of one run. It panics if n is less than 1.
//
// Position: Tool.Timeout covers the wait. Inside RetryTools a place is given
// back between attempts.
func LimitTools(n int) ToolMiddleware {
	if n < 1 {
		panic(fmt.Sprintf("agentloop: LimitTools: n must be at least 1, got %d", n))
	}
	return func(next ToolFunc) ToolFunc {
		places := make(chan struct{}, n)
		return func(ctx context.Context, call middleware.ToolCall) (Result, error) {
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
				return next(ctx, call)
			case <-ctx.Done():
				return Result{}, ctx.Err()
			}
		}
	}
}

// RetryTools returns a ToolMiddleware that runs a tool again when it failed
// with a transient error, by the rules of package retry: Options.If, Transient
// unless set. Never repeated are the errors of Abort and Suspend, a Result with
// IsError, and what comes once the context has ended. When no attempt is left,
// the model is told the last error of the tool. It panics if o.Validate fails.
//
// Only tools that may run twice belong under it; each run has the same
// CallInfo.Key.
//
// Position: Tool.Timeout covers all attempts together. Inside
// tooltrace.New, one span does too.
func RetryTools(o retry.Options) ToolMiddleware {
	transient := o.If
	if transient == nil {
		transient = retry.Transient
	}
	o.If = func(err error) bool {
		return !errors.As(err, new(*abortError)) && !errors.As(err, new(*suspendError)) && transient(err)
	}
	again := retry.New(o)
	return func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, call middleware.ToolCall) (Result, error) {
			var result Result
			var last error
			_, err := again(func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
				if result, last = next(ctx, call); last != nil {
					return nil, last
				}
				return &middleware.Response{}, nil
			})(ctx, &middleware.Request{})
			if err != nil && (ctx.Err() != nil || last == nil) {
				return result, err
			}
			return result, last
		}
	}
}
