package agentloop

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/toolmend/toolmend/middleware"
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
// neither; inside TraceTools, to see it.
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
