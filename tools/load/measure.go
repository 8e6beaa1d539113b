package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"sync/atomic"
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
		for _, c := range slices.Concat(b.clients, b.crowd) {
			c.close()
		}
	}()
	machine := describeMachine()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{
		b.checkCalls, b.measureLatency, b.measureThroughput, b.measureFirstText, b.measureMemory, b.measureStartUp,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return &report{settings: s, machine: machine, targets: b.targets, loads: b.loads()}, nil
}

// interleave lets each client send one request to each target in each round, in
// random order, so that whatever else the machine does hits all targets alike.
// The first block warms up and does not count.
func (b *bench) interleave(ctx context.Context, rounds int, into func(*target) *times, send func(context.Context, *client, *target) (time.Duration, error)) error {
	for block := range b.blocks + 1 {
		took := make([][][]time.Duration, len(b.clients)) // by client and target
		err := together(ctx, b.clients, func(ctx context.Context, i int, c *client) error {
			took[i] = make([][]time.Duration, len(b.targets))
			for range rounds {
				for _, at := range rand.Perm(len(b.targets)) {
					d, err := send(ctx, c, b.targets[at])
					if err != nil {
						return fmt.Errorf("%s: %w", b.targets[at].name, err)
					}
					took[i][at] = append(took[i][at], d)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if block == 0 {
			continue
		}
		for at, t := range b.targets {
			var all []time.Duration
			for _, byTarget := range took {
				all = append(all, byTarget[at]...)
			}
			*into(t) = append(*into(t), all)
		}
	}
	return nil
}

func (b *bench) measureLatency(ctx context.Context) error {
	return b.interleave(ctx, b.rounds, func(t *target) *times { return &t.latency }, func(ctx context.Context, c *client, t *target) (time.Duration, error) {
		return c.whole(ctx, t.address, b.next())
	})
}

// measureFirstText takes a tenth of the rounds, because a stream lasts longer
// than its first text.
func (b *bench) measureFirstText(ctx context.Context) error {
	return b.interleave(ctx, max(b.rounds/10, 1), func(t *target) *times { return &t.firstText }, func(ctx context.Context, c *client, t *target) (time.Duration, error) {
		return c.stream(ctx, t.address, callStream, b.next(), nil)
	})
}

// load is what keeps one target at a time busy.
type load struct {
	name    string
	clients []*client
	send    func(ctx context.Context, c *client, address string, n int) error
}

// The indexes of bench.loads.
const (
	wholeLoad = iota
	textLoad
	callLoad
)

func (b *bench) loads() []load {
	streams := func(s stream) func(context.Context, *client, string, int) error {
		return func(ctx context.Context, c *client, address string, n int) error {
			_, err := c.stream(ctx, address, s, n, nil)
			return err
		}
	}
	return []load{
		{fmt.Sprintf("Whole answers of %d bytes with a call, %d clients", len(wholeAnswer), len(b.clients)), b.clients,
			func(ctx context.Context, c *client, address string, n int) error {
				_, err := c.whole(ctx, address, n)
				return err
			}},
		{fmt.Sprintf("Streams of %d bytes of text, %d clients", len(textStream.body), len(b.crowd)), b.crowd, streams(textStream)},
		{fmt.Sprintf("Streams of %d bytes that end with a call, %d clients", len(callStream.body), len(b.crowd)), b.crowd, streams(callStream)},
	}
}

// figures are the results of one target under one load.
type figures struct {
	rates rates
	costs rates // processor time of its process for a request, in µs, by block; 0 is unknown
}

// measureThroughput keeps one target at a time busy, each client sending its
// next request when it has the answer to its last. A block is one phase of each
// target, in random order.
func (b *bench) measureThroughput(ctx context.Context) error {
	for i, l := range b.loads() {
		for _, t := range b.targets {
			t.loads = append(t.loads, figures{})
		}
		for block := range b.blocks + 1 {
			for _, at := range rand.Perm(len(b.targets)) {
				t := b.targets[at]
				before := t.processorTime()
				n, took, err := b.saturate(ctx, t, l)
				if err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
				if f := &t.loads[i]; block > 0 {
					f.rates = append(f.rates, float64(n)/took.Seconds())
					f.costs = append(f.costs, float64((t.processorTime()-before).Microseconds())/float64(n))
				}
			}
		}
	}
	return nil
}

// saturate sends requests to t for one phase and returns how many.
func (b *bench) saturate(ctx context.Context, t *target, l load) (int, time.Duration, error) {
	var n atomic.Int64
	began := time.Now()
	err := together(ctx, l.clients, func(ctx context.Context, _ int, c *client) error {
		for time.Since(began) < b.phase {
			if err := l.send(ctx, c, t.address, b.next()); err != nil {
				return err
			}
			n.Add(1)
		}
		return nil
	})
	return int(n.Load()), time.Since(began), err
}
