package simulate

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// network connects clients, the gateway and the providers in memory. Bytes take a time that the
// seed decides, in nanoseconds that no two deliveries are likely to share: so one goroutine after the other
// becomes runnable, and a seed is nearly always the same run.
type network struct {
	seed uint64

	mu     sync.Mutex
	hosts  map[string]*host
	opened int
	conns  map[*conn]string // those that are open, and what they are for
}

// host is a listener and the faults of the way to it.
type host struct {
	name string
	net  *network
	two  bool // its connections carry HTTP/2

	mu     sync.Mutex
	queue  chan net.Conn
	dials  int
	closed bool
	ended  chan struct{}
	down   bool // connections are refused
	silent bool // nothing arrives, in either direction, and no connection is made
	cut    func(r *rand.Rand) int
}

func newNetwork(seed uint64) *network {
	return &network{seed: seed, hosts: map[string]*host{}, conns: map[*conn]string{}}
}

// listen adds a host. two tells that its connections carry HTTP/2, which has a flow control of its
// own: their buffers have no limit. A writer that waits while it holds a mutex would stop the
// time of synctest, as soon as another goroutine waits for the mutex.
func (n *network) listen(name string, two bool) *host {
	h := &host{name: name, net: n, two: two, queue: make(chan net.Conn, 64), ended: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[name] = h
	return h
}

// left lists the connections that are open.
func (n *network) left() (names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.conns {
		names = append(names, name)
	}
	return names
}

// connectTimeout is how long a dial to a silent host takes.
const connectTimeout = 5 * time.Second

// dial opens a connection to a host, by its name without the port. two also makes it one of HTTP/2.
func (n *network) dial(ctx context.Context, name string, two bool) (net.Conn, error) {
	n.mu.Lock()
	h := n.hosts[name]
	n.opened++
	serial := n.opened
	n.mu.Unlock()
	if h == nil {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	h.mu.Lock()
	h.dials++
	r := rand.New(rand.NewPCG(n.seed, hash(fmt.Sprint(name, h.dials))))
	h.mu.Unlock()
	wait := time.NewTimer(latency(r))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h.mu.Lock()
	silent, refused := h.silent, h.down || h.closed
	h.mu.Unlock()
	switch {
	case silent:
		late := time.NewTimer(connectTimeout)
		defer late.Stop()
		select {
		case <-late.C:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case refused:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	near, far := n.pair(fmt.Sprintf("%s #%d", name, serial), h, two || h.two, r)
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case h.queue <- far:
		return near, nil
	default:
		_, _ = near.Close(), far.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
}

// Accept returns the next connection.
func (h *host) Accept() (net.Conn, error) {
	select {
	case c := <-h.queue:
		return c, nil
	case <-h.ended:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. Connections that were not accepted are reset.
func (h *host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	h.closed = true
	close(h.ended)
	for {
		select {
		case c := <-h.queue:
			c.(*conn).reset()
		default:
			return nil
		}
	}
}

// Addr returns the name of the host.
func (h *host) Addr() net.Addr { return address(h.name) }

// set changes the faults of the way to h.
func (h *host) set(down, silent bool) {
	h.mu.Lock()
	h.down, h.silent = down, silent
	h.mu.Unlock()
	h.each(func(c *conn) { c.silence(silent) })
}

// resetAll resets all connections to h.
func (h *host) resetAll() { h.each((*conn).reset) }

func (h *host) each(f func(*conn)) {
	h.net.mu.Lock()
	var all []*conn
	for c := range h.net.conns {
		if c.host == h && c.first {
			all = append(all, c)
		}
	}
	h.net.mu.Unlock()
	sortConns(all)
	for _, c := range all {
		f(c)
	}
}

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) + ":7" }

// window is how many bytes a connection without HTTP/2 holds in one direction.
const window = 16 << 10

// conn is one end of a connection.
type conn struct {
	link   *link
	host   *host
	first  bool // the end that dialed
	serial int
	in     *way // what this end reads
	out    *way // what it writes
	local  address
	remote address

	closed      bool // link.mu
	read, write deadline
}

// link is a connection: two ends, and what is on the way.
type link struct {
	mu     sync.Mutex
	r      *rand.Rand
	wake   chan struct{} // closed at each change, and made anew
	broken bool          // reset: both ends see it at once
	silent bool
	most   int // bytes on one way; 0 means any number
	cutAt  int // bytes from the end that was dialed after which the link breaks; -1 means never
}

// way is one direction.
type way struct {
	pieces []piece
	bytes  int // of pieces
	last   time.Time
	ended  bool // no more is written: FIN
	endAt  time.Time
	gone   bool // the reader has closed its end
	total  int
}

// piece arrives at a time.
type piece struct {
	at   time.Time
	data []byte
}

type deadline struct{ at time.Time }

func (n *network) pair(name string, h *host, two bool, r *rand.Rand) (near, far *conn) {
	l := &link{r: r, wake: make(chan struct{}), cutAt: -1, most: window}
	if two {
		l.most = 0
	}
	h.mu.Lock()
	if h.cut != nil {
		l.cutAt = h.cut(r)
	}
	h.mu.Unlock()
	a, b := &way{}, &way{}
	near = &conn{link: l, host: h, first: true, in: a, out: b, local: "10.0.0.1", remote: address(h.name)}
	far = &conn{link: l, host: h, in: b, out: a, local: address(h.name), remote: "10.0.0.1"}
	n.mu.Lock()
	defer n.mu.Unlock()
	near.serial, far.serial = n.opened, n.opened
	n.conns[near], n.conns[far] = name+" near", name+" far"
	return near, far
}

func latency(r *rand.Rand) time.Duration {
	return time.Millisecond/2 + time.Duration(r.Int64N(int64(4*time.Millisecond)))
}

// changed wakes all that wait. The caller holds l.mu.
func (l *link) changed() {
	close(l.wake)
	l.wake = make(chan struct{})
}

// wait waits for a change, or until at. The caller holds l.mu, which is free meanwhile.
func (l *link) wait(at ...time.Time) {
	var next time.Time
	for _, t := range at {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	wake := l.wake
	l.mu.Unlock()
	defer l.mu.Lock()
	if next.IsZero() {
		<-wake
		return
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	}
}

func (d deadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

var errReset = os.NewSyscallError("read", syscall.ECONNRESET)

// Read reads what has arrived.
func (c *conn) Read(p []byte) (int, error) {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		now := time.Now()
		var next time.Time
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.read.over():
			return 0, os.ErrDeadlineExceeded
		case l.broken:
			return 0, errReset
		case len(p) == 0:
			return 0, nil
		case l.silent:
		case len(c.in.pieces) > 0:
			first := &c.in.pieces[0]
			if !now.Before(first.at) {
				n := copy(p, first.data)
				if first.data = first.data[n:]; len(first.data) == 0 {
					c.in.pieces = c.in.pieces[1:]
				}
				c.in.bytes -= n
				l.changed()
				return n, nil
			}
			next = first.at
		case c.in.ended:
			if !now.Before(c.in.endAt) {
				return 0, io.EOF
			}
			next = c.in.endAt
		}
		l.wait(next, c.read.at)
	}
}

// Write sends p in one to three pieces.
func (c *conn) Write(p []byte) (n int, err error) {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(p) {
		switch {
		case c.closed || c.out.ended:
			return n, net.ErrClosed
		case c.write.over():
			return n, os.ErrDeadlineExceeded
		case l.broken || c.out.gone && !l.silent:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		}
		rest := p[n:]
		if l.most > 0 {
			if room := l.most - c.out.bytes; room <= 0 {
				l.wait(c.write.at)
				continue
			} else if room < len(rest) {
				rest = rest[:room]
			}
		}
		for len(rest) > 0 {
			k := len(rest)
			if l.r.IntN(4) == 0 {
				k = 1 + l.r.IntN(k)
			}
			if !c.first && l.cutAt >= 0 && c.out.total+k > l.cutAt {
				k = l.cutAt - c.out.total
			}
			at := time.Now().Add(latency(l.r))
			if !at.After(c.out.last) {
				at = c.out.last.Add(time.Duration(1 + l.r.IntN(5000)))
			}
			c.out.last = at
			c.out.pieces = append(c.out.pieces, piece{at, append([]byte(nil), rest[:k]...)})
			c.out.bytes += k
			c.out.total += k
			n += k
			rest = rest[k:]
			if !c.first && l.cutAt >= 0 && c.out.total >= l.cutAt {
				time.AfterFunc(time.Until(at)+1, c.reset)
				l.cutAt = -1
			}
		}
		l.changed()
	}
	return n, nil
}

// Close sends the end. If bytes were not read, it is a reset, as of TCP.
func (c *conn) Close() error {
	c.host.net.mu.Lock()
	delete(c.host.net.conns, c)
	c.host.net.mu.Unlock()
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	if c.in.bytes > 0 && !l.silent {
		time.AfterFunc(latency(l.r), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.broken = !l.silent || l.broken; l.broken {
				l.changed()
			}
		})
	}
	c.finish()
	c.in.gone = true
	l.changed()
	return nil
}

// CloseWrite sends the end of what this side writes.
func (c *conn) CloseWrite() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.finish()
	c.link.changed()
	return nil
}

// finish ends the way out. The caller holds link.mu.
func (c *conn) finish() {
	if !c.out.ended {
		c.out.ended, c.out.endAt = true, time.Now().Add(latency(c.link.r))
		if c.out.endAt.Before(c.out.last) {
			c.out.endAt = c.out.last.Add(1)
		}
	}
}

// reset breaks the connection for both ends.
func (c *conn) reset() {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.link.broken = true
	c.link.changed()
}

// silence lets nothing arrive, or lets it arrive again.
func (c *conn) silence(on bool) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.link.silent = on
	c.link.changed()
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, &c.read, &c.write) }

// SetReadDeadline also ends a Read that waits.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.read) }

// SetWriteDeadline also ends a Write that waits.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.write) }

func (c *conn) setDeadlines(t time.Time, all ...*deadline) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	for _, d := range all {
		d.at = t
	}
	c.link.changed()
	return nil
}
