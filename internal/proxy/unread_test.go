package proxy_test

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// reads is a base that answers 401 when it has read some of the request.
func reads(some int64, body io.Reader) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		if _, err := io.CopyN(io.Discard, r.Body, some); err != nil && err != io.EOF {
			return nil, err
		}
		return &http.Response{StatusCode: http.StatusUnauthorized, ContentLength: -1, Header: http.Header{}, Body: io.NopCloser(body)}, nil
	}
}

// TestConnectionsOfUnreadBodies: a client whose request was not read to its end gets
// the whole response, and then its connection closes. It need not send the rest, and
// nothing of the rest is taken for a request.
func TestConnectionsOfUnreadBodies(t *testing.T) {
	t.Parallel()
	const (
		next    = "GET /next HTTP/1.1\nHost: x\n\n"
		chunked = "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n"
		plain   = "HTTP/1.1 401 Unauthorized\nTransfer-Encoding: chunked\n\n2\nno\n"
		told    = "HTTP/1.1 401 Unauthorized\nConnection: close\nTransfer-Encoding: chunked\n\n2\nno\n0\n\n"
	)
	no := strings.NewReader
	for name, c := range map[string]struct {
		base    roundTripper
		request string
		want    string
	}{
		"a client that waits for 100": {reads(0, no("no")), "POST / HTTP/1.1\nHost: x\nExpect: 100-continue\nContent-Length: 9\n\n", told},
		"a client that stalls":        {reads(2, no("no")), "POST / HTTP/1.1\nHost: x\nContent-Length: 9\n\nabc", plain + "0\n\n"},
		"a chunk without an end":      {reads(1, no("no")), chunked + "1\na\n1\nbc" + next, plain + "0\n\n"},
		"no chunk":                    {reads(1, no("no")), chunked + "1\na\nzz\n" + next, plain + "0\n\n"},
		"no trailer":                  {reads(1, no("no")), chunked + "1\na\n0\nGET /next HTTP/1.1\nA: b\n\n" + next, plain + "0\n\n"},
		"no chunk, and it was read":   {reads(9, no("no")), chunked + "1\na\nzz\n" + next, "HTTP/1.1 400 Bad Request\nConnection: close\nContent-Type: text/plain; charset=utf-8\nX-Content-Type-Options: nosniff\nTransfer-Encoding: chunked\n\nd\ninvalid_body\n\n0\n\n"},
		"a response that breaks off":  {reads(2, struct{ io.Reader }{io.MultiReader(no("no"), failing{})}), "POST / HTTP/1.1\nHost: x\nContent-Length: 9\n\nabc", plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			panics := &strings.Builder{}
			h := proxy.New(&url.URL{Scheme: "http", Host: "x"}, c.base, func(w http.ResponseWriter, _ *http.Request, status int, code, _ string) {
				w.Header()["Date"] = nil
				http.Error(w, code, status)
			})
			front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrapped{w}, r) }))
			front.Config.ErrorLog = log.New(panics, "", 0)
			front.Start()
			conn, err := net.Dial("tcp", front.Listener.Addr().String())
			require.NoError(t, err)
			require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
			_, err = io.WriteString(conn, strings.ReplaceAll(c.request, "\n", "\r\n"))
			require.NoError(t, err)
			got, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Equal(t, c.want, strings.ReplaceAll(string(got), "\r\n", "\n"))
			require.NoError(t, conn.Close())
			front.Close()
			require.Empty(t, panics.String())
		})
	}
}

// wrapped is the ResponseWriter of a middleware.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestBodyReadBefore: a middleware that has read the body may go on after the response,
// and so may the connection.
func TestBodyReadBefore(t *testing.T) {
	t.Parallel()
	h := proxy.New(&url.URL{Scheme: "http", Host: "x"}, reads(0, http.NoBody), nil)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		h.ServeHTTP(w, r)
		select {
		case <-r.Context().Done():
			t.Error(r.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}))
	t.Cleanup(front.Close)
	conn, err := net.Dial("tcp", front.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, strings.ReplaceAll("POST / HTTP/1.1\nHost: x\nExpect: 100-continue\nContent-Length: 2\n\nhi"+"GET / "+end, "\n", "\r\n"))
	require.NoError(t, err)
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(got), "HTTP/1.1 401 "), string(got))
}

// failing is a body that breaks off.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
