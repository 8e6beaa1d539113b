package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// pipes is a listener without a network, so that time in a test is that of
// synctest.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	close func()
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.ended) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// drained is a server whose handler waits at /slow and in the middle of /stream.
type drained struct {
	*server
	srv     *http.Server
	pipes   *pipes
	release chan struct{}
}

func newDrained(t *testing.T) *drained {
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}, gateway.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	p := newPipes()
	d := &drained{pipes: p, release: make(chan struct{}), server: &server{gateway: g, log: slog.New(slog.DiscardHandler), listener: p}}
	d.config.DrainTimeout = gateway.Duration(30 * time.Second)
	d.srv = d.newServer(d.clients.around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stream":
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "begun ")
			_ = http.NewResponseController(w).Flush()
			<-d.release
		case "/slow":
			<-d.release
		case "/empty":
			return
		}
		_, _ = io.WriteString(w, "whole")
	})))
	go func() { _ = d.srv.Serve(p) }()
	return d
}

// client returns a client with connections of its own, and their number.
func (d *drained) client(t *testing.T, http2 bool) (c *http.Client, dials *int) {
	dials = new(int)
	tr := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case d.pipes.conns <- theirs:
			*dials++
			return ours, nil
		case <-d.pipes.ended:
			return nil, net.ErrClosed
		}
	}}
	tr.Protocols.SetHTTP1(!http2)
	tr.Protocols.SetUnencryptedHTTP2(http2)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}, dials
}

// ask returns the whole response, and whether the server has said that it closes
// the connection.
func ask(t *testing.T, c *http.Client, path string) (body string, closes bool) {
	resp, err := c.Get("http://gateway" + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b), resp.Close
}

// TestDrainLosesNoRequest holds that a client which sends its next request after
// the signal gets a response and is told to close the connection.
func TestDrainLosesNoRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDrained(t)
		idle, idleDials := d.client(t, false)
		two, twoDials := d.client(t, true)
		stream, streamDials := d.client(t, false)
		slow, _ := d.client(t, false)
		fresh, _ := d.client(t, false)
		for _, c := range []*http.Client{idle, two} {
			body, closes := ask(t, c, "/")
			require.Equal(t, "whole", body)
			require.False(t, closes)
		}
		begun, err := stream.Get("http://gateway/stream")
		require.NoError(t, err)
		require.False(t, begun.Close)
		slowly := make(chan bool, 1)
		go func() {
			body, closes := ask(t, slow, "/slow")
			slowly <- closes && body == "whole"
		}()
		synctest.Wait()

		stopped := make(chan bool, 1)
		go func() { stopped <- d.drain(d.srv) }()
		<-time.After(notice / 2)
		for _, path := range []string{"/", "/empty"} { // the second on a new connection
			_, closes := ask(t, idle, path)
			require.True(t, closes, path)
		}
		require.Equal(t, 2, *idleDials)
		for range 2 { // GOAWAY after the first
			body, _ := ask(t, two, "/")
			require.Equal(t, "whole", body)
		}
		require.Equal(t, 2, *twoDials)

		<-time.After(notice)
		_, err = fresh.Get("http://gateway/")
		require.ErrorIs(t, err, net.ErrClosed)
		<-time.After(10 * time.Second)
		require.Empty(t, stopped)
		close(d.release)
		require.True(t, <-slowly)
		rest, err := io.ReadAll(begun.Body)
		require.NoError(t, err)
		require.Equal(t, "begun whole", string(rest))
		<-time.After(notice / 2)
		_, closes := ask(t, stream, "/") // on the connection that was not told
		require.True(t, closes)
		require.Equal(t, 1, *streamDials)
		require.True(t, <-stopped)
	})
}

// TestDrainEnds holds that drain_timeout and a second signal cut requests off, but not a drain
// without requests.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a request": "/slow", "no request": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDrained(t)
				d.config.DrainTimeout = gateway.Duration(notice / 2)
				c, _ := d.client(t, false)
				if path == "" {
					_, _ = ask(t, c, "/")
				} else {
					go func() { _, _ = c.Get("http://gateway" + path) }()
				}
				synctest.Wait()
				began := time.Now()
				require.Equal(t, path == "", d.drain(d.srv))
				require.Equal(t, notice/2, time.Since(began))
				close(d.release)
			})
		})
	}
}

// TestDrainLeavesHijacked holds that a connection that switched protocols, such as
// a WebSocket, does not hold up the end.
func TestDrainLeavesHijacked(t *testing.T) {
	t.Parallel()
	d := departing{}
	wait := make(chan struct{})
	s := http.Server{Handler: d.around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			<-wait
			_ = conn.Close()
		}
	}))}
	p := newPipes()
	go func() { _ = s.Serve(p) }()
	defer s.Close()
	ours, theirs := net.Pipe()
	p.conns <- theirs
	_, err := io.WriteString(ours, "GET / HTTP/1.1\r\nHost: gateway\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadFull(ours, make([]byte, 12))
	require.NoError(t, err)
	require.Zero(t, d.open.Load())
	go func() { _, _ = io.Copy(io.Discard, ours) }()
	close(wait)
}
