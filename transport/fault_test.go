package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// reset sends text and then resets the connection.
func reset(text string, before ...func()) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if text != "" {
			w.Header().Set("Content-Type", "text/event-stream")
			send(w, text)
		}
		for _, f := range before {
			f()
		}
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
}

// TestLineFails: nothing was shown, and the client gets the failure as it
// came, so that its own logic of retries works.
func TestLineFails(t *testing.T) {
	t.Parallel()
	half := event(call("c1", `{}`))
	cases := map[string]struct {
		script []http.HandlerFunc
		err    error
	}{
		"no answer":                             {[]http.HandlerFunc{reset("")}, nil},
		"reset behind a call":                   {[]http.HandlerFunc{reset(half)}, nil},
		"half an event":                         {[]http.HandlerFunc{events(half[:20])}, io.ErrUnexpectedEOF},
		"no end":                                {[]http.HandlerFunc{events(half)}, io.ErrUnexpectedEOF},
		"reset in the middle of a re-ask":       {[]http.HandlerFunc{answer(http.StatusOK, badCall), reset("")}, nil},
		"no end in the middle of a re-ask":      {[]http.HandlerFunc{answer(http.StatusOK, badCall), events(half)}, wire.ErrIncomplete},
		"an error status whose body breaks off": {[]http.HandlerFunc{answer(http.StatusBadRequest, "no", "Content-Length", "10")}, io.ErrUnexpectedEOF},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, c.script...)
			ctx, watched := transport.Watch(t.Context())
			resp, err := hooked(t, toys(validate()))(post(t, ctx, u.URL, ask(true, addTool)))
			require.Nil(t, resp)
			require.Error(t, err)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
			}
			require.Error(t, watched.Err())
		})
	}
}

// TestRetryInTheChain: a failure of the line is one that package retry knows.
func TestRetryInTheChain(t *testing.T) {
	t.Parallel()
	u := serve(t, events(event(toyAnswer{Text: "lost"})[:9]), reset(""), answer(529, "{}"), answer(http.StatusOK, words))
	resp, err := hooked(t, toys(quick(4)))(post(t, t.Context(), u.URL, ask(true)))
	require.NoError(t, err)
	require.Equal(t, words, read(t, resp))
}

func TestLineFailsBehindShownText(t *testing.T) {
	t.Parallel()
	shown := event(toyAnswer{Text: "one "})
	for name, rest := range map[string]string{"reset": "", "half an event": event(call("c1", `{}`))[:20], "no end": event(call("c1", `{}`))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
				seen := make(chan bool)
				u := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if rest == "" {
						reset(shown, func() { <-seen })(w, r)
						return
					}
					w.Header().Set("Content-Type", "text/event-stream")
					send(w, shown)
					<-seen
					send(w, rest)
				})
				do, at := with(toys(validate()), u)
				resp, err := do(post(t, t.Context(), at, ask(true, addTool)))
				require.NoError(t, err)
				close(seen)
				got, err := io.ReadAll(resp.Body)
				require.Error(t, err, "never a half message taken for whole")
				require.Equal(t, shown, string(got))
				require.NoError(t, resp.Body.Close())
				if rest != "" {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				}
			})
		})
	}
	t.Run("then a retry, whose text has no place behind it", func(t *testing.T) {
		t.Parallel()
		seen := make(chan bool)
		u := serve(t, reset(shown, func() { <-seen })) // and is not asked again: nobody could read it
		resp, err := hooked(t, toys(quick(2)))(post(t, t.Context(), u.URL, ask(true, addTool)))
		require.NoError(t, err)
		close(seen)
		got, err := io.ReadAll(resp.Body)
		require.Error(t, err)
		require.Equal(t, shown, string(got))
		require.NoError(t, resp.Body.Close())
	})
}

// TestResetBehindTheEnd: the answer was whole.
func TestResetBehindTheEnd(t *testing.T) {
	t.Parallel()
	body := event(toyAnswer{Text: "one "}) + event(usage(1, 1))
	seen := make(chan bool)
	u := serve(t, reset(body, func() { <-seen }))
	resp, err := hooked(t, toys())(post(t, t.Context(), u.URL, ask(true)))
	require.NoError(t, err)
	close(seen)
	require.Equal(t, body, read(t, resp))
}

// TestLineStaysOpen: a server that does not hang up behind the end of its
// stream does not keep the client waiting.
func TestLineStaysOpen(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		if name == "gemini" { // has no end mark: its clients wait too
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body := s.stream("hi", `{"n":1}`)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1"+s.path, strings.NewReader(s.request(true)))
				require.NoError(t, err)
				start := time.Now()
				resp, err := transport.New(transport.Options{}, validate()).Hook(req, func(req *http.Request) (*http.Response, error) {
					r, w := io.Pipe()
					context.AfterFunc(req.Context(), func() { w.CloseWithError(req.Context().Err()) })
					go func() { _, _ = io.WriteString(w, body) }()
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1, Body: r, Request: req}, nil
				})
				require.NoError(t, err)
				require.Equal(t, body, read(t, resp))
				require.LessOrEqual(t, time.Since(start), time.Second)
			})
		})
	}
}

