package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// TestDigestsOfAChangedBody: a digest of what the provider sent does not go with
// another body, nor with one that has a comment behind it.
func TestDigestsOfAChangedBody(t *testing.T) {
	t.Parallel()
	header := []string{"Content-Digest", "sha-256=:x:", "Repr-Digest", "sha-256=:x:", "Digest", "x", "Content-MD5", "x", "Etag", "x"}
	streamed := append([]string{"Content-Type", "text/event-stream"}, header...)
	s := chat()
	for name, c := range map[string]struct {
		stream bool
		body   string
		kept   bool
	}{
		"whole, compressed":                {false, zipped(s.whole("", `{"n":1}`)), false},
		"whole":                            {false, s.whole("", `{"n":1}`), true},
		"whole, changed":                   {false, s.whole("", `{"n":"1"}`), false},
		"whole, invalid":                   {false, s.whole("", `{}`), true},
		"stream":                           {true, s.stream("", `{"n":1}`), true},
		"stream, changed":                  {true, s.stream("", `{"n":"1"}`), false},
		"stream, invalid: a comment is on": {true, s.stream("", `{}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := header
			if c.stream {
				with = streamed
			}
			if strings.Contains(name, "compressed") {
				with = append([]string{"Content-Encoding", "gzip"}, with...)
			}
			u := serve(t, answer(http.StatusOK, c.body, with...))
			tr := transport.New(transport.Options{Hold: true}, argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+s.path, strings.NewReader(s.request(c.stream)))
			require.NoError(t, err)
			req.Header.Set("Accept-Encoding", "gzip") // else Go's client inflates it
			resp, err := hooked(t, tr)(req)
			require.NoError(t, err)
			require.Equal(t, c.kept, read(t, resp) == c.body)
			for i := 0; i < len(header); i += 2 {
				require.Equal(t, c.kept, resp.Header.Get(header[i]) != "", header[i])
			}
		})
	}
}

// TestMaxBodyIsExact: a body of MaxBody bytes is validated, in either direction.
func TestMaxBodyIsExact(t *testing.T) {
	t.Parallel()
	pad := func(body string, size int) string { return body + strings.Repeat(" ", size-len(body)) }
	const most = 2000
	for size, validated := range map[int]bool{most - 1: true, most: true, most + 1: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			for name, chunked := range map[string]bool{"length": false, "chunked": true} {
				called := false
				look := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
					called = true
					return next(ctx, req)
				})
				tr := toysWith(transport.Options{MaxBody: most}, look)
				req := post(t, t.Context(), serve(t, answer(http.StatusOK, badCall)).URL, pad(ask(false, addTool), size))
				if chunked {
					req.ContentLength = -1
				}
				resp, err := hooked(t, tr)(req)
				require.NoError(t, err)
				read(t, resp)
				require.Equal(t, validated, called, "request, %s", name)

				send := answer(http.StatusOK, pad(badCall, size))
				if chunked {
					send = func(w http.ResponseWriter, r *http.Request) {
						w.(http.Flusher).Flush()
						_, _ = io.WriteString(w, pad(badCall, size))
					}
				}
				ctx, watched := transport.Watch(t.Context())
				one := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1})
				resp, err = hooked(t, toysWith(transport.Options{MaxBody: most}, one))(post(t, ctx, serve(t, send).URL, ask(false, addTool)))
				require.NoError(t, err)
				read(t, resp)
				require.Equal(t, validated, watched.Report().Status == middleware.Invalid, "answer, %s", name)
			}
		})
	}
}

// TestStreamsOfResponsesThatFail: a stream that ends with response.failed or
// response.incomplete does not keep the client waiting for the end of its line.
func TestStreamsOfResponsesThatFail(t *testing.T) {
	t.Parallel()
	s := responses()
	for name, end := range map[string]string{
		"failed":     namedEvent("response.failed", `{"type":"response.failed","sequence_number":7,"response":{"id":"x","object":"response","status":"failed","model":"m","output":[],"error":{"code":"server_error","message":"m"}}}`),
		"incomplete": namedEvent("response.incomplete", `{"type":"response.incomplete","sequence_number":7,"response":{"id":"x","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model":"m","output":[]}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body := namedEvent("response.created", `{"type":"response.created","sequence_number":0,"response":{"id":"x","object":"response","status":"in_progress","model":"m","output":[]}}`) + end
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1"+s.path, strings.NewReader(s.request(true)))
				require.NoError(t, err)
				start := time.Now()
				resp, err := transport.New(transport.Options{}, validate()).Hook(req, func(req *http.Request) (*http.Response, error) {
					r, w := io.Pipe()
					context.AfterFunc(req.Context(), func() { w.CloseWithError(req.Context().Err()) })
					go func() { _, _ = io.WriteString(w, body) }()
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: r, Request: req}, nil
				})
				require.NoError(t, err)
				require.Contains(t, read(t, resp), "response."+name)
				require.LessOrEqual(t, time.Since(start), time.Second)
			})
		})
	}
}

// TestAnswerAfterAnAlteredOne: the answer after one that failed, and whose text
// the chain had changed, is live all the same.
func TestAnswerAfterAnAlteredOne(t *testing.T) {
	t.Parallel()
	seen := make(chan bool)
	u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, event(toyAnswer{Text: "zero "}))
		panic(http.ErrAbortHandler)
	}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, event(toyAnswer{Text: "one "}))
		<-seen
		send(w, event(toyAnswer{Text: "two"})+event(usage(1, 1)))
	})
	alter := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		other := *req
		other.Sink = func(e middleware.Event) error {
			e.Text = strings.ToUpper(e.Text)
			return req.Sink(e)
		}
		if _, err := next(ctx, &other); err == nil {
			return nil, fmt.Errorf("the first answer did not fail")
		}
		return next(ctx, req)
	})
	resp, err := hooked(t, toysWith(transport.Options{Codecs: []wire.Codec{toy{}}}, alter))(post(t, t.Context(), u.URL, ask(true, addTool)))
	require.NoError(t, err)
	r := bufio.NewReader(resp.Body)
	require.Equal(t, event(toyAnswer{Text: "one "}), next(t, r))
	seen <- true
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, event(toyAnswer{Text: "two"})+event(usage(1, 1)), string(rest))
	require.NoError(t, resp.Body.Close())
}
