package transport_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// never is a middleware that no request may reach.
func never(t *testing.T) middleware.Middleware {
	return func(middleware.ModelCall) middleware.ModelCall {
		return func(_ ctx, _ *middleware.Request) (*middleware.Response, error) {
			t.Error("the chain was asked")
			return nil, errors.New("asked")
		}
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

// TestRequestsThatPass: no byte, no header and no framing of them changes.
func TestRequestsThatPass(t *testing.T) {
	t.Parallel()
	cases := map[string]func(r *http.Request){
		"another method":       func(r *http.Request) { r.Method = http.MethodPut },
		"another path":         func(r *http.Request) { r.URL.Path = "/v1/files" },
		"another body":         func(r *http.Request) { setBody(r, `{"model":"toy"`) },
		"no body":              func(r *http.Request) { r.Body, r.GetBody, r.ContentLength = nil, nil, 0 },
		"SigV4":                func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x") },
		"Azure's HMAC":         func(r *http.Request) { r.Header.Set("Authorization", "HMAC-SHA256 Credential=x&Signature=y") },
		"Tencent's HMAC":       func(r *http.Request) { r.Header.Set("Authorization", "TC3-HMAC-SHA256 Credential=x") },
		"Oracle's signature":   func(r *http.Request) { r.Header.Set("Authorization", `Signature version="1"`) },
		"a hash of the body":   func(r *http.Request) { r.Header.Set("X-Ms-Content-Sha256", "x") },
		"SigV4 in the query":   func(r *http.Request) { r.URL.RawQuery = "X-Amz-Signature=x" },
		"a signature":          func(r *http.Request) { r.Header.Set("Signature", "sig1=:x:") },
		"a digest":             func(r *http.Request) { r.Header.Set("Content-Digest", "sha-256=:x:") },
		"compressed":           func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip"); setBody(r, zipped(ask(false))) },
		"too big":              func(r *http.Request) { setBody(r, ask(false)+strings.Repeat(" ", 2000)) },
		"too big, no length":   func(r *http.Request) { setBody(r, ask(false)+strings.Repeat(" ", 2000)); r.ContentLength = -1 },
		"other, no length":     func(r *http.Request) { setBody(r, "hello"); r.ContentLength = -1 },
		"trailers":             func(r *http.Request) { r.Trailer, r.ContentLength = http.Header{"X-Sum": nil}, -1 },
		"other, cannot rewind": func(r *http.Request) { setBody(r, "hello"); r.GetBody = nil },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchange := func(do doer, u *upstream) (*http.Request, string, string) {
				r := post(t, t.Context(), u.URL, ask(false), "Idempotency-Key", "one", "Accept-Encoding", "br")
				change(r)
				resp, err := do(r)
				require.NoError(t, err)
				got := read(t, resp)
				require.Equal(t, "br", resp.Header.Get("Content-Encoding"))
				return u.got[0], string(u.body[0]), got
			}
			bare := &http.Client{Transport: &http.Transport{}}
			defer bare.CloseIdleConnections()
			reply := answer(http.StatusOK, badCall, "Content-Encoding", "br")
			want, wantBody, wantAnswer := exchange(bare.Do, serve(t, reply))
			got, gotBody, gotAnswer := exchange(hooked(t, toysWith(transport.Options{MaxBody: 1000}, never(t))), serve(t, reply))
			require.Equal(t, want.Header, got.Header)
			require.Equal(t, want.Method+want.URL.String(), got.Method+got.URL.String())
			require.Equal(t, want.ContentLength, got.ContentLength)
			require.Equal(t, want.TransferEncoding, got.TransferEncoding)
			require.Equal(t, wantBody, gotBody)
			require.Equal(t, wantAnswer, gotAnswer)
		})
	}
}

func setBody(r *http.Request, body string) {
	r.Body = io.NopCloser(strings.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	r.ContentLength = int64(len(body))
}

func TestRequestBodyFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	closed := false
	r := post(t, t.Context(), "http://127.0.0.1:1", "")
	r.Body = struct {
		io.Reader
		io.Closer
	}{iotest.ErrReader(broken), closeFunc(func() error { closed = true; return nil })}
	_, err := hooked(t, toys(never(t)))(r)
	require.ErrorIs(t, err, broken)
	require.True(t, closed)
}

