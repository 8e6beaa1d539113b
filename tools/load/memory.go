package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// measureMemory opens many streams through one target after the other. The mock
// stops each stream in the middle of its tool call. So each has sent text, and a
// target that holds calls holds half of one.
func (b *bench) measureMemory(ctx context.Context) error {
	for _, t := range b.targets[reference:] {
		if t.tls {
			continue
		}
		if _, err := t.resident(); os.IsNotExist(err) {
			return nil // no /proc: the report says that it is unknown
		}
		if err := b.openStreams(ctx, t); err != nil {
			return fmt.Errorf("%s, %d streams: %w", t.name, b.streams, err)
		}
	}
	return nil
}

func (b *bench) openStreams(ctx context.Context, t *target) (err error) {
	if t.idle, err = t.resident(); err != nil {
		return err
	}
	if _, err := b.control(ctx, holdPath); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var shown, all sync.WaitGroup
	for range b.streams {
		shown.Add(1)
		all.Go(func() {
			once := sync.OnceFunc(shown.Done)
			defer once()
			c := newClient()
			defer c.close()
			if _, err := c.do(ctx, t.address, &callStream, b.next(), nil, once); err != nil {
				cancel(err)
			}
		})
	}
	shown.Wait()
	err = b.watch(ctx, t)
	if err != nil {
		cancel(err)
	}
	if _, errRelease := b.control(context.WithoutCancel(ctx), releasePath); errRelease != nil {
		cancel(errRelease)
	}
	all.Wait()
	return context.Cause(ctx)
}

// watch waits until the mock has stopped all streams, and then notes the most
// memory that t takes until settle is over. A target that ended a stream early
// would keep it waiting, so its time is limited.
func (b *bench) watch(ctx context.Context, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	wait := func() error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			return nil
		}
	}
	for held := 0; held < b.streams; {
		if err := wait(); err != nil {
			return err
		}
		var err error
		if held, err = b.control(ctx, heldPath); err != nil {
			return err
		}
	}
	for began := time.Now(); time.Since(began) < b.settle; {
		resident, err := t.resident()
		if err != nil {
			return err
		}
		t.loaded = max(t.loaded, resident)
		if err := wait(); err != nil {
			return err
		}
	}
	return nil
}

// measureStartUp starts each server some times more, in turn, and notes the
// median.
func (b *bench) measureStartUp(ctx context.Context) error {
	took := map[*target][]time.Duration{}
	for range b.starts {
		for _, t := range b.targets[reference:] {
			if t.tls {
				continue
			}
			p, err := start(ctx, t.command)
			if err != nil {
				return err
			}
			took[t] = append(took[t], p.startUp)
			if err := p.stop(); err != nil {
				return err
			}
			t.startUp = quantile(took[t], 0.5)
		}
	}
	return nil
}
