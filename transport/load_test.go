package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// TestSlowClient: a client that does not read makes the provider wait, and a
// close ends that.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	long := event(toyAnswer{Text: strings.Repeat("x", 64<<10)})
	gone := make(chan bool)
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, long); err != nil {
				break
			}
		}
		close(gone)
	})
	resp, err := hooked(t, toys())(post(t, t.Context(), u.URL, ask(true, addTool)))
	require.NoError(t, err)
	b := make([]byte, len(long))
	_, err = io.ReadFull(resp.Body, b)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	<-gone
}

// TestProviderWaits: of what a client does not read little is fetched.
func TestProviderWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		long := event(toyAnswer{Text: strings.Repeat("x", 64<<10)})
		fetched := 0
		resp, err := toys().Hook(post(t, t.Context(), "http://127.0.0.1:1", ask(true)), func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1, Request: req,
				Body: io.NopCloser(readFunc(func(b []byte) (int, error) {
					n := copy(b, long[fetched%len(long):])
					fetched += n
					return n, nil
				}))}, nil
		})
		require.NoError(t, err)
		synctest.Wait()
		require.Less(t, fetched, 4<<20)
		require.NoError(t, resp.Body.Close())
		synctest.Wait()
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// TestTwoAtOnce: a chain that asks twice at once takes one answer; the other
// one is ended, and if it was the one that was shown, that is an error: text of
// two answers makes none.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	shown := event(toyAnswer{Text: "one "})
	gone, live := make(chan bool), make(chan bool)
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, shown)
		<-r.Context().Done()
		close(gone)
	}, events(event(toyAnswer{Text: "two "})+event(usage(1, 1))))
	var late sync.WaitGroup
	hedge := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		late.Go(func() { _, _ = next(ctx, req) })
		<-live
		return next(ctx, req)
	})
	ctx, watched := transport.Watch(t.Context())
	resp, err := hooked(t, toys(hedge))(post(t, ctx, u.URL, ask(true, addTool)))
	require.NoError(t, err)
	close(live)
	got := read(t, resp)
	require.ErrorContains(t, watched.Err(), "returned another answer")
	require.True(t, strings.HasPrefix(got, shown+`data: {"error":`), got)
	<-gone
	late.Wait()
}

// TestNothingIsLeftBehind: whether a body is read or closed unread, no goroutine
// outlives it, or TestMain fails.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(events(event(toyAnswer{Text: "one "}) + event(call("c1", `{}`)) + event(usage(1, 1))))
	defer server.Close()
	do := hooked(t, toys(around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		_, _ = next(ctx, req)
		return next(ctx, req)
	})))
	for i := range 30 {
		resp, err := do(post(t, t.Context(), server.URL, ask(true, addTool)))
		require.NoError(t, err)
		if i%2 == 0 {
			_, _ = io.ReadAll(resp.Body)
		}
		require.NoError(t, resp.Body.Close())
	}
}

// TestConcurrency: one Transport, many clients, every kind of answer.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		good := strings.Contains(string(body), `"tool_call_id"`)
		switch {
		case r.Header.Get("X-Kind") == "busy":
			answer(529, "{}")(w, r)
		case r.Header.Get("X-Kind") == "stream" && good:
			events(event(call("c2", `{"n":1}`))+event(usage(1, 1)))(w, r)
		case r.Header.Get("X-Kind") == "stream":
			events(event(toyAnswer{Text: "one "})+event(call("c1", `{}`))+event(usage(1, 1)))(w, r)
		case good:
			answer(http.StatusOK, goodCall)(w, r)
		default:
			answer(http.StatusOK, badCall)(w, r)
		}
	}))
	defer server.Close()
	do := hooked(t, toys(validate()))
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			kind := []string{"busy", "stream", "whole"}[i%3]
			resp, err := do(post(t, t.Context(), server.URL, ask(kind == "stream", addTool), "X-Kind", kind, "X-Stainless-Retry-Count", "0"))
			if err != nil {
				t.Error(err)
				return
			}
			b, err := io.ReadAll(resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err != nil {
				t.Error(err)
			}
			if ok := strings.Contains(string(b), `"c2"`); ok != (kind != "busy") || strings.Contains(string(b), `"c1"`) {
				t.Errorf("%s: %s", kind, b)
			}
		})
	}
	wg.Wait()
}
