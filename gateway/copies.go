package gateway

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the copies of the mode Observe. Workers are few, so that validating
// takes no processor from the requests.
const (
	copiedBytes   = 128 << 20 // of all copies that grow or wait
	longestCopy   = 64 << 20  // of one body, unless Settings.MaxBody says less
	queuedCopies  = 256
	copyWorkers   = 2
	copyCloseWait = 5 * time.Second
)

// Why a copy was dropped.
const (
	droppedSize   = "size"   // a body is longer than MaxBody
	droppedMemory = "memory" // of all copies together
	droppedQueue  = "queue"  // the workers are behind
)

// copies holds the copies of all pipelines in the mode Observe, and the workers
// that validate them. A worker runs only while copies wait, so an idle gateway
// has none.
type copies struct {
	most    int64 // bytes
	metrics *metrics
	log     *slog.Logger
	held    atomic.Int64
	ctx     context.Context // of the workers
	stop    context.CancelFunc

	mu      sync.Mutex
	waiting []waiting
	workers int
	idle    chan struct{} // closed by the last worker after close has set it
	closed  bool
}

// waiting is a copy and the pipeline that validates it.
type waiting struct {
	*copied
	pipeline *pipeline
}

func newCopies(m *metrics, log *slog.Logger) *copies {
	c := &copies{most: copiedBytes, metrics: m, log: log}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// begin returns an empty copy for x.
func (s *copies) begin(x *exchange, maxBody int64) *copied {
	return &copied{x: x, copies: s, max: cmp.Or(maxBody, longestCopy)}
}

// reserve reports whether there is room for n more bytes, and takes it.
func (s *copies) reserve(n int64) bool {
	if s.held.Add(n) <= s.most {
		return true
	}
	s.held.Add(-n)
	return false
}

func (s *copies) release(n int64) { s.held.Add(-n) }

// queue hands c to a worker. A dropped copy, one that finds the queue full, and
// one of a request that was not sent are not validated: then the observers of p
// are told at once. queue does not wait.
func (s *copies) queue(c *copied, p *pipeline) {
	unsent := c.sent.IsZero() // the gateway has refused the request
	if !unsent && c.x.dropped == "" {
		if s.take(waiting{c, p}) {
			return
		}
		c.x.dropped = droppedQueue
	}
	s.giveUp(waiting{c, p})
}

// giveUp reports w without validating it.
func (s *copies) giveUp(w waiting) {
	w.free()
	if w.x.dropped != "" {
		s.metrics.drop("copy")
	}
	s.tell(w.x, w.pipeline)
}

// take reports whether there was room in the queue.
func (s *copies) take(w waiting) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.waiting) >= queuedCopies {
		return false
	}
	s.waiting = append(s.waiting, w)
	if s.workers < copyWorkers {
		s.workers++
		go s.work()
	}
	return true
}

// work validates copies until none waits.
func (s *copies) work() {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 {
			if s.workers--; s.workers == 0 && s.idle != nil {
				close(s.idle)
			}
			s.mu.Unlock()
			return
		}
		w := s.waiting[0]
		s.waiting[0] = waiting{}
		s.waiting = s.waiting[1:]
		s.mu.Unlock()
		w.pipeline.replay(s.ctx, w.copied)
		w.free()
		s.tell(w.x, w.pipeline)
	}
}

// tell tells the observers of p. A panic of one of them is logged and counted:
// the request has ended, so it must not end the process.
func (s *copies) tell(x *exchange, p *pipeline) {
	defer func() {
		if v := recover(); v != nil {
			s.metrics.panicked(x)
			if s.log != nil {
				s.log.Error("an exchange was observed and not reported", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
		}
	}()
	p.tell(x)
}

// close waits until the queue is empty, for at most copyCloseWait. Copies that
// wait longer are dropped.
func (s *copies) close() {
	defer s.stop()
	s.mu.Lock()
	s.closed = true
	if s.workers == 0 || s.idle != nil {
		s.mu.Unlock()
		return
	}
	s.idle = make(chan struct{})
	s.mu.Unlock()
	limit := time.NewTimer(copyCloseWait)
	defer limit.Stop()
	select {
	case <-s.idle:
	case <-limit.C:
		s.mu.Lock()
		late := s.waiting
		s.waiting = nil
		s.mu.Unlock()
		for _, w := range late {
			w.x.dropped = droppedQueue
			s.giveUp(w)
		}
	}
}
