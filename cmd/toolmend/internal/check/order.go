package check

import (
	"context"
	"iter"
	"runtime"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
)

// job is a line in the queue of inOrder.
type job struct {
	line recorded.Line
	done chan lineResult // buffered, so that a worker never waits for take
}

// inOrder processes lines on all processors and calls take in the order of the
// lines. It holds at most a few lines for each processor. It returns after the last
// line, or at once when ctx ends. Errors in place of a line are passed to take too.
func inOrder(ctx context.Context, lines iter.Seq2[recorded.Line, error], look func(recorded.Line) lineResult, take func(lineResult)) {
	workers := runtime.GOMAXPROCS(0)
	work, queue := make(chan job), make(chan job, 4*workers)
	for range workers {
		go func() {
			for j := range work {
				j.done <- look(j.line)
			}
		}()
	}
	go feed(ctx, lines, work, queue)
	for {
		select {
		case <-ctx.Done():
			return // lines may be blocked on standard input: do not wait for it
		case j, more := <-queue:
			if !more {
				return
			}
			take(<-j.done)
		}
	}
}

// feed sends each line to queue, in order, and to a worker. It goes to the queue first:
// the queue is bounded, and so it is what holds the reader back when a line takes long.
func feed(ctx context.Context, lines iter.Seq2[recorded.Line, error], work, queue chan<- job) {
	defer close(queue)
	defer close(work)
	for line, err := range lines {
		j := job{line, make(chan lineResult, 1)}
		if err != nil {
			j.done <- lineResult{err: err}
		}
		select {
		case queue <- j:
		case <-ctx.Done():
			return
		}
		if err == nil {
			work <- j // workers always receive again
		}
	}
}
