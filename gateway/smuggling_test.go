package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// raw sends bytes as they are to a server, and returns what comes back until
// the server closes the connection.
func raw(t *testing.T, url, request string) string {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, _ = io.WriteString(conn, request) // the server may close early
	_ = conn.(*net.TCPConn).SetLinger(0)
	back, _ := io.ReadAll(conn)
	return string(back)
}

// TestSmuggling: a request of two readings reaches the upstream in one of them
// at most. The second request of each connection has no client key, so the
// upstream must never see it.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	const (
		key  = "x-api-key: " + clientKey + "\r\n"
		head = "POST /v1/files HTTP/1.1\r\nHost: localhost\r\n" + key
		next = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	)
	for name, request := range map[string]string{
		"content-length and chunked":    head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next,
		"chunked and content-length":    head + "Transfer-Encoding: chunked\r\nContent-Length: " + strconv.Itoa(5+len(next)) + "\r\n\r\n0\r\n\r\n" + next,
		"two lengths":                   head + "Content-Length: 0\r\nContent-Length: " + strconv.Itoa(len(next)) + "\r\n\r\n" + next,
		"a list of lengths":             head + "Content-Length: 0, 0\r\n\r\n" + next,
		"a length with a sign":          head + "Content-Length: +0\r\n\r\n" + next,
		"a negative length":             head + "Content-Length: -1\r\n\r\n" + next,
		"a length in hex":               head + "Content-Length: 0x0\r\n\r\n" + next,
		"an unknown coding":             head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + next,
		"two codings":                   head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + next,
		"a list of codings":             head + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + next,
		"a quoted coding":               head + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" + next,
		"a vertical tab":                head + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + next,
		"a space before the colon":      head + "Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n" + next,
		"a folded line":                 head + "Transfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n\r\n" + next,
		"a folded first line":           "POST /v1/files HTTP/1.1\r\n Host: localhost\r\n" + key + "\r\n" + next,
		"bare line feeds":               strings.ReplaceAll(head+"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "\r\n", "\n") + next,
		"bare carriage returns":         head + "X: a\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + next,
		"an underscore":                 head + "Content_Length: 0\r\nTransfer_Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + next,
		"a null in a name":              head + "Content-Length\x00: 0\r\nContent-Length: 0\r\n\r\n" + next,
		"a chunk extension":             head + "Transfer-Encoding: chunked\r\n\r\n0;a=b\r\n\r\n" + next,
		"a line feed in an extension":   head + "Transfer-Encoding: chunked\r\n\r\n1;\nX\r\n0\r\n\r\n" + next,
		"a bare line end after a chunk": head + "Transfer-Encoding: chunked\r\n\r\n1\nX\n0\n\n" + next,
		"a chunk that is too long":      head + "Transfer-Encoding: chunked\r\n\r\n1\r\nXX\r\n0\r\n\r\n" + next,
		"a chunk size out of range":     head + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\nX\r\n0\r\n\r\n" + next,
		"a chunk size with a sign":      head + "Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n" + next,
		"a length in a trailer":         head + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 9\r\n\r\n" + next,
		"a key in a trailer":            "POST /v1/files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-Api-Key\r\n\r\n0\r\n" + key + "\r\n" + next,
		"a whole URL":                   "GET http://localhost/smuggled HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"a whole URL of another host":   "GET http://evil.example/smuggled HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"another scheme":                "GET file:///smuggled HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"a host and port":               "GET evil.example:80 HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"connect":                       "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n" + key + "Connection: close\r\n\r\n",
		"connect with a path":           "CONNECT /smuggled HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"an asterisk":                   "GET * HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"two hosts":                     "GET /smuggled HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n" + key + "Connection: close\r\n\r\n",
		"no host":                       "GET /smuggled HTTP/1.1\r\n" + key + "Connection: close\r\n\r\n",
		"a space in the path":           "GET /smuggled HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"no version":                    "GET /smuggled\r\n\r\n",
		"the preface of HTTP/2":         "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"dots":                          "GET /x/../smuggled HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"escaped dots":                  "GET /x/%2e%2e/smuggled HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"twice escaped dots":            "GET /x/%252e%252e%252fsmuggled HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"dots behind a backslash":       "GET /x/..\\smuggled HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"dots with a parameter":         "GET /x/..;a/smuggled HTTP/1.1\r\nHost: localhost\r\n" + key + "Connection: close\r\n\r\n",
		"the key of another connection": next,
		"an escaped line end in a path": "GET /a%0d%0aX-Api-Key:%20" + clientKey + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"a key that Connection removes": "GET /smuggled HTTP/1.1\r\nHost: localhost\r\nConnection: x-toolmend-key, close\r\n\r\n",
		"a credential that it removes":  "GET /smuggled HTTP/1.1\r\nHost: localhost\r\nConnection: authorization, close\r\n\r\n",
		"a pipelined request":           "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + key + "\r\n" + next,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []string
			var mu sync.Mutex
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header, " ", string(body)))
				if len(r.TransferEncoding) > 0 && r.Header.Get("Content-Length") != "" || r.Header.Get("Authorization") != "Bearer up" {
					t.Error("two framings, or no credential")
				}
			}))
			t.Cleanup(s.Close)
			url := serve(t, gateway.Config{Listen: ":1", Access: gateway.Access{ClientKeyFile: keyFile(t, clientKey)},
				Upstreams: []gateway.Upstream{{URL: s.URL + "/base", Headers: gateway.HeaderRules{Set: map[string]string{"Authorization": "Bearer up"}}}}})
			back := raw(t, url, request)
			mu.Lock()
			defer mu.Unlock()
			require.LessOrEqual(t, len(seen), 1)
			require.NotContains(t, back, clientKey)
			for _, r := range seen {
				require.NotContains(t, r, clientKey)
				require.NotRegexp(t, `^\S+ \S*smuggled`, r)
				require.Regexp(t, `^\S+ /base/`, r, "below the path of the upstream")
			}
		})
	}
}
