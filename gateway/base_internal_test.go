package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRefusedConnections: the other side may be restarting, and nothing has been
// sent. Other errors end the attempt at once.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for name, c := range map[string]struct {
		limit  time.Duration
		err    error
		up     time.Duration // when the other side accepts; 0 means never
		cancel time.Duration
		min    time.Duration
		max    time.Duration
		ok     bool
	}{
		"comes up":         {10 * time.Second, refused, 3 * time.Second, 0, 3 * time.Second, 4 * time.Second, true},
		"stays down":       {10 * time.Second, refused, 0, 0, 9 * time.Second, 10 * time.Second, false},
		"on Windows":       {10 * time.Second, syscall.Errno(10061), 0, 0, 9 * time.Second, 10 * time.Second, false},
		"off":              {0, refused, time.Second, 0, 0, 0, false},
		"unreachable":      {10 * time.Second, syscall.EHOSTUNREACH, time.Second, 0, 0, 0, false},
		"the client hangs": {10 * time.Second, refused, 0, 2 * time.Second, 2 * time.Second, 2 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				d := dialer{refused: c.limit, dial: func(context.Context, string, string) (net.Conn, error) {
					if c.up > 0 && time.Since(begin) >= c.up {
						conn, _ := net.Pipe()
						return conn, nil
					}
					return nil, c.err
				}}
				ctx := t.Context()
				if c.cancel > 0 {
					limited, cancel := context.WithTimeout(ctx, c.cancel)
					defer cancel()
					ctx = limited
				}
				conn, err := d.DialContext(ctx, "tcp", "x:1")
				require.Equal(t, c.ok, conn != nil)
				if !c.ok {
					require.ErrorIs(t, err, c.err)
				}
				require.GreaterOrEqual(t, time.Since(begin), c.min)
				require.LessOrEqual(t, time.Since(begin), c.max)
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestIdle: only the time counts in which the upstream is silent.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: in}, nil
		})
		resp, err := (&idleLimit{time.Minute, base}).RoundTrip(httptest.NewRequest("GET", "/", nil))
		require.NoError(t, err)
		go func() {
			for range 3 {
				time.Sleep(59 * time.Second) // virtual
				_, _ = out.Write([]byte("x"))
			}
		}()
		buf := make([]byte, 1)
		for range 3 {
			_, err = resp.Body.Read(buf)
			require.NoError(t, err)
		}
		time.Sleep(time.Hour) // of the client
		begin := time.Now()
		_, err = resp.Body.Read(buf)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.ErrorContains(t, err, "timeouts.idle")
		require.Equal(t, time.Minute, time.Since(begin))
		require.NoError(t, resp.Body.Close())
	})
}

// TestIdlePasses: what has no body to watch is passed on as it is, and an error of
// a body is not called a timeout.
func TestIdlePasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resp  *http.Response
		err   error
		limit Duration
	}{
		"an error":      {nil, io.ErrUnexpectedEOF, 0},
		"no body":       {&http.Response{StatusCode: 204, Body: http.NoBody}, nil, 0},
		"an upgrade":    {&http.Response{StatusCode: 101, Body: io.NopCloser(iotestErr{})}, nil, 0},
		"without limit": {&http.Response{StatusCode: 200, Body: io.NopCloser(iotestErr{})}, nil, Off},
	} {
		body := io.ReadCloser(nil)
		if c.resp != nil {
			body = c.resp.Body
		}
		l := &idleLimit{c.limit.or(time.Minute), roundTripper(func(r *http.Request) (*http.Response, error) { return c.resp, c.err })}
		resp, err := l.RoundTrip(httptest.NewRequest("GET", "/", nil))
		require.Equal(t, c.err, err, name)
		if require.Equal(t, c.resp, resp, name); resp != nil {
			require.Equal(t, body, resp.Body, name)
		}
	}
	broken := errors.New("broken")
	l := &idleLimit{time.Minute, roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(iotestErr{broken})}, nil
	})}
	resp, err := l.RoundTrip(httptest.NewRequest("GET", "/", nil))
	require.NoError(t, err)
	_, err = resp.Body.Read(make([]byte, 1))
	require.Equal(t, broken, err)
}

// TestIdleInterrupts: closing the body of an http.Transport ends a Read of it, with
// HTTP/1 and with HTTP/2.
func TestIdleInterrupts(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, 2} {
		up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "first")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		up.EnableHTTP2 = version == 2
		up.StartTLS()
		defer up.Close()
		base := up.Client().Transport.(*http.Transport)
		req, err := http.NewRequest("GET", up.URL, nil)
		require.NoError(t, err)
		resp, err := (&idleLimit{50 * time.Millisecond, base}).RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, version, resp.ProtoMajor)
		got, err := io.ReadAll(resp.Body)
		require.Equal(t, "first", string(got))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, resp.Body.Close())
	}
}

type iotestErr struct{ err error }

func (e iotestErr) Read([]byte) (int, error) { return 0, e.err }

