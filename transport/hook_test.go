package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

func validate() middleware.Middleware { return argsvalidate.New(argsvalidate.Options{}) }

// quick is a retry that waits next to nothing.
func quick(attempts int) middleware.Middleware {
	return retry.New(retry.Options{MaxAttempts: attempts, MinDelay: time.Nanosecond, MaxDelay: time.Nanosecond})
}

func TestUnchangedAnswerComesAsSent(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
		odd := `{ "text" : "two",   "end":true , "usage":{"output":1,"input":2}}` + "\n"
		u := serve(t, answer(http.StatusOK, odd, "X-Request-Id", "r1"))
		do, at := with(toys(validate()), u)
		resp, err := do(post(t, t.Context(), at, ask(false, addTool)))
		require.NoError(t, err)
		require.Equal(t, odd, read(t, resp))
		require.Equal(t, "r1", resp.Header.Get("X-Request-Id"))
		require.EqualValues(t, len(odd), resp.ContentLength)
		require.Equal(t, ask(false, addTool), string(u.body[0]))
		require.NoError(t, transport.Cause(resp))
	})
}

func TestReask(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
		u := serve(t, answer(http.StatusOK, badCall, "X-Request-Id", "r1"), answer(http.StatusOK, goodCall, "X-Request-Id", "r2"))
		do, at := with(toys(validate()), u)
		resp, err := do(post(t, t.Context(), at, ask(false, addTool), "Authorization", "Bearer k", "Idempotency-Key", "one"))
		require.NoError(t, err)
		got := read(t, resp)
		require.Contains(t, got, `"id":"c2"`)
		require.Contains(t, got, `"usage":{"input":20,"output":6}`, "the usage of the answer, not the sum")
		require.Equal(t, "r2", resp.Header.Get("X-Request-Id"))
		require.EqualValues(t, len(got), resp.ContentLength)
		require.Equal(t, fmt.Sprint(len(got)), resp.Header.Get("Content-Length"))
		require.Greater(t, len(u.body[1]), len(u.body[0]))
		require.Equal(t, "Bearer k", u.got[1].Header.Get("Authorization"))
		require.Equal(t, "one", u.got[0].Header.Get("Idempotency-Key"))
		require.Empty(t, u.got[1].Header.Get("Idempotency-Key"), "it stands for another body")
	})
}

func TestRequestsAreClean(t *testing.T) {
	t.Parallel()
	u := serve(t, answer(http.StatusServiceUnavailable, "{}"), answer(http.StatusOK, words))
	req := post(t, t.Context(), u.URL, ask(false), "Accept-Encoding", "br, gzip", "Idempotency-Key", "one", "X-Mine", "1")
	body, before := req.Body, req.Header.Clone()
	adds := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		require.Empty(t, req.Header, "nothing of the client's headers is in the neutral request")
		r := req.Clone()
		r.Header = http.Header{"X-Mine": {"3", "2"}, "content-length": {"7"}}
		return next(ctx, r)
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var seen []*http.Request
	resp, err := toys(quick(2), adds).Hook(req, func(r *http.Request) (*http.Response, error) {
		require.NotSame(t, req, r)
		require.Equal(t, req.URL, r.URL)
		require.EqualValues(t, len(ask(false)), r.ContentLength)
		require.Empty(t, r.TransferEncoding)
		require.Empty(t, r.Header.Values("Content-Length"))
		require.Equal(t, "gzip", r.Header.Get("Accept-Encoding"), "no encoding is asked for that cannot be read")
		again, err := r.GetBody()
		require.NoError(t, err)
		b, err := io.ReadAll(again)
		require.NoError(t, err)
		require.Equal(t, ask(false), string(b))
		seen = append(seen, r)
		return client.Do(r)
	})
	require.NoError(t, err)
	require.Equal(t, words, read(t, resp))
	require.Same(t, req, resp.Request)
	require.Equal(t, before, req.Header)
	require.Equal(t, body, req.Body)
	require.Len(t, seen, 2)
	require.NotSame(t, seen[0], seen[1])
	require.Equal(t, []string{"3", "2"}, u.got[1].Header.Values("X-Mine"), "in the place of the client's")
	require.Equal(t, "one", u.got[1].Header.Get("Idempotency-Key"), "the same body again")
}

// replaced does to an answer what openai-go does to errors.
func replaced(t *testing.T, resp *http.Response) *http.Response {
	resp.Body = io.NopCloser(strings.NewReader(read(t, resp)))
	return resp
}

func TestRaise(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
		u := serve(t, answer(http.StatusOK, badCall), answer(http.StatusOK, badCall))
		raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2})
		do, at := with(toys(raise), u)
		ctx, call := transport.Watch(t.Context())
		resp, err := do(post(t, ctx, at, ask(false, addTool)))
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
		require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
		replaced(t, resp)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(b), `"code":"invalid_tool_call"`)
		require.Contains(t, string(b), `"status":400`)
		if strings.HasSuffix(t.Name(), "handler") {
			require.NoError(t, transport.Cause(resp), "it does not go over the line")
			return
		}
		require.ErrorIs(t, transport.Cause(resp), argsvalidate.ErrExhausted)
		require.ErrorIs(t, call.Err(), argsvalidate.ErrExhausted)
		require.Len(t, call.Report().Attempts, 2)
		require.EqualValues(t, 20, call.Report().Usage().InputTokens)
	})
}

