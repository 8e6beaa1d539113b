package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"time"
)

// measure runs everything and returns the figures.
func measure(ctx context.Context, s settings) (r *report, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(lazyGC))
	b := &bench{settings: s}
	if b.copies, err = os.MkdirTemp("", "load-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.copies)
	defer func() {
		for _, t := range b.targets {
			if t.process == nil {
				continue
			}
			if text := t.output(); err != nil && text != "" {
				err = fmt.Errorf("%w\n\n%s wrote:\n%s", err, t.name, text)
			}
			err = errors.Join(err, t.stop())
		}
		for _, c := range b.clients {
			c.close()
		}
	}()
	machine := describeMachine()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	if err := b.checkCalls(ctx); err != nil {
		return nil, err
	}
	if err := b.measureRows(ctx); err != nil {
		return nil, err
	}
	for name, measure := range map[string]func(context.Context) error{rowMemory: b.measureMemory, rowStart: b.measureStartUp} {
		if !s.selects(name) {
			continue
		}
		if err := measure(ctx); err != nil {
			return nil, err
		}
	}
	return &report{settings: s, machine: machine, targets: b.targets, rows: b.rows}, nil
}

// figures are the results of one target in one row, by block.
type figures struct {
	took  times // until the first text of a stream, or the end of a whole answer
	rates rates
	costs rates // processor time of its process for a request, in µs; 0 is unknown
}

// measureRows keeps one target at a time busy, each client sending its next request when it has the
// answer to its last. A block is one phase of each target, in random order, so that whatever else
// the machine does hits all targets alike. The first block warms up and does not count.
func (b *bench) measureRows(ctx context.Context) error {
	for i := range b.rows {
		r := &b.rows[i]
		var in []*target
		requests := map[*target][]func(int) []byte{}
		for _, t := range b.targets {
			t.figures = append(t.figures, figures{})
			if t.tls != r.tls || t.some && !r.every {
				continue
			}
			in = append(in, t)
			for range r.clients {
				if next := r.requests; next != nil {
					requests[t] = append(requests[t], next())
				}
			}
		}
		for block := range b.blocks + 1 {
			for _, at := range rand.Perm(len(in)) {
				if err := b.saturate(ctx, in[at], r, i, requests[in[at]], block > 0); err != nil {
					return fmt.Errorf("%s, %s: %w", r.name, in[at].name, err)
				}
			}
		}
	}
	return nil
}

// saturate sends requests of row i to t for one phase.
func (b *bench) saturate(ctx context.Context, t *target, r *row, i int, requests []func(int) []byte, counts bool) error {
	took := make([][]time.Duration, r.clients)
	before, began := t.processorTime(), time.Now()
	err := together(ctx, b.clients[:r.clients], func(ctx context.Context, at int, c *client) error {
		for len(took[at]) == 0 || time.Since(began) < b.phase {
			n := b.next()
			var body []byte
			if requests != nil {
				body = requests[at](n)
			}
			d, err := c.do(ctx, t.address, &r.exchange, n, body, nil)
			if err != nil {
				return err
			}
			took[at] = append(took[at], d)
		}
		return nil
	})
	if err != nil || !counts {
		return err
	}
	passed, all := time.Since(began), slices.Concat(took...)
	f := &t.figures[i]
	f.took = append(f.took, all)
	f.rates = append(f.rates, float64(len(all))/passed.Seconds())
	f.costs = append(f.costs, float64((t.processorTime()-before).Microseconds())/float64(len(all)))
	return nil
}