// TestPlaces: a request waits 5 s for a place, then gets 429 in its format. A
// place is free again after the response, also if the handler panicked.
func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var most, now atomic.Int32
		p := &places{limit: 2}
		h := p.around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			d, _ := time.ParseDuration(r.Header.Get("Takes"))
			time.Sleep(d)
			if r.Header.Get("Panics") != "" {
				panic(http.ErrAbortHandler)
			}
		}))
		ask := func(ctx context.Context, takes string, panics bool) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, "POST", "/v1/messages", nil)
			r.Header.Set("Takes", takes)
			if panics {
				r.Header.Set("Panics", "1")
			}
			w := httptest.NewRecorder()
			func() {
				defer func() { _ = recover() }()
				h.ServeHTTP(w, r)
			}()
			return w
		}
		for range 2 {
			go ask(t.Context(), "7s", true)
		}
		synctest.Wait()
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		require.Empty(t, ask(gone, "0s", false).Body.String(), "a client that has gone gets nothing")
		require.Equal(t, time.Second, time.Since(begin))
		w := ask(t.Context(), "0s", false)
		require.Equal(t, 6*time.Second, time.Since(begin))
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "5", w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), `"type":"rate_limit_error"`)
		require.Contains(t, w.Body.String(), "max_concurrent")
		w = ask(t.Context(), "0s", false)
		require.Equal(t, 7*time.Second, time.Since(begin), "waits until the first two end")
		require.Equal(t, http.StatusOK, w.Code)
		require.EqualValues(t, 2, most.Load())

		for range 4 { // the requests of the configuration before a reload count
			go ask(t.Context(), "2s", false)
		}
		synctest.Wait()
		require.EqualValues(t, 2, now.Load())
		p.resize(3)
		synctest.Wait()
		require.EqualValues(t, 3, now.Load())
		p.resize(1)
		time.Sleep(2*time.Second - 1)
		synctest.Wait()
		require.EqualValues(t, 3, now.Load(), "keep their places")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.EqualValues(t, 1, now.Load(), "the one that waited")
		go ask(t.Context(), "0s", false)
		p.resize(0)
		require.Equal(t, http.StatusOK, ask(t.Context(), "0s", false).Code)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Zero(t, p.taken)
		require.Empty(t, p.waiting)
	})
}

// TestPlacesSurviveAReload: an upstream keeps its places, with the new limit.
func TestPlacesSurviveAReload(t *testing.T) {
	t.Parallel()
	config := func(limit int) Config {
		return Config{Upstreams: []Upstream{{URL: "http://127.0.0.1:1", MaxConcurrent: limit}, {Name: "other", URL: "http://127.0.0.1:1", Prefix: "/b"}}}
	}
	g, err := New(config(2), Options{})
	require.NoError(t, err)
	defer g.Close()
	find := func(name string) *places { return g.state.Load().placesOf(name) }
	p, other := find("127.0.0.1:1"), find("other")
	require.Equal(t, []int{2, 0}, []int{p.limit, other.limit})
	p.enter()
	require.Error(t, g.Reload(config(-1)))
	require.Equal(t, 2, p.limit)
	require.NoError(t, g.Reload(config(1)))
	require.Same(t, p, find("127.0.0.1:1"))
	require.Same(t, other, find("other"))
	require.Equal(t, []int{1, 1}, []int{p.limit, p.taken})
}

// TestDurations: off is no limit, 0 the default.
func TestDurations(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Second, Duration(0).or(time.Second))
	require.Equal(t, time.Duration(0), Off.or(time.Second))
	require.Equal(t, time.Minute, Duration(time.Minute).or(time.Second))
	b := newBase(Timeouts{Header: Off}, nil)
	require.Zero(t, b.ResponseHeaderTimeout)
	require.EqualError(t, Timeouts{Idle: -5}.validate(), "gateway: timeouts: idle: must not be negative, got -5ns")
}

// pipes is a listener whose connections are made by dial. Nothing that the server writes to a
// stuck connection arrives.
type pipes struct {
	conns chan net.Conn
	stuck atomic.Bool
	dials atomic.Int32
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.dials.Add(1)
	p.conns <- &stuckConn{server, p, p.dials.Load()}
	return client, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

type stuckConn struct {
	net.Conn
	of *pipes
	n  int32
}

func (c *stuckConn) Write(p []byte) (int, error) {
	if c.of.stuck.Load() && c.n == 1 {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// TestStuckHTTP2: a connection that is stuck leaves the pool. Without pings, each request on it
// would wait for its own timeout.
func TestStuckHTTP2(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		p := &pipes{conns: make(chan net.Conn, 1)}
		up := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })}
		go func() { _ = up.Serve(p) }()
		base := newBase(Timeouts{}, nil)
		base.Protocols, base.DialContext = protocols, p.dial
		ask := func() (string, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
			require.NoError(t, err)
			resp, err := base.RoundTrip(req)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			return string(b), err
		}
		got, err := ask()
		require.NoError(t, err)
		require.Equal(t, "HTTP/2.0", got)
		p.stuck.Store(true)
		start := time.Now()
		_, err = ask()
		require.Error(t, err)
		require.Less(t, time.Since(start), time.Minute)
		got, err = ask()
		require.NoError(t, err)
		require.Equal(t, "HTTP/2.0", got)
		require.EqualValues(t, 2, p.dials.Load(), "a new connection")
		base.CloseIdleConnections()
		close(p.conns)
		require.NoError(t, up.Close())
	})
}