func TestProvidersOwnAnswer(t *testing.T) {
	t.Parallel()
	body := `{"type":"error",  "error":{"type":"overloaded"}}`
	for _, status := range []int{http.StatusTooManyRequests, 529, http.StatusInternalServerError, http.StatusBadRequest} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
				refuse := answer(status, body, "Retry-After", "7", "X-Request-Id", "r9")
				u := serve(t, refuse, answer(http.StatusOK, badCall), refuse)
				wrap := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
					resp, err := next(ctx, req)
					if err != nil {
						err = fmt.Errorf("deep: %w", errors.Join(errors.New("beside"), err))
					}
					return resp, err
				})
				do, at := with(toys(wrap, validate()), u)
				for _, when := range []string{"at once", "in the middle of a re-ask"} {
					resp, err := do(post(t, t.Context(), at, ask(false, addTool)))
					require.NoError(t, err, when)
					require.Equal(t, status, resp.StatusCode, when)
					require.Equal(t, body, read(t, resp), when)
					require.Equal(t, "7", resp.Header.Get("Retry-After"), when)
					require.Equal(t, "r9", resp.Header.Get("X-Request-Id"), when)
					require.Empty(t, resp.Header.Get("X-Should-Retry"), when)
					require.NoError(t, transport.Cause(resp), when)
				}
			})
		})
	}
}

func TestLatestOfSeveralRefusals(t *testing.T) {
	t.Parallel()
	u := serve(t, answer(http.StatusBadGateway, "1"), answer(http.StatusServiceUnavailable, "2"))
	var first error
	both := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		_, first = next(ctx, req)
		_, second := next(ctx, req)
		return nil, errors.Join(second, first)
	})
	resp, err := hooked(t, toys(both))(post(t, t.Context(), u.URL, ask(false)))
	require.NoError(t, err)
	require.Equal(t, "2", read(t, resp))
}

// TestRefusedToolCall: the model's call was refused until the chain gave up;
// the client must not begin again.
func TestRefusedToolCall(t *testing.T) {
	t.Parallel()
	t.Run("as a status", func(t *testing.T) {
		t.Parallel()
		refuse := answer(http.StatusInternalServerError, `{"error":"refused"}`)
		u := serve(t, refuse, refuse, refuse)
		resp, err := hooked(t, toys(validate()))(post(t, t.Context(), u.URL, ask(false, addTool)))
		require.NoError(t, err)
		require.Equal(t, http.StatusInternalServerError, resp.StatusCode)
		require.Equal(t, `{"error":"refused"}`, read(t, resp))
		require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
	})
	t.Run("in a stream whose text the client has", func(t *testing.T) {
		t.Parallel()
		text := event(toyAnswer{Text: "Let me see."})
		seen := make(chan struct{})
		refuse := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			send(w, text)
			<-seen
			send(w, event(toyAnswer{Fail: "MALFORMED", Refuse: true}))
		}
		u := serve(t, refuse, events(event(call("c2", `{"n":1}`))+event(usage(3, 4))))
		resp, err := hooked(t, toys(validate()))(post(t, t.Context(), u.URL, ask(true, addTool)))
		require.NoError(t, err)
		first := make([]byte, len(text))
		_, err = io.ReadFull(resp.Body, first)
		require.NoError(t, err)
		close(seen)
		got := read(t, resp)
		require.Equal(t, text, string(first))
		require.Contains(t, got, `"c2"`, "the re-ask's answer follows")
		require.NotContains(t, got, "MALFORMED")
	})
	t.Run("in an answer that a re-ask corrects", func(t *testing.T) {
		t.Parallel()
		u := serve(t, answer(http.StatusOK, `{"fail":"MALFORMED","refuse":true}`), answer(http.StatusOK, goodCall))
		resp, err := hooked(t, toys(validate()))(post(t, t.Context(), u.URL, ask(false, addTool)))
		require.NoError(t, err)
		require.Contains(t, read(t, resp), `"c2"`)
	})
	t.Run("in an answer, without a chain that minds", func(t *testing.T) {
		t.Parallel()
		u := serve(t, answer(http.StatusOK, `{"fail":"MALFORMED","refuse":true}`))
		resp, err := hooked(t, toys())(post(t, t.Context(), u.URL, ask(false, addTool)))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, `{"fail":"MALFORMED","refuse":true}`, read(t, resp))
	})
}

