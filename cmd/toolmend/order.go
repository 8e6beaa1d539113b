package main

import (
	"context"
	"io"
	"runtime"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
)

// job is a line on its way through inOrder.
type job struct {
	line recorded.Line
	done chan found // has room for the answer, so that a worker never waits for its turn
}

// inOrder looks at lines on all processors and takes what was found in the
// order of the lines. At most a few lines for each processor are held at a
// time. It returns when next returned io.EOF, or at once when ctx ends; other
// errors of next are taken like a line.
func inOrder(ctx context.Context, next func() (recorded.Line, error), look func(recorded.Line) found, take func(found)) {
	workers := runtime.GOMAXPROCS(0)
	work, queue := make(chan job), make(chan job, 4*workers)
	for range workers {
		go func() {
			for j := range work {
				j.done <- look(j.line)
			}
		}()
	}
	go feed(ctx, next, work, queue)
	for {
		select {
		case <-ctx.Done():
			return // next may be waiting for a person to type: leave it behind
		case j, more := <-queue:
			if !more {
				return
			}
			take(<-j.done)
		}
	}
}

// feed puts each line into queue, in order, and gives it to a worker.
func feed(ctx context.Context, next func() (recorded.Line, error), work, queue chan<- job) {
	defer close(queue)
	defer close(work)
	for {
		line, err := next()
		if err == io.EOF {
			return
		}
		j := job{line, make(chan found, 1)}
		if err != nil {
			j.done <- found{err: err}
		}
		select {
		case queue <- j:
		case <-ctx.Done():
			return
		}
		if err == nil {
			work <- j // workers always come back for more
		}
	}
}
