package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// TestReloadKeepsListeners: the address decides whether a key is demanded, and a
// reload does not move the listener.
func TestReloadKeepsListeners(t *testing.T) {
	t.Parallel()
	to, _ := echo(t)
	credential := gateway.HeaderRules{Set: map[string]string{"Authorization": "Bearer k"}}
	c := gateway.Config{Listen: "0.0.0.0:1", Access: gateway.Access{ClientKeyFile: keyFile(t, clientKey)}, Upstreams: []gateway.Upstream{{URL: to, Headers: credential}}}
	g, err := gateway.New(c, gateway.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	require.ErrorContains(t, g.Reload(gateway.Config{Listen: "127.0.0.1:1", Upstreams: c.Upstreams}), "clients need a key")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest("GET", "/v1/models", nil))
	require.Equal(t, http.StatusUnauthorized, w.Code)
}

// TestMaxConcurrent: all requests to an upstream share its places, in each mode.
func TestMaxConcurrent(t *testing.T) {
	t.Parallel()
	for _, mode := range []gateway.Mode{gateway.Enforce, gateway.Repair, gateway.Observe} {
		var now, most atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, chatAnswer(good))
		}))
		url := serve(t, gateway.Config{Settings: gateway.Settings{Mode: mode}, Upstreams: []gateway.Upstream{{
			URL: s.URL, MaxConcurrent: 2, ModelRules: []gateway.ModelRule{{Match: "b", Settings: gateway.Settings{Attempts: 2}}}}}})
		done := make(chan int)
		for i := range 24 {
			go func() {
				path := []string{"/v1/chat/completions", "/v1/embeddings"}[i%2]
				resp, err := http.Post(url+path, "application/json", strings.NewReader(chatRequest([]string{"a", "b", "c"}[i%3])))
				if err != nil {
					done <- 0
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				done <- resp.StatusCode
			}()
		}
		for range 24 {
			require.Equal(t, http.StatusOK, <-done)
		}
		require.LessOrEqual(t, most.Load(), int32(2), mode)
		s.Close()
	}
}

// socket is an upstream that switches to whatever protocol is asked for, and
// echoes. asked returns the protocol of the last request.
func socket(t *testing.T) (url string, asked func() string) {
	var last atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last.Store(r.Header.Get("Upgrade"))
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, chatAnswer(good))
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\nX-Kept: 1\r\n\r\n")
		line, err := rw.ReadString('\n')
		if err == nil {
			_, _ = io.WriteString(conn, "echo "+line)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() string { s, _ := last.Load().(string); return s }
}

// records gets the lines of a log.
type records chan string

func (r records) Write(p []byte) (int, error) {
	r <- string(p)
	return len(p), nil
}