func TestChangeWithoutPlace(t *testing.T) {
	t.Parallel()
	t.Run("in the answer", func(t *testing.T) {
		t.Parallel()
		u := serve(t)
		forge := around(func(context.Context, *middleware.Request, middleware.ModelCall) (*middleware.Response, error) {
			return &middleware.Response{Message: middleware.User("mine")}, nil
		})
		ctx, call := transport.Watch(t.Context())
		resp, err := hooked(t, toys(forge))(post(t, ctx, u.URL, ask(false)))
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		require.ErrorIs(t, transport.Cause(resp), wire.ErrUnencodable)
		require.ErrorIs(t, call.Err(), wire.ErrUnencodable)
		read(t, resp)
	})
	t.Run("no response at all", func(t *testing.T) {
		t.Parallel()
		silent := around(func(context.Context, *middleware.Request, middleware.ModelCall) (*middleware.Response, error) {
			return nil, nil
		})
		resp, err := hooked(t, toys(silent))(post(t, t.Context(), serve(t).URL, ask(false)))
		require.NoError(t, err)
		require.ErrorIs(t, transport.Cause(resp), middleware.ErrNoResponse)
		read(t, resp)
	})
}

// TestMessageOfItsOwn: a middleware that writes the message afresh, as textcall
// does, takes the provider's form away: the change is made all the same.
func TestMessageOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, w := range speeches() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
				resp, err := next(ctx, req)
				if err != nil {
					return nil, err
				}
				return &middleware.Response{Message: middleware.Assistant("Mine.", middleware.ToolCall{ID: "own", Name: "add", Arguments: `{"n":7}`}),
					FinishReason: middleware.FinishToolCalls, Usage: resp.Usage, Model: resp.Model}, nil
			})
			for _, stream := range []bool{false, true} {
				body, kind := w.whole("Once."), "application/json"
				if stream {
					body, kind = w.stream("Once."), w.kind
				}
				r := post(t, t.Context(), serve(t, answer(http.StatusOK, body, "Content-Type", kind)).URL, w.request(stream))
				path := strings.Fields(w.path)
				r.URL.Path = path[0]
				if stream {
					r.URL.Path = path[len(path)-1]
				}
				resp, err := hooked(t, transport.New(transport.Options{Hold: true}, mine))(r)
				require.NoError(t, err)
				got := read(t, resp)
				require.Equal(t, http.StatusOK, resp.StatusCode, got)
				require.Contains(t, got, "Mine.")
				require.NotContains(t, got, "Once.")
				require.Contains(t, got, "7")
			}
		})
	}
}

// TestFreshRequest: a request that a middleware made itself is streamed
// exactly if the client wants a stream.
func TestFreshRequest(t *testing.T) {
	t.Parallel()
	fresh := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		r := *req
		r.Native = nil
		return next(ctx, &r)
	})
	u := serve(t, answer(http.StatusOK, words), events(string(toyStream(toyAnswer{Text: "two"}, toyAnswer{End: true}))))
	for i, stream := range []bool{false, true} {
		resp, err := hooked(t, toys(fresh))(post(t, t.Context(), u.URL, ask(stream)))
		require.NoError(t, err)
		require.Contains(t, read(t, resp), "two")
		require.Equal(t, stream, strings.Contains(string(u.body[i]), `"stream":true`))
	}
}

func TestAnswerFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		body, kind := []byte(words), "application/json"
		if stream {
			body, kind = toyStream(toyAnswer{Text: "two"}, toyAnswer{End: true}), "text/event-stream"
		}
		stored, err := toy{}.DecodeResponse(nil, body)
		require.NoError(t, err)
		cache := around(func(context.Context, *middleware.Request, middleware.ModelCall) (*middleware.Response, error) {
			return stored, nil
		})
		resp, err := hooked(t, toys(cache))(post(t, t.Context(), serve(t).URL, ask(stream)))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, kind, resp.Header.Get("Content-Type"))
		require.Equal(t, string(body), read(t, resp))
	}
}

func TestPanicIsPassedOn(t *testing.T) {
	t.Parallel()
	boom := around(func(context.Context, *middleware.Request, middleware.ModelCall) (*middleware.Response, error) {
		panic(http.ErrAbortHandler)
	})
	do := hooked(t, toys(boom))
	for _, stream := range []bool{false, true} {
		ctx, watched := transport.Watch(t.Context())
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { _, _ = do(post(t, ctx, "http://127.0.0.1:1", ask(stream))) })
		require.ErrorContains(t, watched.Err(), "panicked")
	}
}

// TestChainIsBuiltOnce: what a middleware keeps between requests is kept.
func TestChainIsBuiltOnce(t *testing.T) {
	t.Parallel()
	built := 0
	count := func(next middleware.ModelCall) middleware.ModelCall {
		built++
		return next
	}
	u := serve(t, answer(http.StatusOK, words), answer(http.StatusOK, words))
	do := hooked(t, toys(count))
	for range 2 {
		resp, err := do(post(t, t.Context(), u.URL, ask(false)))
		require.NoError(t, err)
		read(t, resp)
	}
	require.Equal(t, 1, built)
}
