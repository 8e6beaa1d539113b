package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// target is a server that answers model calls, and what was measured on it.
type target struct {
	command // starts another one
	*process
	validates bool // it asks again after an invalid call
	tls       bool // its upstream speaks HTTP/2 over TLS
	some      bool // only some rows go through it

	figures []figures // one for each of bench.rows
	idle    int64     // resident bytes after the load
	loaded  int64     // resident bytes with open streams; 0 is unknown
	startUp time.Duration
	size    int64 // of the binary, of the gateway alone
}

// The indexes of two targets of every run.
const (
	direct    = 0 // the mock itself
	reference = 1 // the ReverseProxy that the others are compared with
)

// bench is one run.
type bench struct {
	settings
	targets []*target
	clients []*client
	rows    []row
	copies  string       // a folder; see copyOf
	number  atomic.Int64 // of the last request
}

// open starts the servers and makes the clients.
func (b *bench) open(ctx context.Context) error {
	secure, err := freeAddress()
	if err != nil {
		return err
	}
	mock, err := role(roleMock, b.gap.String(), secure)
	if err != nil {
		return err
	}
	mock.name = "direct"
	b.targets = []*target{{command: mock}}
	if b.targets[direct].process, err = start(ctx, mock); err != nil {
		return err
	}
	authority := filepath.Join(b.copies, "certificate.pem")
	certified := httptest.NewTLSServer(nil) // all servers of httptest have one certificate
	certified.Close()
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}), 0o600); err != nil {
		return err
	}
	b.rows = slices.DeleteFunc(rows(b.settings.clients, b.crowd), func(r row) bool { return !b.selects(r.name) || r.tls && !trustsFiles })
	var secured, unusual bool
	for _, r := range b.rows {
		secured, unusual = secured || r.tls, unusual || r.every
	}
	plain := "http://" + b.targets[direct].address
	for _, upstream := range []string{plain, "https://" + secure} {
		tls := upstream != plain
		if tls && !secured {
			continue
		}
		proxy, errProxy := b.copied(roleProxy, upstream)
		proxy.name = "httputil.ReverseProxy"
		handler, errHandler := b.copied(roleHandler, upstream)
		handler.name = "transport.Handler"
		if err := errors.Join(errProxy, errHandler); err != nil {
			return err
		}
		if b.profile != "" {
			args := handler.args
			handler.args = func(address string) []string { return append(args(address), b.profile) }
		}
		all := []*target{{command: proxy}, {command: handler, validates: true, some: true}}
		for _, build := range []struct{ name, file, binary string }{{"toolmend serve", "gateway", b.gateway}, {"base: toolmend serve", "base", b.base}} {
			if build.binary == "" {
				continue
			}
			info, errInfo := os.Stat(build.binary)
			enforcing, errEnforcing := b.copyOf(build.binary, build.file)
			observing, errObserving := b.copyOf(build.binary, build.file+"-observe")
			if err := errors.Join(errInfo, errEnforcing, errObserving); err != nil {
				return err
			}
			all = append(all, &target{command: gateway(build.name, enforcing, upstream, "enforce"), validates: true, size: info.Size()},
				&target{command: gateway(build.name+", observe", observing, upstream, "observe"), some: true, size: info.Size()})
		}
		for _, t := range all {
			if t.some && (tls || !unusual) {
				continue
			}
			if t.tls, t.authority = tls, ""; tls {
				t.authority = authority
			}
			if t.process, err = start(ctx, t.command); err != nil {
				return err
			}
			b.targets = append(b.targets, t)
		}
	}
	for range max(b.settings.clients, b.crowd) {
		b.clients = append(b.clients, newClient())
	}
	return nil
}

// trustsFiles reports whether SSL_CERT_FILE names the certificates that a process trusts.
const trustsFiles = runtime.GOOS != "darwin" && runtime.GOOS != "windows"

// copied is role with a file of its own.
func (b *bench) copied(name string, args ...string) (command, error) {
	c, err := role(name, args...)
	if err == nil {
		c.binary, err = b.copyOf(c.binary, name)
	}
	return c, err
}

// copyOf copies a program for one process. Processes that run from one file share its
// pages in the caches of the processor: a ReverseProxy in the file of the clients and
// the mock, which are always warm, took an eighth less processor time.
func (b *bench) copyOf(binary, name string) (string, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(b.copies, name)
	if err != nil {
		return "", err
	}
	_, errWrite := f.Write(program)
	return f.Name(), errors.Join(errWrite, f.Chmod(0o700), f.Close())
}

// gateway is the command as a user runs it, without a configuration file.
func gateway(name, binary, upstream, mode string) command {
	return command{name: name, binary: binary, args: func(address string) []string {
		return []string{"serve", "--upstream", upstream, "--mode", mode, "--listen", address}
	}}
}

// checkCalls counts the model calls that a request through each target makes:
// one for a valid answer, and more for an invalid one if the target validates. A
// target that lets invalid calls through would measure well, and do nothing.
func (b *bench) checkCalls(ctx context.Context) error {
	c := b.clients[0]
	for _, t := range b.targets[reference:] {
		do := func(x exchange) func() error {
			return func() error { _, err := c.do(ctx, t.address, &x, b.next(), nil, nil); return err }
		}
		for _, f := range formats {
			invalid := func() error { // a Handler answers with status 400 in the end
				resp, err := c.send(ctx, t.address, f.path, numbered(f.small(""), invalidNumber))
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				_, err = io.Copy(io.Discard, resp.Body)
				return err
			}
			for _, check := range []struct {
				name  string
				send  func() error
				again bool
			}{{"a valid call", do(f.whole()), false}, {"a valid call in a stream", do(f.stream(true)), false}, {"an invalid call", invalid, t.validates}} {
				calls, err := b.modelCalls(ctx, check.send)
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", t.name, f.name, check.name, err)
				}
				if calls > 1 != check.again {
					return fmt.Errorf("%s, %s: the upstream got %d requests for %s; a re-ask is expected: %t", t.name, f.name, calls, check.name, check.again)
				}
			}
		}
	}
	return nil
}

// modelCalls returns how many model calls of the mock send causes.
func (b *bench) modelCalls(ctx context.Context, send func() error) (int, error) {
	before, err := b.control(ctx, callsPath)
	if err != nil {
		return 0, err
	}
	if err := send(); err != nil {
		return 0, err
	}
	after, err := b.control(ctx, callsPath)
	return after - before, err
}

// control sends a request to the mock and returns the number in its answer, if
// there is one.
func (b *bench) control(ctx context.Context, path string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.targets[direct].address+path, nil)
	if err != nil {
		return 0, err
	}
	resp, err := b.clients[0].http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || len(text) == 0 {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// together runs f for each of the clients at once. The first error ends all.
func together(ctx context.Context, clients []*client, f func(ctx context.Context, i int, c *client) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			if err := f(ctx, i, c); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// next returns the number of a new request.
func (b *bench) next() int { return int(b.number.Add(1)) % invalidNumber }