// TestWebSockets: the calls of a WebSocket cannot be validated, so one on the
// path of a model call is refused, or passed and counted as unchecked. On other paths a
// WebSocket passes, and every other upgrade is left out: through h2c a client could send model calls.
func TestWebSockets(t *testing.T) {
	t.Parallel()
	body := chatRequest("m")
	post := fmt.Sprintf("POST %%s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: %%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	get := "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Version: 13\r\n\r\n"
	for name, c := range map[string]struct {
		settings      gateway.Settings
		request       string
		path, upgrade string
		status        int
		logged        bool
	}{
		"a model call":               {gateway.Settings{}, get, "/v1/responses", "websocket", 426, false},
		"a model call, repair":       {gateway.Settings{Mode: gateway.Repair}, get, "/v1/responses", "WebSocket", 426, false},
		"a model call by POST":       {gateway.Settings{}, post, "/v1/chat/completions", "websocket", 426, false},
		"a model call, passed":       {gateway.Settings{WebSockets: gateway.PassWebSockets}, get, "/v1/responses", "websocket", 101, true},
		"a model call over HTTP/2":   {gateway.Settings{}, post, "/v1/chat/completions", "h2c", 200, false},
		"a model call, another one":  {gateway.Settings{}, get, "/v1/chat/completions", "other", 426, false},
		"a list of protocols":        {gateway.Settings{}, post, "/v1/chat/completions", "h2c, websocket", 426, false},
		"another path":               {gateway.Settings{}, get, "/v1/realtime?model=m", "websocket", 101, false},
		"another path, by h2c":       {gateway.Settings{}, get, "/v1/models", "h2c", 200, false},
		"another path, observed too": {gateway.Settings{Mode: gateway.Observe}, get, "/v1/realtime", "websocket", 101, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, asked := socket(t)
			log := make(records, 1)
			g, err := gateway.New(gateway.Config{Settings: c.settings, Upstreams: []gateway.Upstream{{URL: to}}}, gateway.Options{Logger: slog.New(slog.NewJSONHandler(log, nil))})
			require.NoError(t, err)
			s := httptest.NewServer(g)
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			require.NoError(t, err)
			_, err = fmt.Fprintf(conn, c.request, c.path, c.upgrade)
			require.NoError(t, err)
			in := bufio.NewReader(conn)
			resp, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			require.Equal(t, c.status, resp.StatusCode)
			switch c.status {
			case 101:
				require.Equal(t, "1", resp.Header.Get("X-Kept"))
				_, err = io.WriteString(conn, "hello\n")
				require.NoError(t, err)
				text, err := in.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "echo hello\n", text)
			case 426:
				text, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Contains(t, string(text), `"error":{`)
				require.Contains(t, string(text), `websockets = \"pass\"`)
				require.Empty(t, asked(), "nothing was sent on")
			default:
				text, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, chatAnswer(good), string(text))
				if c.path != "/v1/models" {
					require.Equal(t, "valid", resp.Header.Get("X-Toolmend-Status"))
				}
				require.Empty(t, asked(), "sent on without the upgrade")
			}
			require.NoError(t, conn.Close())
			s.Close()
			require.NoError(t, g.Close())
			if c.logged { // after the end of the tunnel, for which nothing waits
				require.Contains(t, <-log, `"http_status":101,"status":"unchecked"`)
			}
		})
	}
}

