package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// through sends a request to a proxy to h as it stands, with CRLF for each
// newline, and returns the response as it came.
func through(t *testing.T, path string, h http.HandlerFunc, request string) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	to, err := url.Parse(s.URL + path)
	require.NoError(t, err)
	base := &http.Transport{DisableCompression: true}
	t.Cleanup(base.CloseIdleConnections)
	return sent(t, to, base, request)
}

// sent does it for a proxy that sends its requests by base.
func sent(t *testing.T, to *url.URL, base http.RoundTripper, request string) string {
	front := httptest.NewServer(proxy.New(to, base, func(w http.ResponseWriter, _ *http.Request, status int, code, message string) {
		http.Error(w, code+": "+message, status)
	}))
	t.Cleanup(front.Close)
	conn, err := net.Dial("tcp", strings.TrimPrefix(front.URL, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n"))
	require.NoError(t, err)
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	return strings.ReplaceAll(string(got), "\r\n", "\n")
}

const end = "HTTP/1.1\nHost: x\nConnection: close\n\n"

// TestTargetWithSpaces: HTTP/2 allows a space in a path. In HTTP/1 it would end the target.
func TestTargetWithSpaces(t *testing.T) {
	t.Parallel()
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI }))
	t.Cleanup(s.Close)
	to, err := url.Parse(s.URL)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.URL, err = url.ParseRequestURI("/a b|?c d")
	require.NoError(t, err)
	proxy.New(to, http.DefaultTransport, nil).ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, "/a%20b%7C?c%20d", got)
}

// TestLongStatus: over HTTP/2 a status may have more than three digits.
func TestLongStatus(t *testing.T) {
	t.Parallel()
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 2000, Body: http.NoBody, Request: r}, nil
	})
	w := httptest.NewRecorder()
	proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, func(w http.ResponseWriter, _ *http.Request, status int, code, _ string) {
		http.Error(w, code, status)
	}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusBadGateway, w.Code)
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/", "/base"} {
		for _, target := range []string{"/", "/a%2Fb", "/a|b", "/a%2Fb|c\"", "/ä^`{}", "/a//b/", "//a", "/x?a=1&b;c=%zz&=&&", "/x?", "/x??", "/50%25"} {
			var got string
			through(t, path, func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI }, "GET "+target+" "+end)
			want := strings.TrimSuffix(path, "/") + target
			if path == "/" && target == "//a" {
				want = target
			}
			require.Equal(t, want, got)
		}
	}
	var got string
	at := func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI }
	through(t, "", at, "GET //a|b "+end)
	require.Equal(t, "//a%7Cb", got, "net/url has no other form for it")

	s := httptest.NewServer(http.HandlerFunc(at))
	t.Cleanup(s.Close)
	to, err := url.Parse(s.URL)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "/a", nil)
	r.URL.RawPath = "/../|"
	proxy.New(to, http.DefaultTransport, nil).ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, "/a", got, "the path that was checked")
}

// Only hop-by-hop headers are removed, and those that Connection names.
func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	var got http.Header
	through(t, "", func(_ http.ResponseWriter, r *http.Request) { got = r.Header },
		"GET / HTTP/1.1\nHost: x\nForwarded: for=1.2.3.4\nX-Forwarded-For: 1.2.3.4\nX-Forwarded-Host: h\nX-Forwarded-Proto: https\n"+
			"X-Two: 1\nX-Two: 2\nX-None:\nX-Hop: 1\nKeep-Alive: 5\nConnection: close, x-hop, X-Forwarded-Host\n\n")
	require.Equal(t, http.Header{
		"Forwarded": {"for=1.2.3.4"}, "X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Proto": {"https"}, "X-Two": {"1", "2"}, "X-None": {""},
	}, got)
}

func TestTrailersOfARequest(t *testing.T) {
	t.Parallel()
	var got http.Header
	through(t, "", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got = r.Trailer
	}, "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nTrailer: X-Sum\nConnection: close\n\n1\na\n0\nX-Sum: 7\n\n")
	require.Equal(t, http.Header{"X-Sum": {"7"}}, got)
}

// A body that cannot be read is the client's fault, not the upstream's.
func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	read := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	for name, body := range map[string]string{
		"no size":      "x\na\n0\n\n",
		"a wrong size": "1\nab\n0\n\n",
		"too large":    "10000000000000000\na\n0\n\n",
	} {
		got := through(t, "", read, "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nConnection: close\n\n"+body)
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 400 Bad Request\n"), "%s: %s", name, got)
		require.Contains(t, got, "invalid_body: ")
	}
}

