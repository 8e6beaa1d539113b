package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// gatherDelay is how long copies gather for their worker. A worker for each would wake a
// thread for each. But what waits long leaves the processor's cache, and the collector
// marks it.
const gatherDelay = time.Millisecond

// queue holds items until a worker has time for them. Adding one never waits. A
// worker runs only while items wait, so an idle gateway has none. The fields at the
// top do not change.
type queue[T any] struct {
	work    func(T)       // must not panic
	workers int           // at one time
	items   int           // that wait at most, without those that workers have taken
	bytes   int64         // of the items that wait, at most
	delay   time.Duration // how long a worker lets items gather before it begins

	mu           sync.Mutex
	waiting      []queued[T] // the oldest first
	waitingBytes int64       // bytes of waiting
	running      int         // workers
	closed       bool
	idle         chan struct{} // closed by the last worker after close
}

// queued is an item that waits.
type queued[T any] struct {
	item T
	size int64 // in bytes
}

// add reports whether there was room for an item.
func (q *queue[T]) add(item T, size int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) >= q.items || q.waitingBytes+size > q.bytes {
		return false
	}
	q.waiting = append(q.waiting, queued[T]{item, size})
	q.waitingBytes += size
	if q.running < q.workers {
		q.running++
		time.AfterFunc(q.delay, q.run)
	}
	return true
}

// run works until nothing waits.
func (q *queue[T]) run() {
	for {
		item, ok := q.next()
		if !ok {
			return
		}
		q.work(item)
	}
}

// next returns the oldest item. Without one, the worker that asks for it ends.
func (q *queue[T]) next() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		if q.running--; q.running == 0 && q.closed {
			close(q.idle)
		}
		return item, false
	}
	first := q.waiting[0]
	q.waiting[0] = queued[T]{}
	q.waiting = q.waiting[1:]
	q.waitingBytes -= first.size
	return first.item, true
}

// close ends the adding of items, and waits until the workers have done all that is
// left. It returns false if that takes longer than wait: the workers go on then.
func (q *queue[T]) close(wait time.Duration) bool {
	q.mu.Lock()
	if !q.closed {
		q.closed, q.idle = true, make(chan struct{})
		if q.running == 0 {
			close(q.idle)
		}
	}
	q.mu.Unlock()
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-q.idle:
		return true
	case <-limit.C:
		return false
	}
}

// rest takes the items that no worker has taken.
func (q *queue[T]) rest() (items []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		items = append(items, w.item)
	}
	q.waiting, q.waitingBytes = nil, 0
	return items
}

// guarded calls f, which reports x after its end. A panic of f is counted and
// logged: the request has ended, so it must not end the process.
func guarded(m *metrics, log *slog.Logger, x *exchange, message string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			m.panics.Add(context.Background(), 1, x.where())
			if log != nil {
				log.Error(message, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
		}
	}()
	f()
}