// TestUntouched: requests that are no model calls, and their responses, pass as
// they are.
func TestUntouched(t *testing.T) {
	t.Parallel()
	type seen struct {
		method, uri string
		header      http.Header
		trailer     http.Header
		sum         [sha256.Size]byte
		length      int64
	}
	got := make(chan seen, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Refuse") != "" { // without reading the body
			http.Error(w, "no", http.StatusExpectationFailed)
			return
		}
		h := sha256.New()
		_, _ = io.Copy(h, r.Body)
		got <- seen{r.Method, r.RequestURI, r.Header, r.Trailer, [sha256.Size]byte(h.Sum(nil)), r.ContentLength}
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("Content-Range", "bytes 0-1/9")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Add("Set-Cookie", "c=d")
		w.Header().Set("Location", "http://elsewhere.example/")
		w.Header().Set("Trailer", "X-Announced")
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, "hi")
		w.Header().Set("X-Announced", "1")
		w.Header().Set(http.TrailerPrefix+"X-Late", "2")
	}))
	t.Cleanup(s.Close)
	url := serve(t, gateway.Config{Upstreams: []gateway.Upstream{{URL: s.URL}}})
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
	}{
		"a model list":        {"GET", "/v1/models?limit=1000", "", nil},
		"token counts":        {"POST", "/v1/messages/count_tokens?beta=true", `{"model":"m","tools":[]}`, []string{"anthropic-beta", "a,b"}},
		"embeddings":          {"POST", "/v1/embeddings", `{"input":"x"}`, nil},
		"a path of Ollama's":  {"POST", "/api/pull", `{"model":"m"}`, nil},
		"an upload":           {"POST", "/v1/files", string(big), []string{"Content-Type", "multipart/form-data; boundary=x", "Expect", "100-continue"}},
		"a range":             {"GET", "/v1/files/a/content", "", []string{"Range", "bytes=0-1"}},
		"a warm-up":           {"HEAD", "/api/hello", "", nil},
		"a deletion":          {"DELETE", "/v1/files/a", "", nil},
		"an odd query":        {"GET", "/x?a;b&%zz&=%&&q=a+b", "", nil},
		"an odd path":         {"GET", "/a%2Fb//c%7Cd/", "", nil},
		"an odd method":       {"PURGE", "/x", "", nil},
		"accepted encodings":  {"GET", "/x", "", []string{"Accept-Encoding", "br, zstd"}},
		"headers of a proxy":  {"GET", "/x", "", []string{"X-Forwarded-For", "192.0.2.1", "Via", "1.1 a"}},
		"an unknown user":     {"GET", "/x", "", []string{"User-Agent", "agent/1.0"}},
		"another method here": {"GET", "/v1/messages", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := send(t, c.method, url+c.path, c.body, c.headers...)
			up := <-got
			require.Equal(t, c.method, up.method)
			require.Equal(t, c.path, up.uri)
			require.Equal(t, sha256.Sum256([]byte(c.body)), up.sum)
			require.EqualValues(t, len(c.body), up.length)
			for i := 0; i < len(c.headers); i += 2 {
				require.Equal(t, c.headers[i+1], up.header.Get(c.headers[i]), c.headers[i])
			}
			for k := range up.header {
				require.NotContains(t, strings.ToLower(k), "toolmend")
			}
			require.Equal(t, http.StatusFound, resp.StatusCode, "a redirect is the client's")
			require.Equal(t, []string{"a=b", "c=d"}, resp.Header["Set-Cookie"])
			require.Equal(t, "bytes 0-1/9", resp.Header.Get("Content-Range"))
			require.Equal(t, "http://elsewhere.example/", resp.Header.Get("Location"))
			if c.method != "HEAD" {
				require.Equal(t, "hi", body)
				require.Equal(t, http.Header{"X-Announced": {"1"}, "X-Late": {"2"}}, resp.Trailer)
			}
			for k := range resp.Header {
				require.NotContains(t, k, "Toolmend")
			}
		})
	}

	t.Run("headers for the gateway", func(t *testing.T) {
		send(t, "GET", url+"/x", "", "X-Toolmend-Client", "me", "X-Toolmend-Key", "secret", "X-Other", "1")
		up := <-got
		require.Equal(t, "1", up.header.Get("X-Other"))
		for k := range up.header {
			require.NotContains(t, k, "Toolmend")
		}
	})

	t.Run("1xx", func(t *testing.T) {
		hints := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code == http.StatusEarlyHints && h.Get("Link") == "</a>" {
				hints++
			}
			return nil
		}})
		req, err := http.NewRequestWithContext(ctx, "GET", url+"/x", nil)
		require.NoError(t, err)
		resp, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		<-got
		require.Equal(t, 1, hints)
	})

	t.Run("trailers of a request", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/upload", io.NopCloser(strings.NewReader("body")))
		require.NoError(t, err)
		req.Trailer = http.Header{"X-Sum": {"7"}}
		resp, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.Header{"X-Sum": {"7"}}, (<-got).trailer)
	})

	t.Run("an upload that the upstream refuses", func(t *testing.T) {
		read := &counted{Reader: bytes.NewReader(big)}
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/files", read)
		require.NoError(t, err)
		req.ContentLength = int64(len(big))
		req.Header.Set("Expect", "100-continue")
		req.Header.Set("X-Refuse", "1")
		client := &http.Transport{ExpectContinueTimeout: time.Minute}
		defer client.CloseIdleConnections()
		resp, err := client.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusExpectationFailed, resp.StatusCode)
		require.Zero(t, read.n.Load(), "the upstream did not ask for the body")
	})
}

// counted counts the bytes that were read.
type counted struct {
	io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// TestStreamsBothWays: an upload reaches the upstream while it is sent, and its
// response the client, also if the response begins before the upload has ended.
func TestStreamsBothWays(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		_ = c.Flush()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "echo "+line)
			_ = c.Flush()
		}
	}))
	t.Cleanup(s.Close)
	for _, mode := range []gateway.Mode{gateway.Enforce, gateway.Observe} {
		url := serve(t, gateway.Config{Settings: gateway.Settings{Mode: mode}, Upstreams: []gateway.Upstream{{URL: s.URL}}})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		body, in := io.Pipe()
		req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/files", body)
		require.NoError(t, err)
		go func() { _, _ = fmt.Fprintln(in, 0) }()
		resp, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		out := bufio.NewReader(resp.Body)
		for i := range 3 {
			line, err := out.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("echo %d\n", i), line)
			_, err = fmt.Fprintln(in, i+1)
			require.NoError(t, err)
		}
		require.NoError(t, in.Close())
		_, err = io.Copy(io.Discard, out)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		cancel()
	}
}
