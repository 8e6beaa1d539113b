package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// behindNginx starts nginx with deploy/nginx.conf in front of three addresses,
// and returns its URL.
func behindNginx(t *testing.T, addresses []string) string {
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx"
		if _, err := os.Stat(program); err != nil {
			t.Skip("nginx is not installed: `make deploy` tests three instances behind it where it is")
		}
	}
	b, err := os.ReadFile("../deploy/nginx.conf")
	require.NoError(t, err)
	conf := string(b)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := free.Addr().String()
	require.NoError(t, free.Close())
	replaced := []string{"listen 127.0.0.1:7777", "listen " + at}
	for i, a := range addresses {
		replaced = append(replaced, fmt.Sprintf("127.0.0.1:770%d", i+1), a)
	}
	for i := 0; i < len(replaced); i += 2 {
		require.Contains(t, conf, replaced[i])
		conf = strings.ReplaceAll(conf, replaced[i], replaced[i+1])
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(file, []byte(conf), 0o600))
	require.NoError(t, os.Chmod(dir, 0o755)) // its workers have another user
	cmd := exec.Command(program, "-p", dir, "-c", file, "-g", "daemon off;")
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	return "http://" + at
}

// Three instances share the requests. Streams flow through nginx, and while an
// instance goes away no request fails.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(b), `"stream":true`) {
			_, _ = io.WriteString(w, chatAnswer(good))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello."}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-proceed
		_, _ = io.WriteString(w, `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(provider.Close)
	var served [3]atomic.Int64
	var instances []*httptest.Server
	var addresses []string
	for i := range served {
		g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: provider.URL}}}, gateway.Options{})
		require.NoError(t, err)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served[i].Add(1)
			g.ServeHTTP(w, r)
		}))
		t.Cleanup(func() { s.Close(); require.NoError(t, g.Close()) })
		instances = append(instances, s)
		addresses = append(addresses, s.Listener.Addr().String())
	}
	url := behindNginx(t, addresses) + "/v1/chat/completions"

	resp, err := http.Post(url, "application/json", strings.NewReader(strings.Replace(chatRequest("m"), "{", `{"stream":true,`, 1)))
	require.NoError(t, err)
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	first, err := events.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, first, "Hello.", "before the provider has finished")
	close(proceed)
	_, err = io.ReadAll(events)
	require.NoError(t, err)

	for n := range 90 {
		if n == 30 {
			instances[0].Close()
		}
		status, answer, _ := post(t, url, chatRequest("m"))
		require.Equal(t, http.StatusOK, status, answer)
	}
	require.Positive(t, served[0].Load())
	require.Greater(t, served[1].Load(), int64(20))
	require.Greater(t, served[2].Load(), int64(20))
}
