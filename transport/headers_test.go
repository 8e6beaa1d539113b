package transport_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// TestStatus: the client can see what is known about the calls that it got: in a
// header, of streams in a trailer and, of an invalid one, in a comment.
func TestStatus(t *testing.T) {
	t.Parallel()
	pass := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1})
	unread := func(next middleware.ModelCall) middleware.ModelCall { // as textcall marks a text that it cannot read
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			resp, err := next(ctx, req)
			if err != nil {
				return nil, err
			}
			marked := *resp
			marked.Report.Status = middleware.Invalid
			return &marked, nil
		}
	}
	type want struct{ status, code string }
	for name, s := range speeches() {
		for what, c := range map[string]struct {
			tr        *transport.Transport
			arguments []string
			want      want
		}{
			"no call":   {transport.New(transport.Options{}, pass), nil, want{}},
			"unread":    {transport.New(transport.Options{}, unread), nil, want{status: "invalid"}},
			"valid":     {transport.New(transport.Options{}, pass), []string{`{"n":1}`}, want{status: "valid"}},
			"invalid":   {transport.New(transport.Options{}, pass), []string{`{}`}, want{status: "invalid"}},
			"unchecked": {transport.New(transport.Options{}), []string{`{}`}, want{status: "unchecked"}},
			"held":      {transport.New(transport.Options{Hold: true}, pass), []string{`{}`}, want{status: "invalid"}},
			"raised":    {transport.New(transport.Options{}, raise), []string{`{}`}, want{code: "invalid_tool_call"}},
		} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/stream=%t", name, what, stream), func(t *testing.T) {
					t.Parallel()
					path, streamed, _ := strings.Cut(s.path, " ")
					sent, kind := s.whole("hi", c.arguments...), "application/json"
					if stream {
						sent, kind = s.stream("hi", c.arguments...), s.kind
						if streamed != "" {
							path = streamed
						}
					}
					if len(c.arguments) == 0 {
						sent = stops(sent)
					}
					// an upstream that says it itself is not believed
					u := serve(t, answer(200, sent, "Content-Type", kind, "X-Toolmend-Status", "forged", "X-Toolmend-Error", "forged"))
					at := proxy(t, c.tr, u.URL)
					resp, err := http.Post(at+path, "application/json", strings.NewReader(s.request(stream)))
					require.NoError(t, err)
					b, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
					in, other := resp.Header, resp.Trailer
					if stream && what != "held" {
						in, other = resp.Trailer, resp.Header
					}
					require.Equal(t, c.want, want{strings.Join(in.Values("X-Toolmend-Status"), ", "), in.Get("X-Toolmend-Error")})
					require.Empty(t, other.Get("X-Toolmend-Status"))
					if c.want.code != "" {
						return
					}
					got, marked := strings.CutSuffix(string(b), ": toolmend status=invalid\n\n")
					require.Equal(t, stream && c.want.status == "invalid" && name != "gemini" && name != "ollama", marked)
					s.requireSame(t, sent, got)
				})
			}
		}
	}
}

// TestStatusOfWatch: a client that hides the response reads it there.
func TestStatusOfWatch(t *testing.T) {
	t.Parallel()
	pass := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})
	for body, want := range map[string]string{words: "", goodCall: "valid", badCall: "invalid", "<html>": "unchecked", string(toyStream(toyAnswer{Text: "a"}, toyAnswer{End: true}, call("c1", "{}"))): "invalid"} {
		ctx, watched := transport.Watch(t.Context())
		resp, err := hooked(t, toys(pass))(post(t, ctx, serve(t, answer(200, body)).URL, ask(strings.HasPrefix(body, "data:"), addTool)))
		require.NoError(t, err)
		read(t, resp)
		require.Equal(t, want, watched.Status(), body)
	}
	ctx, watched := transport.Watch(t.Context())
	resp, err := hooked(t, toys(never(t)))(post(t, ctx, serve(t, answer(200, badCall)).URL, ask(false, addTool), "Content-Digest", "x"))
	require.NoError(t, err)
	read(t, resp)
	require.Equal(t, "unchecked", watched.Status(), "past the chain")
	require.Equal(t, "unchecked", resp.Header.Get("X-Toolmend-Status"))
}

// TestFigures: with Options.Figures the client sees what its answer cost, in
// headers or, of a live stream, in trailers.
func TestFigures(t *testing.T) {
	t.Parallel()
	speech := chat()
	for _, stream := range []bool{false, true} {
		script := []http.HandlerFunc{}
		for _, arguments := range []string{`{}`, `{"n":"1"}`} { // invalid, then a number as text
			body, kind := speech.whole("hi", arguments), "application/json"
			if stream {
				body, kind = speech.stream("hi", arguments), speech.kind
			}
			script = append(script, answer(200, body, "Content-Type", kind))
		}
		tr := transport.New(transport.Options{Figures: true}, argsvalidate.New(argsvalidate.Options{}))
		ctx, watched := transport.Watch(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, serve(t, script...).URL+speech.path, strings.NewReader(speech.request(stream)))
		require.NoError(t, err)
		resp, err := (&http.Client{Transport: tr.RoundTripper(nil)}).Do(req)
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		h := resp.Header
		if stream {
			h = resp.Trailer
		}
		require.Equal(t, "valid", h.Get("X-Toolmend-Status"))
		require.Equal(t, "2", h.Get("X-Toolmend-Attempts"))
		require.Equal(t, "1", h.Get("X-Toolmend-Repaired"))
		require.Regexp(t, `^\d+\.\d{3}$`, h.Get("X-Toolmend-Overhead-Ms"))
		require.Positive(t, watched.ModelTime())
	}
}

// TestClient: Request.Client is a hash that tells clients apart, and never has a credential in it.
func TestClient(t *testing.T) {
	t.Parallel()
	const credential = "sk-0123456789abcdef"
	clientFrom := func(o transport.Options) func(set func(*http.Request)) string {
		o.Client = func(r *http.Request) string { return r.Header.Get("X-Name") }
		var client string
		tr := transport.New(o, around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (*middleware.Response, error) {
			client = req.Client
			return next(ctx, req)
		}))
		return func(set func(*http.Request)) string {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://provider.example/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[]}`))
			require.NoError(t, err)
			set(req)
			_, err = tr.Hook(req, func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			return client
		}
	}
	client, other := clientFrom(transport.Options{}), clientFrom(transport.Options{})
	nobody := client(func(*http.Request) {})
	hashes := []string{nobody}
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Toolmend-Key", "X-Name", "key", "host"} {
		with := func(value string) func(*http.Request) {
			return func(r *http.Request) {
				switch name {
				case "key":
					r.URL.RawQuery = "key=" + value
				case "host":
					r.URL.Host = value
				default:
					r.Header.Set(name, value)
				}
			}
		}
		hash := client(with(credential))
		require.NotContains(t, hash, credential)
		require.NotEqual(t, hash, other(with(credential)), "another Transport")
		require.Equal(t, hash, client(with(credential)), "the same client")
		require.NotContains(t, hashes, hash, "another client: %s", name)
		hashes = append(hashes, hash, client(with(credential+"x")))
		require.NotEqual(t, hash, hashes[len(hashes)-1])
	}
}