// TestWrongLength: the client's mistake stays the client's.
func TestWrongLength(t *testing.T) {
	t.Parallel()
	r := post(t, t.Context(), "http://127.0.0.1:1", ask(false))
	r.ContentLength = 5
	p := &provider{status: http.StatusOK, body: words}
	resp, err := toys(never(t)).Hook(r, func(out *http.Request) (*http.Response, error) {
		require.EqualValues(t, 5, out.ContentLength)
		b, err := io.ReadAll(out.Body)
		require.NoError(t, err)
		require.Equal(t, ask(false), string(b))
		return p.do(out)
	})
	require.NoError(t, err)
	read(t, resp)
}

type closeFunc func() error

func (f closeFunc) Close() error { return f() }

// TestAnswersThatPass: what is not an answer of the format reaches the client as
// the provider sent it, although the chain would have raised an error.
func TestAnswersThatPass(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		status int
		body   string
		header []string
	}{ // none of them may hold a call
		"HTML":                       {200, "<html>", []string{"Content-Type", "text/html; charset=utf-8"}},
		"HTML that says it is JSON":  {200, "<html>", nil},
		"JSON of another form":       {200, `{"object":"list"}`, nil},
		"half of an answer":          {200, words[:10], nil},
		"events of another form":     {200, "data: {\"object\":1}\n\ndata: [DONE]\n\n", []string{"Content-Type", "text/event-stream"}},
		"an array":                   {200, "[1]", nil},
		"nothing":                    {200, "", nil},
		"no content":                 {204, "", nil},
		"a redirect without a place": {304, "", []string{"Etag", "x"}},
		"too big an error":           {500, strings.Repeat("x", 2000), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
				u := serve(t, answer(c.status, c.body, c.header...))
				do, at := with(toysWith(transport.Options{MaxBody: 1000}, failing(errors.New("changed"))), u)
				resp, err := do(post(t, t.Context(), at, ask(false, addTool), "Accept-Encoding", "br"))
				require.NoError(t, err)
				require.Equal(t, c.status, resp.StatusCode)
				require.Equal(t, c.body, read(t, resp))
				for i := 0; i < len(c.header); i += 2 {
					require.Equal(t, c.header[i+1], resp.Header.Get(c.header[i]))
				}
				require.NoError(t, transport.Cause(resp))
				mark := ""
				if c.status == http.StatusOK && c.body != "" {
					mark = "unchecked"
				}
				require.Equal(t, mark, resp.Header.Get("X-Toolmend-Status"))
			})
		})
	}
}

// TestForeignStreamFlows: without tools its bytes do not wait for its end, and outlive the
// contexts that the chain had made.
func TestForeignStreamFlows(t *testing.T) {
	t.Parallel()
	seen := make(chan bool)
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, "data: {\"object\":1}\n\n")
		<-seen
		send(w, "data: {\"object\":2}\n\n")
	})
	resp, err := hooked(t, toys(limited(time.Hour)))(post(t, t.Context(), u.URL, ask(true)))
	require.NoError(t, err)
	b := make([]byte, 100)
	n, err := resp.Body.Read(b)
	require.NoError(t, err)
	require.Equal(t, "data: {\"object\":1}\n\n", string(b[:n]))
	close(seen)
	require.Equal(t, "data: {\"object\":2}\n\n", read(t, resp))
}

// TestForeignStreamEndsWithItsClient: by a close of the body, and by the
// context.
func TestForeignStreamEndsWithItsClient(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"close", "cancel"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			gone := make(chan bool)
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				send(w, "data: {\"object\":1}\n\n")
				<-r.Context().Done()
				close(gone)
			})
			ctx, cancel := contextWithCancel(t)
			resp, err := hooked(t, toys())(post(t, ctx, u.URL, ask(true)))
			require.NoError(t, err)
			if how == "cancel" {
				cancel()
				_, err = io.ReadAll(resp.Body)
				require.ErrorIs(t, err, ctx.Err())
			}
			require.NoError(t, resp.Body.Close())
			<-gone
		})
	}
}

