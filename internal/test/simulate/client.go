package simulate

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// client sends its exchanges, one after the other.
type client struct {
	world     *World
	number    int
	name, key string
	two       bool // HTTP/2 without TLS
	r         *rand.Rand
	exchanges []*exchange
	transport *http.Transport
	conns     []*conn
}

// patience is how long a client waits for anything.
const patience = 20 * time.Minute

// run sends the exchanges.
func (c *client) run() {
	c.renew()
	defer func() { c.transport.CloseIdleConnections() }()
	for _, x := range c.exchanges {
		time.Sleep(x.think)
		if c.world.isOver() {
			return
		}
		c.send(x)
		if x.does == doesReconnect || x.does == doesVanish {
			c.renew()
		}
		c.world.check(x)
	}
}

// renew leaves the connections.
func (c *client) renew() {
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
	c.transport = &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, IdleConnTimeout: time.Minute, DialContext: c.dial}
	if c.world.set.pressure {
		c.transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	}
	c.transport.Protocols.SetHTTP1(!c.two)
	c.transport.Protocols.SetUnencryptedHTTP2(c.two)
}

func (c *client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	to, err := c.world.net.dial(ctx, gatewayHost, c.two)
	if err == nil {
		c.world.mu.Lock()
		c.conns = append(c.conns, to.(*conn))
		c.world.mu.Unlock()
	}
	return to, err
}

// send sends an exchange, and reads the answer as its plan says.
func (c *client) send(x *exchange) {
	w := c.world
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o := outcome{start: time.Now()}
	leave := func() {
		w.mu.Lock()
		if o.gone.IsZero() {
			o.gone = time.Now()
			x.sum.gone = o.gone
		}
		w.mu.Unlock()
		cancel()
	}
	w.mu.Lock()
	x.began, x.sum.start = true, o.start
	w.mu.Unlock()
	switch x.does {
	case doesCancel:
		defer time.AfterFunc(x.after, leave).Stop()
	case doesVanish:
		defer time.AfterFunc(x.after, func() {
			w.mu.Lock()
			now := time.Now()
			all := c.conns
			c.conns = nil
			o.gone = now
			x.sum.gone = now
			w.mu.Unlock()
			for _, conn := range all {
				conn.silence(true)
			}
			time.AfterFunc(time.Minute, func() { // the process ends; the other side does not hear of it
				cancel()
				for _, conn := range all {
					_ = conn.Close()
				}
			})
		}).Stop()
	}
	path := x.format.whole
	if x.streams {
		path = x.format.stream
	}
	body := &upload{x: x, rest: x.body, r: rand.New(rand.NewPCG(w.seed, hash(x.tag))), ctx: ctx, done: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:7777/"+x.to.name+path, body)
	if err != nil {
		panic(err)
	}
	req.ContentLength = int64(len(x.body))
	if body.r.IntN(4) == 0 {
		req.ContentLength = -1
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Toolmend-Key", x.key)
	req.Header.Set("X-Toolmend-Client", x.tag)
	req.Header.Set("Authorization", "Bearer own-"+x.tag)
	resp, err := c.transport.RoundTrip(req)
	o.err = err
	if err == nil {
		o.status, o.header = resp.StatusCode, resp.Header
		o.body, o.err = c.read(x, resp.Body, leave)
		_ = resp.Body.Close()
		o.trailer = resp.Trailer
	}
	o.end = time.Now()
	w.mu.Lock()
	o.gone = x.sum.gone
	x.sum = o
	w.mu.Unlock()
}

// read reads a body.
func (c *client) read(x *exchange, body io.Reader, leave func()) (string, error) {
	var all []byte
	buf := make([]byte, 2048)
	if x.does == doesNotRead {
		wait := time.NewTimer(15 * time.Minute)
		select {
		case <-wait.C:
		case <-c.world.over:
			wait.Stop()
		}
		leave()
	}
	for {
		if x.does == doesReadLate {
			time.Sleep(upTo(c.r, 400*time.Millisecond))
		}
		n, err := body.Read(buf)
		all = append(all, buf[:n]...)
		if x.does == doesLeave && len(all) >= x.bytes {
			leave()
			return string(all), context.Canceled
		}
		if err == io.EOF {
			return string(all), nil
		}
		if err != nil {
			return string(all), err
		}
	}
}

// upload is the body of a request.
type upload struct {
	x    *exchange
	rest string
	r    *rand.Rand
	ctx  context.Context
	sent int
	done chan struct{} // closed by Close
	end  sync.Once
}

// Close ends a Read that waits.
func (u *upload) Close() error {
	u.end.Do(func() { close(u.done) })
	return nil
}

// Read returns the next part of the body.
func (u *upload) Read(p []byte) (int, error) {
	wait := time.Duration(0)
	switch u.x.does {
	case doesUpload:
		p = p[:min(len(p), max(1, len(u.x.body)/8))]
		wait = upTo(u.r, 3*time.Second)
	case doesStall:
		if p = p[:min(len(p), max(1, len(u.x.body)/2))]; u.sent > 0 {
			wait = time.Hour
		}
	}
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-u.done:
			return 0, net.ErrClosed
		case <-u.ctx.Done():
			return 0, u.ctx.Err()
		}
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	u.sent += n
	if len(u.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}
