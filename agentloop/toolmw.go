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

// CacheTools returns a ToolMiddleware that stores results. A call to the
// same tool with the same arguments, byte for byte, gets the stored result,
// with its side value. CacheTools stores the last n results of each tool,
// over all runs of the agent. It does not store errors and error results. It
// panics if n is not positive.
//
// Use it for tools that only read. To cache only some of the tools, wrap
// their Tool.Func instead.
//
// Position: outside RetryTools and LimitTools, so that a stored result does
// not wait. Inside tooltrace.New, so that the span covers it.
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

// LimitTools returns a ToolMiddleware that runs at most n calls to one tool
// concurrently, over all runs of the Agent. Other calls wait until their
// context ends. Use it for a tool whose backend, such as a database, takes
// only so many calls. Options.Parallel limits the tools of one run.
// LimitTools panics if n is not positive.
//
// Position: inside RetryTools, so that a call does not occupy its place
// between attempts. Tool.Timeout includes the wait.
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

// RetryTools returns a ToolMiddleware that retries a tool after a transient
// error, as package retry retries a model call. Options.If decides which
// errors are retried; nil means retry.Transient. The errors of Abort and
// Suspend, a Result with IsError, and errors after the end of the context
// are never retried. After the last attempt the model gets the tool's last
// error. RetryTools panics if o.Validate fails.
//
// Use it only for tools that may run twice. All attempts of a call have the
// same CallInfo.Key.
//
// Position: inside tooltrace.New, so that one span covers all attempts.
// Tool.Timeout includes all attempts.
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