// TestStall: a server that says no more is the client's to give up on, and
// then nothing is left behind.
func TestStall(t *testing.T) {
	t.Parallel()
	shown := event(toyAnswer{Text: "one "})
	stall := func(gone chan bool, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			send(w, text)
			<-r.Context().Done()
			close(gone)
		}
	}
	t.Run("cancelled behind shown text", func(t *testing.T) {
		t.Parallel()
		gone := make(chan bool)
		ctx, cancel := contextWithCancel(t)
		resp, err := hooked(t, toys(validate()))(post(t, ctx, serve(t, stall(gone, shown)).URL, ask(true, addTool)))
		require.NoError(t, err)
		b := make([]byte, len(shown))
		_, err = io.ReadFull(resp.Body, b)
		require.NoError(t, err)
		cancel()
		_, err = resp.Body.Read(b)
		require.ErrorIs(t, err, context.Canceled)
		<-gone
		require.NoError(t, resp.Body.Close())
	})
	t.Run("cancelled, and the chain does not mind", func(t *testing.T) {
		t.Parallel()
		gone, left := make(chan bool), make(chan bool)
		defer close(left)
		stubborn := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
			resp, err := next(ctx, req)
			<-left
			return resp, err
		})
		ctx, cancel := contextWithCancel(t)
		resp, err := hooked(t, toys(stubborn))(post(t, ctx, serve(t, stall(gone, shown)).URL, ask(true, addTool)))
		require.NoError(t, err)
		cancel()
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, context.Canceled)
		<-gone
		require.NoError(t, resp.Body.Close())
	})
	t.Run("closed behind shown text", func(t *testing.T) {
		t.Parallel()
		gone := make(chan bool)
		resp, err := hooked(t, toys(validate()))(post(t, t.Context(), serve(t, stall(gone, shown)).URL, ask(true, addTool)))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		<-gone
		_, err = resp.Body.Read(make([]byte, 1))
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
	})
	t.Run("cancelled while a call is held", func(t *testing.T) {
		t.Parallel()
		gone, came := make(chan bool), make(chan bool)
		ctx, cancel := contextWithCancel(t)
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			close(came)
			stall(gone, event(call("c1", `{}`)))(w, r)
		})
		go func() {
			<-came
			cancel()
		}()
		_, err := hooked(t, toys(validate(), quick(3)))(post(t, ctx, u.URL, ask(true, addTool)))
		require.ErrorIs(t, err, context.Canceled)
		<-gone
	})
	t.Run("http.Client.Timeout", func(t *testing.T) {
		t.Parallel()
		gone := make(chan bool)
		u := serve(t, stall(gone, shown))
		base := &http.Transport{}
		defer base.CloseIdleConnections()
		client := &http.Client{Transport: toys(validate()).RoundTripper(base), Timeout: 2 * time.Second} // a busy machine must get the request through
		resp, err := client.Do(post(t, t.Context(), u.URL, ask(true, addTool)))
		if err == nil { // the text came before the time was up
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, resp.Body.Close())
		}
		require.True(t, os.IsTimeout(err), "%v", err)
		<-gone
	})
	t.Run("the time of one attempt in the chain", func(t *testing.T) {
		t.Parallel()
		gone := make(chan bool)
		u := serve(t, stall(gone, event(call("c1", `{}`))), answer(http.StatusOK, words))
		resp, err := hooked(t, toys(quick(2), limited(2*time.Second)))(post(t, t.Context(), u.URL, ask(true, addTool)))
		require.NoError(t, err)
		require.Equal(t, words, read(t, resp))
		<-gone
	})
}

// TestEndOfContext: no model call is begun behind it, and it is a Go error
// whatever the chain makes of it.
func TestEndOfContext(t *testing.T) {
	t.Parallel()
	own := errors.New("the chain's own")
	ctx, cancel := contextWithCancel(t)
	p := &provider{status: http.StatusOK, body: words}
	late := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		cancel()
		_, err := next(ctx, req)
		require.ErrorIs(t, err, context.Canceled)
		return nil, own
	})
	_, err := toys(late).Hook(post(t, ctx, "http://127.0.0.1:1", ask(false)), p.do)
	require.ErrorIs(t, err, own)
	require.Zero(t, p.calls)
}

func TestStreamOfMoreThanMaxBody(t *testing.T) {
	t.Parallel()
	u := serve(t, events(event(toyAnswer{Text: "one "})+strings.Repeat(event(toyAnswer{Text: "more "}), 100)+event(call("c1", "{}"))))
	resp, err := hooked(t, toysWith(transport.Options{MaxBody: 1000}))(post(t, t.Context(), u.URL, ask(true, addTool)))
	if err == nil {
		var got []byte
		got, err = io.ReadAll(resp.Body)
		require.NoError(t, resp.Body.Close())
		require.NotContains(t, string(got), "c1")
		if resp.StatusCode == http.StatusBadRequest {
			err = transport.Cause(resp)
		}
	}
	require.ErrorIs(t, err, wire.ErrShape)
}
