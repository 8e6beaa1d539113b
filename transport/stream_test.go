package transport_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// event is one event of the toy format.
func event(a toyAnswer) string { return string(toyStream(a)) }

func call(id, arguments string) toyAnswer {
	return toyAnswer{Calls: []middleware.ToolCall{{ID: id, Name: "add", Arguments: arguments}}}
}

func usage(in, out int64) toyAnswer {
	return toyAnswer{End: true, Usage: middleware.Usage{InputTokens: in, OutputTokens: out}}
}

// next reads one event from a body that is open.
func next(t *testing.T, r *bufio.Reader) string {
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	_, err = r.ReadString('\n')
	require.NoError(t, err)
	return line + "\n"
}

// TestTextIsLive: the server goes on only when the client has read what it
// sent, so a text that waited would wait for ever.
func TestTextIsLive(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
		seen := make(chan bool)
		u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Request-Id", "r1")
			for _, text := range []string{"one ", "two "} {
				send(w, event(toyAnswer{Text: text}))
				<-seen
			}
			send(w, event(call("c1", `{"n":1}`))+event(usage(1, 1)))
		})
		do, at := with(toys(validate()), u)
		resp, err := do(post(t, t.Context(), at, ask(true, addTool)))
		require.NoError(t, err)
		require.EqualValues(t, -1, resp.ContentLength)
		require.Equal(t, "r1", resp.Header.Get("X-Request-Id"))
		r := bufio.NewReader(resp.Body)
		for _, text := range []string{"one ", "two "} {
			require.Equal(t, event(toyAnswer{Text: text}), next(t, r))
			seen <- true
		}
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, event(call("c1", `{"n":1}`))+event(usage(1, 1)), string(rest))
		require.NoError(t, resp.Body.Close())
	})
}

// TestToolCallIsHeld: the client sees a call only when the chain has decided.
func TestToolCallIsHeld(t *testing.T) {
	t.Parallel()
	held, decided := make(chan bool), make(chan bool)
	u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		send(w, event(toyAnswer{Text: "one "}))
		send(w, event(call("c1", `{"n":1}`))+event(usage(1, 1)))
	})
	wait := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		resp, err := next(ctx, req)
		close(held)
		<-decided
		return resp, err
	})
	resp, err := hooked(t, toys(wait))(post(t, t.Context(), u.URL, ask(true, addTool)))
	require.NoError(t, err)
	<-held
	b := make([]byte, 1000)
	n, err := resp.Body.Read(b)
	require.NoError(t, err)
	require.Equal(t, event(toyAnswer{Text: "one "}), string(b[:n]), "although all was received")
	close(decided)
	require.Equal(t, event(call("c1", `{"n":1}`))+event(usage(1, 1)), read(t, resp))
}

func TestSplicedStream(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
		u := serve(t, events(event(toyAnswer{Text: "one "})+event(call("c1", `{}`))+event(usage(1, 2))),
			events(event(toyAnswer{Text: "two "})+event(call("c2", `{"n":1}`))+event(usage(3, 4))))
		do, at := with(toys(validate()), u)
		ctx, watched := transport.Watch(t.Context())
		resp, err := do(post(t, ctx, at, ask(true, addTool)))
		require.NoError(t, err)
		require.Equal(t, event(toyAnswer{Text: "one "})+event(toyAnswer{Text: "two "})+event(call("c2", `{"n":1}`))+event(usage(3, 4)), read(t, resp))
		if !strings.HasSuffix(t.Name(), "handler") {
			require.Len(t, watched.Report().Attempts, 2)
			require.NoError(t, watched.Err())
		}
	})
}

func TestNothingShownThenReask(t *testing.T) {
	t.Parallel()
	second := event(toyAnswer{Text: "two "}) + event(call("c2", `{"n":1}`)) + event(usage(3, 4))
	u := serve(t, events(event(call("c1", `{}`))+event(usage(0, 0))), events(second))
	resp, err := hooked(t, toys(validate()))(post(t, t.Context(), u.URL, ask(true, addTool)))
	require.NoError(t, err)
	require.EqualValues(t, -1, resp.ContentLength)
	require.Empty(t, resp.Header.Get("Content-Length"))
	require.Equal(t, second, read(t, resp))
}

// TestReaskIsNotLive: an answer after the first one is shown only when the
// chain has taken it.
func TestReaskIsNotLive(t *testing.T) {
	t.Parallel()
	first := event(call("c1", `{"n":1}`)) + event(usage(1, 1))
	u := serve(t, events(first), events(event(toyAnswer{Text: "two"})+event(usage(1, 1))))
	compare := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		resp, err := next(ctx, req)
		_, _ = next(ctx, req)
		return resp, err
	})
	resp, err := hooked(t, toys(compare))(post(t, t.Context(), u.URL, ask(true, addTool)))
	require.NoError(t, err)
	require.Equal(t, first, read(t, resp))
}