// TestForeignAnswerNotTaken: one that the chain asked past is closed.
func TestForeignAnswerNotTaken(t *testing.T) {
	t.Parallel()
	closed, calls := make(chan bool), 0
	twice := around(func(ctx ctx, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
		if resp, err := next(ctx, req); err == nil {
			return resp, nil
		}
		return next(ctx, req)
	})
	p := &provider{status: http.StatusOK, body: words}
	resp, err := toys(twice).Hook(post(t, t.Context(), "http://127.0.0.1:1", ask(false)), func(r *http.Request) (*http.Response, error) {
		resp, err := p.do(r)
		if calls++; calls == 1 {
			resp.Header.Set("Content-Type", "text/html")
			resp.Body = struct {
				io.Reader
				io.Closer
			}{resp.Body, closeFunc(func() error { close(closed); return nil })}
		}
		return resp, err
	})
	require.NoError(t, err)
	require.Equal(t, words, read(t, resp))
	<-closed
}

func TestCompressedAnswer(t *testing.T) {
	t.Parallel()
	t.Run("is read and comes inflated", func(t *testing.T) {
		t.Parallel()
		u := serve(t, answer(http.StatusOK, zipped(badCall), "Content-Encoding", "gzip"), answer(http.StatusOK, zipped(goodCall), "Content-Encoding", "gzip"))
		resp, err := hooked(t, toys(validate()))(post(t, t.Context(), u.URL, ask(false, addTool), "Accept-Encoding", "gzip"))
		require.NoError(t, err)
		require.Contains(t, read(t, resp), "c2")
		require.Empty(t, resp.Header.Get("Content-Encoding"))
		require.Equal(t, "gzip", u.got[0].Header.Get("Accept-Encoding"))
	})
	t.Run("is bounded", func(t *testing.T) {
		t.Parallel()
		u := serve(t, answer(http.StatusOK, zipped(badCall+strings.Repeat(" ", 1<<20)), "Content-Encoding", "gzip"))
		resp, err := hooked(t, toysWith(transport.Options{MaxBody: 5000}))(post(t, t.Context(), u.URL, ask(false), "Accept-Encoding", "gzip"))
		require.NoError(t, err)
		require.Equal(t, badCall+strings.Repeat(" ", 1<<20), read(t, resp))
	})
	t.Run("an error comes as it was sent", func(t *testing.T) {
		t.Parallel()
		u := serve(t, answer(http.StatusBadRequest, zipped(`{"error":"refused"}`), "Content-Encoding", "gzip"), answer(http.StatusOK, words),
			answer(http.StatusBadRequest, zipped(`{"error":"no"}`), "Content-Encoding", "gzip"))
		do := hooked(t, toys(validate()))
		resp, err := do(post(t, t.Context(), u.URL, ask(false, addTool), "Accept-Encoding", "gzip"))
		require.NoError(t, err)
		require.Equal(t, words, read(t, resp), "the refusal was understood")
		resp, err = do(post(t, t.Context(), u.URL, ask(false, addTool), "Accept-Encoding", "gzip"))
		require.NoError(t, err)
		require.Equal(t, zipped(`{"error":"no"}`), read(t, resp))
		require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	})
	t.Run("is none", func(t *testing.T) {
		t.Parallel()
		u := serve(t, answer(http.StatusOK, words, "Content-Encoding", "gzip"))
		_, err := hooked(t, toys())(post(t, t.Context(), u.URL, ask(false), "Accept-Encoding", "gzip"))
		require.ErrorIs(t, err, gzip.ErrHeader)
	})
}

func TestBrokenOptionsAndUpstreams(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { transport.Handler(nil) })
	_, err := toys().Hook(post(t, t.Context(), "http://127.0.0.1:1", ask(false)), func(*http.Request) (*http.Response, error) { return nil, nil })
	require.Error(t, err)
}
