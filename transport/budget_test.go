package transport_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// provider is a client's next that answers without a network, and counts.
type provider struct {
	status int
	body   string
	calls  int
}

func (p *provider) do(req *http.Request) (*http.Response, error) {
	p.calls++
	return &http.Response{StatusCode: p.status, Header: http.Header{}, ContentLength: int64(len(p.body)),
		Body: io.NopCloser(bytes.NewReader([]byte(p.body))), Request: req}, nil
}

// try is the n-th try of an SDK's call.
func try(t *testing.T, n int, body string) *http.Request {
	return post(t, t.Context(), "http://127.0.0.1:1", body, "X-Stainless-Retry-Count", strconv.Itoa(n))
}

// TestBudgetOfOneRequest: each try of the client has the whole budget. Where a
// provider's error used it up, the client is told not to try again, unless the chain
// made no call of its own.
func TestBudgetOfOneRequest(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]struct {
		calls int
		retry string
	}{4: {4, "false"}, 5: {4, ""}, 3: {3, "false"}, 1: {1, ""}, middleware.Unlimited: {4, ""}} {
		synctest.Test(t, func(t *testing.T) {
			p := &provider{status: 529, body: `{"error":"busy"}`}
			tr := toysWith(transport.Options{MaxModelCalls: most}, quick(4))
			c, _ := transport.Watch(t.Context())
			for n := range 3 {
				resp, err := tr.Hook(try(t, n, ask(false)).WithContext(c), p.do)
				require.NoError(t, err)
				require.Equal(t, 529, resp.StatusCode)
				require.Equal(t, p.body, read(t, resp))
				require.Equal(t, want.retry, resp.Header.Get("X-Should-Retry"))
				require.Equal(t, want.calls*(n+1), p.calls)
			}
		})
	}
}

func TestBudgetOfOneStep(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{2: 2, -1: 30, 0: 10} {
		p := &provider{status: 200, body: words}
		many := around(func(c ctx, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
			for range 29 {
				if resp, err := next(c, req); err != nil {
					return resp, err
				}
			}
			return next(c, req)
		})
		resp, err := toysWith(transport.Options{MaxModelCalls: most}, many).Hook(try(t, 0, ask(false)), p.do)
		require.NoError(t, err)
		require.Equal(t, want, p.calls)
		if most < 0 {
			require.Equal(t, http.StatusOK, resp.StatusCode)
			continue
		}
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
		require.ErrorIs(t, transport.Cause(resp), transport.ErrModelCalls)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	c, call := transport.Watch(t.Context())
	require.Equal(t, middleware.Report{Final: -1}, call.Report())
	require.NoError(t, call.Err())
	p := &provider{status: 529}
	tr := toysWith(transport.Options{MaxModelCalls: 3})
	req := func(header ...string) *http.Request { return post(t, c, "http://127.0.0.1:1", ask(false), header...) }

	for n := range 2 { // a client that says nothing of its tries
		resp, err := tr.Hook(req(), p.do)
		require.NoError(t, err)
		require.Equal(t, 529, resp.StatusCode)
		require.Len(t, call.Report().Attempts, n+1, "the tries before are in the ledger")
		require.Error(t, call.Err())
	}
	p.status, p.body = 200, words
	_, err := tr.Hook(req(), p.do)
	require.NoError(t, err)
	require.NoError(t, call.Err())
	require.Len(t, call.Report().Attempts, 3)
	require.Equal(t, 2, call.Report().Final)

	_, err = tr.Hook(req(), p.do)
	require.NoError(t, err)
	require.Len(t, call.Report().Attempts, 1, "a request after a good answer is a new call")

	p.status = 529
	for range 5 {
		resp, err := tr.Hook(req("X-Stainless-Retry-Count", "0"), p.do)
		require.NoError(t, err)
		require.Equal(t, 529, resp.StatusCode, "so is one that the client calls its first try")
	}
}

// TestStreamIsWatched: the ledger is complete when the last byte was read.
func TestStreamIsWatched(t *testing.T) {
	t.Parallel()
	c, call := transport.Watch(t.Context())
	u := serve(t, events(event(toyAnswer{Text: "one "})+event(usage(1, 2))))
	resp, err := hooked(t, toys())(post(t, c, u.URL, ask(true)))
	require.NoError(t, err)
	read(t, resp)
	require.Equal(t, middleware.Usage{InputTokens: 1, OutputTokens: 2}, call.Report().Usage())
}