// TestHold: text is not shown before the chain has decided, with Hold and
// where a middleware holds it back itself.
func TestHold(t *testing.T) {
	t.Parallel()
	holds := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		quiet := *req
		quiet.Sink = func(middleware.Event) error { return nil }
		return next(ctx, &quiet)
	})
	blind := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		quiet := *req
		quiet.Sink = nil
		return next(ctx, &quiet)
	})
	changes := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		other := *req
		other.Sink = func(e middleware.Event) error {
			e.Text = "***"
			return req.Sink(e)
		}
		return next(ctx, &other)
	})
	redact := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		resp, err := next(ctx, req)
		if err == nil {
			resp.Message.Parts[0].Text = "***"
		}
		return resp, err
	})
	for name, tr := range map[string]*transport.Transport{
		"by option":            toysWith(transport.Options{Hold: true}, redact),
		"by the chain":         toys(redact, holds),
		"without a sink":       toys(redact, blind),
		"by a sink that edits": toys(redact, changes),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				send(w, event(toyAnswer{Text: "secret"}))
				send(w, event(usage(1, 1)))
			})
			resp, err := hooked(t, tr)(post(t, t.Context(), u.URL, ask(true, addTool)))
			require.NoError(t, err)
			require.Equal(t, event(toyAnswer{Text: "***"})+event(usage(1, 1)), read(t, resp))
		})
	}
	t.Run("without tools as well", func(t *testing.T) {
		t.Parallel()
		redact := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
			resp, err := next(ctx, req)
			if err == nil {
				resp.Message.Parts[0].Text = "***"
			}
			return resp, err
		})
		u := serve(t, events(event(toyAnswer{Text: "secret"})+event(usage(1, 1))))
		resp, err := hooked(t, toysWith(transport.Options{Hold: true}, redact))(post(t, t.Context(), u.URL, ask(true)))
		require.NoError(t, err)
		require.NotContains(t, read(t, resp), "secret")
	})
}

// TestChangeBehindShownText: what was shown cannot be taken back, and what
// follows is an error, not silence.
func TestChangeBehindShownText(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
		redact := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
			resp, err := next(ctx, req)
			if err == nil {
				resp.Message.Parts[0].Text = "***"
			}
			return resp, err
		})
		u := serve(t, events(event(toyAnswer{Text: "secret"})+event(call("c1", `{"n":1}`))+event(usage(1, 1))))
		do, at := with(toys(redact), u)
		ctx, watched := transport.Watch(t.Context())
		resp, err := do(post(t, ctx, at, ask(true, addTool)))
		require.NoError(t, err)
		got := read(t, resp)
		require.True(t, strings.HasPrefix(got, event(toyAnswer{Text: "secret"})+`data: {"error":`), got)
		require.NotContains(t, got, "c1")
		if !strings.HasSuffix(t.Name(), "handler") {
			require.ErrorIs(t, watched.Err(), wire.ErrUnencodable)
		}
	})
}

func TestErrorsBehindShownText(t *testing.T) {
	t.Parallel()
	shown := event(toyAnswer{Text: "one "})
	bad := shown + event(call("c1", `{}`)) + event(usage(1, 1))
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2})
	cases := map[string]struct {
		chain  middleware.Middleware
		script []http.HandlerFunc
		event  string // begins with
		err    func(t *testing.T, err error)
	}{
		"raised": {raise, []http.HandlerFunc{events(bad), events(bad)}, `data: {"error":{"code":"invalid_tool_call"`,
			func(t *testing.T, err error) { require.ErrorIs(t, err, argsvalidate.ErrExhausted) }},
		"a status in the middle of a re-ask keeps its number": {raise,
			[]http.HandlerFunc{events(bad), answer(529, "{\"error\":\n \"overloaded\"}")}, `data: {"error":{"code":"","message":"the provider answered with status 529","status":529}}`,
			func(t *testing.T, err error) {
				var e *middleware.ModelError
				require.ErrorAs(t, err, &e)
				require.Equal(t, 529, e.StatusCode)
			}},
		"a status that is a page": {raise,
			[]http.HandlerFunc{events(bad), answer(502, "<html>")}, `data: {"error":{"code":"","message":"the provider answered with status 502","status":502}}`,
			func(t *testing.T, err error) { require.Error(t, err) }},
		"a re-ask answered by another format": {raise, []http.HandlerFunc{events(bad), answer(200, "<html>")}, `data: {"error":`,
			func(t *testing.T, err error) { require.ErrorIs(t, err, wire.ErrShape) }},
		"the provider's error in the stream, with tools": {nil,
			[]http.HandlerFunc{events(shown + event(call("c1", `{}`)) + event(toyAnswer{Fail: "overloaded"}))}, `data: {"fail":"overloaded"}`,
			func(t *testing.T, err error) {
				var e *middleware.ModelError
				require.ErrorAs(t, err, &e)
			}},
		"a panic": {around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
			_, _ = next(ctx, req)
			panic(io.ErrNoProgress)
		}), []http.HandlerFunc{events(bad)}, `data: {"error":`,
			func(t *testing.T, err error) {
				var p *transport.Panic
				require.ErrorAs(t, err, &p)
				require.Equal(t, io.ErrNoProgress, p.Value)
				require.NotEmpty(t, p.Stack)
				require.ErrorIs(t, err, io.ErrNoProgress)
				require.NotContains(t, err.Error(), io.ErrNoProgress.Error())
			}},
		"the end of the goroutine": {around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
			_, _ = next(ctx, req)
			runtime.Goexit()
			return nil, nil
		}), []http.HandlerFunc{events(bad)}, `data: {"error":`, func(t *testing.T, err error) { require.ErrorContains(t, err, "goroutine") }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, c.script...)
			ctx, watched := transport.Watch(t.Context())
			resp, err := hooked(t, toys(c.chain))(post(t, ctx, u.URL, ask(true, addTool)))
			require.NoError(t, err)
			got := read(t, resp)
			c.err(t, watched.Err())
			require.True(t, strings.HasPrefix(got, shown+c.event), got)
			require.NotContains(t, got, "c1", "a call that nobody accepted")
		})
	}
}

