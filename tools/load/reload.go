package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// reloadGap makes streams last longer than the pause between two reloads.
const (
	reloadGap   = 100 * time.Millisecond
	reloadPause = 50 * time.Millisecond
)

// drill is the state of one run with reloads.
type drill struct {
	gateway     *process
	config      string // its file
	upstream    string
	terminated  atomic.Bool // SIGTERM was sent
	whole       atomic.Int64
	streams     atomic.Int64
	refused     atomic.Int64 // after SIGTERM, by a closed port
	mu          sync.Mutex
	failures    []error
	ended       time.Duration // from SIGTERM to the end of the process
	inTheMiddle atomic.Int64  // requests that were on their way at SIGTERM
}

// reload keeps the gateway busy, changes its configuration and sends it SIGHUP
// again and again, and then one SIGTERM. It fails if a request failed. Half of the clients send streams.
//
// A request that meets a closed port after SIGTERM was refused, which is not a
// failure: a load balancer sends it elsewhere. A request that breaks on a
// connection that was open before is one, as is an incomplete answer.
func reload(ctx context.Context, s settings, out io.Writer) (err error) {
	mock, err := role(roleMock, reloadGap.String())
	if err != nil {
		return err
	}
	upstream, err := start(ctx, mock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, upstream.stop()) }()
	dir, err := os.MkdirTemp("", "load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := drill{config: filepath.Join(dir, "gateway.toml"), upstream: "http://" + upstream.address}
	if err := d.configure(0); err != nil {
		return err
	}
	if d.gateway, err = start(ctx, command{name: "toolmend serve", binary: s.gateway, args: func(address string) []string {
		return []string{"serve", "--config", d.config, "--listen", address}
	}}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.gateway.stop()) }()

	var clients sync.WaitGroup
	for i := range s.clients {
		clients.Go(func() { d.load(ctx, i) })
	}
	err = d.signals(ctx, s.reloads)
	clients.Wait()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d reloads and a SIGTERM under load, %d clients: %d whole answers and %d streams came in full, %d requests failed.\n"+
		"%d requests were on their way at SIGTERM; the process ended %v later. %d requests met the closed port.\n",
		s.reloads, s.clients, d.whole.Load(), d.streams.Load(), len(d.failures), d.inTheMiddle.Load(), d.ended.Round(time.Millisecond), d.refused.Load())
	if len(d.failures) > 0 {
		const shown = 5
		return fmt.Errorf("%d requests failed, such as:\n%w\n\nthe gateway wrote:\n%s", len(d.failures), errors.Join(d.failures[:min(shown, len(d.failures))]...), d.gateway.output())
	}
	return nil
}

// configure writes the configuration of reload i. Successive ones have different
// modes, so that a reload changes how the next request is handled.
func (d *drill) configure(i int) error {
	modes := []string{"enforce", "repair", "observe"}
	text := fmt.Sprintf("mode = %q\n\n[[upstream]]\nurl = %q\n", modes[i%len(modes)], d.upstream)
	// A rename, because the gateway may still read the last one.
	if err := os.WriteFile(d.config+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(d.config+".new", d.config)
}

// signals sends all signals, and waits until the gateway has ended.
func (d *drill) signals(ctx context.Context, reloads int) error {
	defer d.terminated.Store(true) // so that the clients end, whatever happens
	tick := time.NewTicker(reloadPause)
	defer tick.Stop()
	for i := range reloads + 1 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.gateway.ended:
			return fmt.Errorf("%s ended after %d reloads: %v\n%s", d.gateway.name, i, d.gateway.err, d.gateway.output())
		case <-tick.C:
		}
		signal := syscall.SIGHUP
		if i == reloads {
			signal = syscall.SIGTERM
			d.terminated.Store(true)
		} else if err := d.configure(i + 1); err != nil {
			return err
		}
		if err := d.gateway.cmd.Process.Signal(signal); err != nil {
			return err
		}
	}
	told := time.Now()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(stopTimeout):
		return fmt.Errorf("%s did not end within %v after SIGTERM", d.gateway.name, stopTimeout)
	case <-d.gateway.ended:
	}
	if d.ended = time.Since(told); d.gateway.err != nil {
		return fmt.Errorf("%s ended with an error after SIGTERM: %w\n%s", d.gateway.name, d.gateway.err, d.gateway.output())
	}
	return nil
}

// load is client i. It sends one request after the other until one fails or is
// refused after SIGTERM.
func (d *drill) load(ctx context.Context, i int) {
	c := newClient()
	defer c.close()
	x, count := &wholeAnswer, &d.whole
	if i%2 == 1 {
		x, count = &callStream, &d.streams
	}
	send := func(ctx context.Context, address string, n int) (time.Duration, error) {
		return c.do(ctx, address, x, n, nil, nil)
	}
	for n := i; ctx.Err() == nil; n += 1000 {
		before := d.terminated.Load()
		_, opened, err := traced(ctx, d.gateway.address, n, send)
		after := d.terminated.Load()
		if !before && after {
			d.inTheMiddle.Add(1)
		}
		switch {
		case err == nil:
			count.Add(1)
		case after && opened == noConnection, before && opened == newConnection && cutOff(err):
			d.refused.Add(1)
			return
		default:
			d.fail(fmt.Errorf("%w (after SIGTERM: %t)", err, after))
			if after {
				return
			}
		}
	}
}

func (d *drill) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = append(d.failures, err)
}

// connection says which connection a request had.
type connection int

const (
	noConnection connection = iota
	newConnection
	usedConnection
)

// traced sends request n and says on which connection.
func traced(ctx context.Context, address string, n int, send func(context.Context, string, int) (time.Duration, error)) (took time.Duration, c connection, err error) {
	var mu sync.Mutex
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		mu.Lock()
		defer mu.Unlock()
		c = newConnection
		if info.Reused {
			c = usedConnection
		}
	}}
	took, err = send(httptrace.WithClientTrace(ctx, trace), address, n)
	mu.Lock()
	defer mu.Unlock()
	return took, c, err
}

// cutOff reports whether a connection ended without an answer. The kernel opens
// connections before a server accepts them, and resets those that it never does.
func cutOff(err error) bool {
	var network *net.OpError
	return errors.Is(err, io.EOF) || errors.As(err, &network)
}
