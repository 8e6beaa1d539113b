package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// slowBody sends text after a time, and then nothing for as long again.
type slowBody struct {
	ctx  context.Context
	wait time.Duration
	text string
}

func (b *slowBody) Read(p []byte) (int, error) {
	select {
	case <-time.After(b.wait):
	case <-b.ctx.Done():
		return 0, context.Cause(b.ctx)
	}
	if b.text == "" {
		return 0, io.EOF
	}
	n := copy(p, b.text)
	b.text = b.text[n:]
	return n, nil
}

func (b *slowBody) Close() error { return nil }

// A further model call has a time limit until its first byte, if there is a response already.
func TestReaskTimeout(t *testing.T) {
	t.Parallel()
	raises := argsvalidate.New(argsvalidate.Options{})
	passes := argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass})
	again := around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		if _, err := next(ctx, req); err == nil {
			return nil, errors.New("the first call did not fail")
		}
		return next(ctx, req)
	})
	for name, c := range map[string]struct {
		options transport.Options
		chain   middleware.Middleware
		first   string        // "" is a network error
		header  time.Duration // until the headers of the second response
		body    time.Duration // from then until its first byte, and from then to its end
		gone    time.Duration // when the client cancels
		took    time.Duration
		want    string
		err     error
	}{
		"the headers are late":            {chain: passes, first: badCall, header: time.Hour, took: time.Minute, want: badCall},
		"the body is late":                {chain: passes, first: badCall, header: 30 * time.Second, body: time.Hour, took: time.Minute, want: badCall},
		"in time":                         {chain: passes, first: badCall, header: 20 * time.Second, body: 39 * time.Second, took: 98 * time.Second, want: goodCall},
		"another limit":                   {options: transport.Options{ReaskTimeout: time.Second}, chain: passes, first: badCall, header: 2 * time.Second, took: time.Second, want: badCall},
		"no limit":                        {options: transport.Options{ReaskTimeout: transport.Off}, chain: passes, first: badCall, header: time.Hour, took: time.Hour, want: goodCall},
		"raise":                           {chain: raises, first: badCall, header: time.Hour, took: time.Minute, err: os.ErrDeadlineExceeded},
		"the client cancels":              {chain: passes, first: badCall, header: time.Hour, gone: 10 * time.Second, took: 10 * time.Second, err: context.Canceled},
		"a retry, without a response yet": {chain: again, header: time.Hour, took: time.Hour, want: goodCall},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				next := func(r *http.Request) (*http.Response, error) {
					if calls++; calls == 1 {
						if c.first == "" {
							return nil, errors.New("reset")
						}
						return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: io.NopCloser(strings.NewReader(c.first))}, nil
					}
					select {
					case <-time.After(c.header):
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
					return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: &slowBody{r.Context(), c.body, goodCall}}, nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.gone > 0 {
					time.AfterFunc(c.gone, cancel)
				}
				start := time.Now()
				resp, err := toysWith(c.options, c.chain).Hook(post(t, ctx, "http://provider", ask(false, addTool)), next)
				require.ErrorIs(t, err, c.err)
				if c.err == nil {
					require.Equal(t, c.want, read(t, resp))
				}
				require.Equal(t, c.took, time.Since(start))
				require.Equal(t, 2, calls)
			})
		})
	}
}

// A live stream whose own response is complete ends with the format's failure event if the
// re-ask fails, whatever the reason is: the client's connection is sound.
func TestFailedReaskOfLiveStream(t *testing.T) {
	t.Parallel()
	breaks := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, s := range speeches() {
		for form, second := range map[string]http.HandlerFunc{
			"breaks": breaks,
			"a page": answer(http.StatusOK, "<html>Sign in</html>", "Content-Type", "text/html"),
			"429":    answer(http.StatusTooManyRequests, string(s.codec.EncodeError(429, "", "slow down"))),
		} {
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				path, streamed, _ := strings.Cut(s.path, " ")
				if streamed != "" {
					path = streamed
				}
				u := serve(t, answer(http.StatusOK, s.stream("one ", `{}`), "Content-Type", s.kind), second)
				resp, err := http.Post(proxy(t, transport.New(transport.Options{}, validate()), u.URL)+path, "application/json", strings.NewReader(s.request(true)))
				require.NoError(t, err)
				b, err := io.ReadAll(resp.Body)
				require.NoError(t, err, "the body ends properly")
				require.NoError(t, resp.Body.Close())
				require.Contains(t, string(b), "one ")
				asked, err := s.codec.DecodeRequest([]byte(s.request(true)))
				require.NoError(t, err)
				_, err = s.codec.DecodeResponse(asked, b)
				var refusal *middleware.ModelError
				require.ErrorAs(t, err, &refusal, "the format itself reads it as an error")
				if form != "429" {
					require.Equal(t, "invalid_tool_call", resp.Trailer.Get("X-Toolmend-Error"))
					require.Contains(t, string(b), "n is missing")
				}
			})
		}
	}
}

// A call that the provider could not read is a response too: its re-ask has the limit.
func TestReaskTimeoutAfterAnUnreadCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const unread = `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"malformed_function_call"}]}`
		calls, start := 0, time.Now()
		next := func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: io.NopCloser(strings.NewReader(unread))}, nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]}`))
		require.NoError(t, err)
		resp, err := transport.New(transport.Options{}, argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass})).Hook(req, next)
		require.NoError(t, err)
		require.Equal(t, unread, read(t, resp))
		require.Equal(t, "invalid", resp.Header.Get("X-Toolmend-Status"))
		require.Equal(t, 2, calls)
		require.Equal(t, time.Minute, time.Since(start))
	})
}