// A connection stays usable if the upstream answers, or fails, without reading
// the request.
func TestUnreadBodies(t *testing.T) {
	t.Parallel()
	to := &url.URL{Scheme: "http", Host: "upstream"}
	for name, base := range map[string]roundTripper{
		"an error": func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		"an answer": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 502, Body: http.NoBody}, nil
		},
	} {
		for range 20 {
			got := sent(t, to, base, "POST / HTTP/1.1\nHost: x\nContent-Length: 3\n\nabc"+"POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n1\na\n0\n\n"+"GET / "+end)
			require.Equal(t, 3, strings.Count(got, "HTTP/1.1 502 Bad Gateway\n"), "%s: %s", name, got)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Nothing is added to a response.
func TestResponses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play http.HandlerFunc
		want string
	}{
		"no date and no type": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
			w.Header().Set("Content-Length", "2")
			_, _ = io.WriteString(w, "hi")
		}, "HTTP/1.1 200 OK\nContent-Length: 2\nConnection: close\n\nhi"},
		"early hints": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.Header()["Date"] = nil
			w.WriteHeader(http.StatusNoContent)
		}, "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 204 No Content\nConnection: close\n\n"},
		"trailers": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
			w.Header().Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, "hi")
			w.Header().Set("X-Sum", "7")
		}, "HTTP/1.1 200 OK\nTrailer: X-Sum\nConnection: close\nTransfer-Encoding: chunked\n\n2\nhi\n0\nX-Sum: 7\n\n"},
	} {
		require.Equal(t, c.want, through(t, "", c.play, "GET / "+end), name)
	}
}

// A response without a length and a body gets no length.
func TestNoLength(t *testing.T) {
	t.Parallel()
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, ContentLength: -1, Header: http.Header{}, Request: r}, nil
	})
	for range 20 {
		require.Equal(t, "HTTP/1.1 200 OK\nConnection: close\nTransfer-Encoding: chunked\n\n0\n\n",
			sent(t, &url.URL{Scheme: "http", Host: "x"}, base, "GET / "+end))
	}
}

// readsLate is a response whose body reads the body of the request after its own
// first bytes have reached the client.
type readsLate struct {
	request io.Reader
	first   bool
}

func (b *readsLate) Read(p []byte) (int, error) {
	if !b.first {
		b.first = true
		return copy(p, "first "), nil
	}
	rest, err := io.ReadAll(b.request)
	if err != nil {
		return 0, err
	}
	return copy(p, fmt.Sprint(len(rest))), io.EOF
}

// The upstream may answer before it has read the request, and may look for its
// end while it answers.
func TestEarlyAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		read   int64 // bytes before the answer
		hidden bool  // a middleware around the proxy hides full duplex
		want   string
	}{{0, false, "first 6"}, {6, false, "first 0"}, {6, true, "first 0"}} {
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			if _, err := io.CopyN(io.Discard, r.Body, c.read); err != nil {
				return nil, err
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(&readsLate{request: r.Body}), ContentLength: 7, Header: http.Header{"Content-Length": {"7"}}, Request: r}, nil
		})
		h := proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.hidden {
				w = struct {
					http.ResponseWriter
					http.Flusher
				}{w, w.(http.Flusher)}
			}
			h.ServeHTTP(w, r)
		}))
		resp, err := front.Client().Post(front.URL, "", strings.NewReader("upload")) // the connection stays open: else net/http does nothing with the body
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.want, string(got))
		front.Close()
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The client gets the status 100 once: from the proxy, which reads the body.
func TestContinue(t *testing.T) {
	t.Parallel()
	got := through(t, "", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}, "POST / HTTP/1.1\nHost: x\nExpect: 100-continue\nContent-Length: 2\nConnection: close\n\nhi")
	require.Equal(t, 1, strings.Count(got, "100 Continue"), got)
	require.True(t, strings.HasSuffix(got, "\n\nhi"), got)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	never := func(http.ResponseWriter, *http.Request) { t.Error("the upstream got a request") }
	for request, want := range map[string]string{
		"CONNECT a:1 " + end:       "405 Method Not Allowed",
		"TRACE /v1/models " + end:  "405 Method Not Allowed",
		"trace /v1/models " + end:  "405 Method Not Allowed",
		"GET /a/../b " + end:       "400 Bad Request",
		"GET /%252e%252e/| " + end: "400 Bad Request",
	} {
		require.Contains(t, through(t, "", never, request), want)
	}
	gone := through(t, "", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fmt.Sprintf("GET /%s %s", "x", end))
	require.Contains(t, gone, "502 Bad Gateway")
	require.Contains(t, gone, "\nDate: ", "the proxy's own responses have one")
	require.Contains(t, gone, "upstream_unreachable: the connection to the upstream broke before the answer was complete")
}
