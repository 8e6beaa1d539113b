package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Bounds of the copies of the mode Observe. Workers are few, so that validating
// takes no processor from the requests.
const (
	copiedBytes   = 128 << 20 // of all copies that grow or wait
	longestCopy   = 64 << 20  // of one body, unless Settings.MaxBody is less
	queuedCopies  = 256
	copyWorkers   = 2
	copyCloseWait = 5 * time.Second
)

// Why a copy was dropped.
const (
	droppedSize   = "size"   // a body is longer than MaxBody
	droppedMemory = "memory" // of all copies together
	droppedQueue  = "queue"  // the workers are too slow
)

// copies holds the copies of all pipelines in the mode Observe, and the workers
// that validate them.
type copies struct {
	most     int64 // bytes
	metrics  *metrics
	log      *slog.Logger
	reserved atomic.Int64
	ctx      context.Context // of the workers
	stop     context.CancelFunc
	waiting  *queue[waiting]
}

// waiting is a copy and the pipeline that validates it.
type waiting struct {
	*copied
	pipeline *pipeline
}

func newCopies(m *metrics, log *slog.Logger) *copies {
	c := &copies{most: copiedBytes, metrics: m, log: log}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.waiting = &queue[waiting]{work: c.validate, workers: copyWorkers, items: queuedCopies, delay: gatherDelay}
	return c
}

// begin returns an empty copy for x.
func (s *copies) begin(x *exchange, maxBody int64) *copied {
	return &copied{x: x, copies: s, max: cmp.Or(maxBody, longestCopy)}
}

// reserve reports whether there is room for n more bytes, and takes it.
func (s *copies) reserve(n int64) bool {
	if s.reserved.Add(n) <= s.most {
		return true
	}
	s.reserved.Add(-n)
	return false
}

func (s *copies) release(n int64) { s.reserved.Add(-n) }

// queue gives c to a worker, and does not wait. If c was dropped, the queue is full, or the
// request was not sent, c is not validated: the observers of p are notified at once.
func (s *copies) queue(c *copied, p *pipeline) {
	unsent := c.sent.IsZero() // the gateway has refused the request
	if !unsent && c.x.dropped == "" {
		if s.waiting.add(waiting{c, p}, 0) { // reserve counts the bytes
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
		s.metrics.drop("copy", 1)
	}
	s.notify(w.x, w.pipeline)
}

// validate validates a copy.
func (s *copies) validate(w waiting) {
	w.pipeline.replay(s.ctx, w.copied)
	w.free()
	s.notify(w.x, w.pipeline)
}

// notify notifies the observers of p.
func (s *copies) notify(x *exchange, p *pipeline) {
	guarded(s.metrics, s.log, x, "an exchange was observed and not reported", func() { p.notify(x) })
}

// close waits until the queue is empty, for at most copyCloseWait. Copies that
// wait longer are dropped.
func (s *copies) close() {
	defer s.stop()
	if s.waiting.close(copyCloseWait) {
		return
	}
	for _, w := range s.waiting.rest() {
		w.x.dropped = droppedQueue
		s.giveUp(w)
	}
}
