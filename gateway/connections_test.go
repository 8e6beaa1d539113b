package gateway_test

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

var idle = flag.Int("idle", 500, "idle connections of TestIdleConnections")

// TestIdleConnections: connections that send nothing, or half a request, cost
// little memory and delay no other request.
func TestIdleConnections(t *testing.T) {
	if free := openFiles(); free < 2*(*idle)+150 {
		t.Skipf("%d connections need %d open files, and ulimit -n allows %d", *idle, 2*(*idle)+150, free)
	}
	to, _ := upstream(t, chatAnswer(good))
	url := serve(t, gateway.Config{Upstreams: []gateway.Upstream{{URL: to}}})
	post(t, url+"/v1/chat/completions", chatRequest("m"))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for i := range *idle {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		require.NoError(t, err)
		conns = append(conns, c)
		_, err = io.WriteString(c, []string{"", "POST /v1/mess", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n"}[i%3])
		require.NoError(t, err)
	}
	for range 20 {
		begin := time.Now()
		status, answer, _ := post(t, url+"/v1/chat/completions", chatRequest("m"))
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, chatAnswer(good), answer)
		require.Less(t, time.Since(begin), 5*time.Second)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)) / int64(*idle)
	t.Logf("%d connections, %d bytes each", *idle, each)
	require.Less(t, each, int64(64<<10))
}

// TestHalfClosed: a client that closes its side of the connection, or all of it,
// at any point of a request ends the upstream's request too.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}, 100), make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello.\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	t.Cleanup(s.Close)
	url := serve(t, gateway.Config{Upstreams: []gateway.Upstream{{URL: s.URL}}})
	body := strings.Replace(chatRequest("m"), "{", `{"stream":true,`, 1)
	for _, path := range []string{"/v1/chat/completions", "/v1/other"} {
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", path, len(body))
		for _, c := range map[string]struct {
			request string
			reaches bool // the upstream
			half    bool
		}{
			"in the headers":         {head[:20], false, true},
			"in the body":            {head + body[:10], false, true},
			"in the answer":          {head + body, true, true},
			"in the headers, closed": {head[:20], false, false},
			"in the body, closed":    {head + body[:10], false, false},
			"in the answer, closed":  {head + body, true, false},
		} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			require.NoError(t, err)
			_, err = io.WriteString(conn, c.request)
			require.NoError(t, err)
			if c.reaches {
				<-begun
			}
			if c.half {
				require.NoError(t, conn.(*net.TCPConn).CloseWrite())
				_, _ = io.Copy(io.Discard, conn) // ends: the server closes its side too
			}
			require.NoError(t, conn.Close())
			if c.reaches {
				<-ended
			}
		}
	}
}
