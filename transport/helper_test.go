package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(closing{m}) }

// closing ends the idle connections of the proxies before leaks are looked for.
type closing struct{ m *testing.M }

func (c closing) Run() int {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return c.m.Run()
}

// upstream is a provider on the loopback that plays a script.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	got  []*http.Request
	body [][]byte
}

// serve plays one handler for each request, and fails the test where there are
// more or fewer requests.
func serve(t testing.TB, script ...http.HandlerFunc) *upstream {
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		n := len(u.got)
		u.got, u.body = append(u.got, r), append(u.body, body)
		u.mu.Unlock()
		if n >= len(script) {
			t.Errorf("request %d of %d", n+1, len(script))
			w.WriteHeader(http.StatusTeapot)
			return
		}
		script[n](w, r)
	}))
	t.Cleanup(func() {
		u.Close()
		require.Len(t, u.got, len(script), "requests")
	})
	return u
}

// answer is a handler that sends a whole body.
func answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// events is a handler that sends a stream at once.
func events(body string) http.HandlerFunc {
	return answer(http.StatusOK, body, "Content-Type", "text/event-stream")
}

// send writes and flushes.
func send(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
}

// doer is a client with a Transport somewhere in it.
type doer func(*http.Request) (*http.Response, error)

// shapes runs f with every way to put a Transport in front of a server; the
// second argument says where requests go.
func shapes(t *testing.T, f func(t *testing.T, with func(tr *transport.Transport, u *upstream) (doer, string))) {
	client := func(t *testing.T, base http.RoundTripper) *http.Client {
		c := &http.Client{Transport: base}
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	t.Run("hook", func(t *testing.T) {
		t.Parallel()
		f(t, func(tr *transport.Transport, u *upstream) (doer, string) {
			c := client(t, &http.Transport{})
			return func(r *http.Request) (*http.Response, error) { return tr.Hook(r, c.Do) }, u.URL
		})
	})
	t.Run("round tripper", func(t *testing.T) {
		t.Parallel()
		f(t, func(tr *transport.Transport, u *upstream) (doer, string) {
			return client(t, tr.RoundTripper(&http.Transport{})).Do, u.URL
		})
	})
	t.Run("handler", func(t *testing.T) {
		t.Parallel()
		f(t, func(tr *transport.Transport, u *upstream) (doer, string) {
			to, err := url.Parse(u.URL)
			require.NoError(t, err)
			proxy := httptest.NewServer(tr.Handler(to))
			t.Cleanup(proxy.Close)
			return client(t, &http.Transport{}).Do, proxy.URL
		})
	})
}

// toys is a Transport for the toy format.
func toys(mws ...middleware.Middleware) *transport.Transport {
	return toysWith(transport.Options{}, mws...)
}

func toysWith(o transport.Options, mws ...middleware.Middleware) *transport.Transport {
	o.Codecs = []wire.Codec{toy{}}
	return transport.New(o, mws...)
}

// hooked is a client of u with tr as its hook.
func hooked(t testing.TB, tr *transport.Transport) doer {
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	return func(r *http.Request) (*http.Response, error) { return tr.Hook(r, c.Do) }
}

var addTool = middleware.Tool{
	Name:       "add",
	Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
}

// ask is the body of a request in the toy format.
func ask(stream bool, tools ...middleware.Tool) string {
	b, _ := json.Marshal(toyRequest{Toy: true, Stream: stream, Request: middleware.Request{
		Messages: []middleware.Message{middleware.User("1 and 1?")}, Tools: tools,
	}})
	return string(b)
}

// post makes a request to the path /v1/toy.
func post(t testing.TB, ctx context.Context, url, body string, header ...string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/toy", bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// read reads and closes the body of an answer.
func read(t testing.TB, resp *http.Response) string {
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(b)
}

const (
	badCall  = `{"calls":[{"id":"c1","name":"add","arguments":"{}"}],"usage":{"input":10,"output":5},"end":true}`
	goodCall = `{"calls":[{"id":"c2","name":"add","arguments":"{\"n\":1}"}],"usage":{"input":20,"output":6},"end":true}`
	words    = `{"text":"two","end":true}`
)

// failing is a middleware that ends every step with err.
func failing(err error) middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			if _, e := next(ctx, req); e != nil {
				return nil, e
			}
			return nil, err
		}
	}
}

// around is a middleware made of a function.
func around(f func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error)) middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			return f(ctx, req, next)
		}
	}
}

type ctx = context.Context

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	c, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return c, cancel
}

// limited is a middleware that gives each model call a context of its own, and
// ends it when that has returned.
func limited(d time.Duration) middleware.Middleware {
	return around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return next(ctx, req)
	})
}

// edited returns body with new in the place of the first old, which must be there.
func edited(t testing.TB, body, old, new string) string {
	t.Helper()
	require.Contains(t, body, old)
	return strings.Replace(body, old, new, 1)
}
