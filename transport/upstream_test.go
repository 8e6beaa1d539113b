package transport_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

// raw sends one request line to a server as it stands.
func raw(t *testing.T, address, method, target string) *http.Response {
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, target)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodGet})
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// TestHandlerStaysBelowItsUpstream: no spelling of dot segments reaches it.
func TestHandlerStaysBelowItsUpstream(t *testing.T) {
	t.Parallel()
	at := proxy(t, toys(), serve(t).URL+"/base/v1")
	for _, target := range []string{"/../../admin", "/a/../../../admin", "/%2e%2e/admin", "/.%2E/admin", "/..%2fadmin", "/a%2f..%2f..%2fadmin",
		`/..\admin`, "/..%5cadmin", "/..;x=y/admin", "/%252e%252e/admin", "/..%252fadmin", "/%25252e./admin", "/..", "/x/..%20/admin"} {
		require.Equal(t, http.StatusBadRequest, raw(t, at, http.MethodGet, target).StatusCode, target)
	}
	require.Equal(t, http.StatusMethodNotAllowed, raw(t, at, http.MethodConnect, "host:443").StatusCode)
}

func TestHandlerLetsOtherPathsThrough(t *testing.T) {
	t.Parallel()
	ok := answer(200, "ok")
	u := serve(t, ok, ok, ok, ok)
	at := proxy(t, toys(), u.URL+"/base")
	for i, target := range []string{"/v1/models/a%2Fb", "/v1/files/..a/b..", "/v1/x/./y", "/v1/50%25"} {
		require.Equal(t, http.StatusOK, raw(t, at, http.MethodGet, target).StatusCode, target)
		require.Equal(t, "/base"+target, u.got[i].URL.RequestURI())
	}
}

// TestSpellingsOfPaths: servers take them for the path of a model call.
func TestSpellingsOfPaths(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		path, _, _ := strings.Cut(s.path, " ")
		slash := strings.LastIndexByte(path, '/')
		for _, target := range []string{path, path + "/", path + "%20", strings.ToUpper(path), path[:slash] + "/" + path[slash:], path[:slash] + "/." + path[slash:], path + ";v=1"} {
			u := serve(t, answer(200, s.whole("hi", `{}`)), answer(200, s.whole("hi", `{"n":1}`)))
			at := proxy(t, transport.New(transport.Options{}, validate()), u.URL)
			resp, err := http.Post(at+target, "application/json", strings.NewReader(s.request(false)))
			require.NoError(t, err)
			read(t, resp)
			require.Equal(t, "valid", resp.Header.Get("X-Toolmend-Status"), "%s %s", name, target)
		}
	}
}

// TestHandlerValidatesWhatItsClientSigned: a header of the client does not
// switch validation off, and a digest does not go with another body.
func TestHandlerValidatesWhatItsClientSigned(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *http.Request){
		"a digest":            func(r *http.Request) { r.Header.Set("Content-Digest", "sha-256=:x:") },
		"a signature in it":   func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 x") },
		"SigV4 in the query":  func(r *http.Request) { r.URL.RawQuery = "X-Amz-Signature=1" },
		"a trailer":           func(r *http.Request) { r.Trailer, r.ContentLength = http.Header{"X-Sum": {"1"}}, -1 },
		"an announced digest": func(r *http.Request) { r.Trailer, r.ContentLength = http.Header{"Content-Digest": {"1"}}, -1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, answer(200, badCall), answer(200, goodCall))
			at := proxy(t, toys(validate()), u.URL)
			r := post(t, t.Context(), at, ask(false, addTool))
			change(r)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			resp, err := client.Do(r)
			require.NoError(t, err)
			require.Contains(t, read(t, resp), "c2")
			require.Equal(t, r.Header.Get("Content-Digest"), u.got[0].Header.Get("Content-Digest"))
			require.Empty(t, u.got[1].Header.Get("Content-Digest"))
			require.Empty(t, u.got[1].Trailer)
		})
	}
}

// TestUpstreamsOwnMarks: headers and trailers of this package that an upstream
// sends do not reach the client of a Handler.
func TestUpstreamsOwnMarks(t *testing.T) {
	t.Parallel()
	for _, announce := range []bool{true, false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			key := http.TrailerPrefix + "X-Toolmend-Status"
			if announce {
				key = "X-Toolmend-Status"
				w.Header().Set("Trailer", key+", X-Sum")
			}
			w.Header().Set("X-Toolmend-Anything", "1")
			send(w, "body")
			w.Header().Set(key, "valid")
			w.Header().Set("X-Sum", "7")
		}))
		t.Cleanup(s.Close)
		to, err := url.Parse(s.URL)
		require.NoError(t, err)
		front := httptest.NewServer(toys().Handler(to))
		t.Cleanup(front.Close)
		resp, err := http.Get(front.URL + "/v1/models")
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "body", string(b))
		require.Empty(t, resp.Header.Get("X-Toolmend-Anything"))
		require.Empty(t, resp.Trailer.Get("X-Toolmend-Status"))
		if announce {
			require.Equal(t, "7", resp.Trailer.Get("X-Sum"))
		}
	}
}