func TestStreamLeavesItsFormat(t *testing.T) {
	t.Parallel()
	seen := make(chan bool)
	u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, event(toyAnswer{Text: "one "}))
		<-seen
		send(w, event(call("c1", `{}`))+"data: {\n\n"+event(usage(1, 1)))
	})
	ctx, watched := transport.Watch(t.Context())
	resp, err := hooked(t, toys())(post(t, ctx, u.URL, ask(true, addTool)))
	require.NoError(t, err)
	close(seen)
	got := read(t, resp)
	require.ErrorIs(t, watched.Err(), wire.ErrShape)
	require.Contains(t, got, `data: {"error":`)
	require.NotContains(t, got, "c1")
}

func TestErrorsBeforeAnythingWasShown(t *testing.T) {
	t.Parallel()
	t.Run("the end of the goroutine", func(t *testing.T) {
		t.Parallel()
		gone := around(func(context.Context, *middleware.Request, middleware.ModelCall) (*middleware.Response, error) {
			runtime.Goexit()
			return nil, nil
		})
		resp, err := hooked(t, toys(gone))(post(t, t.Context(), serve(t).URL, ask(true)))
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		read(t, resp)
	})
	t.Run("the provider's error behind a call", func(t *testing.T) {
		t.Parallel()
		u := serve(t, events(event(call("c1", `{}`))+event(toyAnswer{Fail: "overloaded"})))
		resp, err := hooked(t, toys())(post(t, t.Context(), u.URL, ask(true, addTool)))
		require.NoError(t, err)
		got := read(t, resp)
		require.Equal(t, event(toyAnswer{Fail: "overloaded"}), got)
		require.NotContains(t, got, "c1")
	})
	t.Run("the provider's error, without tools", func(t *testing.T) {
		t.Parallel()
		body := event(toyAnswer{Text: "one "}) + event(toyAnswer{Fail: "overloaded"})
		u := serve(t, events(body))
		resp, err := hooked(t, toys())(post(t, t.Context(), u.URL, ask(true)))
		require.NoError(t, err)
		require.Equal(t, body, read(t, resp))
	})
	t.Run("no JSON any more, without tools", func(t *testing.T) {
		t.Parallel()
		body := event(toyAnswer{Text: "one "}) + "data: {\n\n"
		u := serve(t, events(body))
		resp, err := hooked(t, toys())(post(t, t.Context(), u.URL, ask(true)))
		require.NoError(t, err)
		require.Equal(t, body, read(t, resp))
	})
	t.Run("no JSON any more", func(t *testing.T) {
		t.Parallel()
		u := serve(t, events(event(call("c1", `{}`))+"data: {\n\n"))
		resp, err := hooked(t, toys())(post(t, t.Context(), u.URL, ask(true, addTool)))
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		require.NotContains(t, read(t, resp), "c1")
	})
}

// TestBrokenTextStreamGoesOn: without tools there is nothing to check, so the
// client gets whatever it would have got.
func TestBrokenTextStreamGoesOn(t *testing.T) {
	t.Parallel()
	seen := make(chan bool)
	u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		send(w, event(toyAnswer{Text: "one "}))
		<-seen
		send(w, "data: {\n\n")
		<-seen
		send(w, event(usage(1, 1)))
	})
	resp, err := hooked(t, toys(failing(errors.New("changed"))))(post(t, t.Context(), u.URL, ask(true)))
	require.NoError(t, err)
	r := bufio.NewReader(resp.Body)
	require.Equal(t, event(toyAnswer{Text: "one "}), next(t, r))
	seen <- true
	require.Equal(t, "data: {\n\n", next(t, r))
	seen <- true
	require.Equal(t, event(usage(1, 1)), next(t, r))
	_, err = r.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, resp.Body.Close())
}
