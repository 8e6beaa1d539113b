package serve

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// address returns the address of the log line "ready".
func address(t *testing.T, l *clitest.Lines) string {
	t.Helper()
	out := l.Await(t, `"msg":"ready"`, 1)
	for line := range strings.Lines(out) {
		var record struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &record) == nil && record.Msg == "ready" {
			return record.Address
		}
	}
	require.Fail(t, "no address", out)
	return ""
}

// serving is a gateway in this process.
type serving struct {
	address string
	stderr  *clitest.Lines
	stop    context.CancelFunc
	code    chan int
}

// startServe starts `toolmend serve` on a free port. It stops with the test.
func startServe(t *testing.T, args ...string) *serving {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &serving{stderr: clitest.NewLines(), stop: stop, code: make(chan int, 1)}
	go func() {
		s.code <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, s.stderr)
		close(s.code)
	}()
	t.Cleanup(func() {
		stop()
		<-s.code
	})
	s.address = address(t, s.stderr)
	return s
}

// upstreamSaying returns a server that answers every request with text.
func upstreamSaying(t *testing.T, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, text+" "+r.Method+" "+r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestServe(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--upstream", upstreamSaying(t, "upstream")+"/v1/", "-mode", "observe")
	for _, path := range []string{"/v1/models", "/models"} {
		require.Equal(t, "upstream GET /v1/models", clitest.Get(t, http.DefaultClient, "http://"+s.address+path))
	}
	s.stop()
	require.Equal(t, cli.ExitOK, <-s.code)
}

// TestStartMessage holds what a new user reads.
func TestStartMessage(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"start.txt":     {"--upstream", "https://api.example.com/v1", "--mode", "repair"},
		"startof.txt":   {"--upstream", "https://api.anthropic.com"},
		"startfile.txt": {"--config", filepath.Join("testdata", "start.toml")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServe(t, args...)
			text, _, _ := strings.Cut(s.stderr.String(), "{")
			_, port, err := net.SplitHostPort(s.address)
			require.NoError(t, err)
			text = regexp.MustCompile(`token=[a-z2-7]{26}`).ReplaceAllString(text, "token=TOKEN")
			clitest.Golden(t, name, strings.ReplaceAll(text, port, "7777"))
		})
	}
}

func TestMakerOf(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://api.anthropic.com": "anthropic", "https://API.OpenAI.com/v1": "openai", "https://x.openai.azure.com": "openai",
		"https://openrouter.ai/openai": "", "http://127.0.0.1:8080": "",
	} {
		require.Equal(t, want, makerOf(url), url)
	}
}

func TestServeErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() }) // after the parallel cases
	const url = "https://api.example.com"
	gateway := startServe(t, "--upstream", url).address
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no upstream":       {nil, "no upstream; say where requests go, such as --upstream https://api.anthropic.com, or name a file with --config\nSee toolmend serve -h."},
		"argument":          {[]string{url}, `unexpected argument "https://api.example.com"; the provider is --upstream URL`},
		"flag":              {[]string{"--port", "1"}, "unknown flag --port\nSee"},
		"misspelled flag":   {[]string{"--upstreem", url}, "unknown flag --upstreem; did you mean --upstream?\nSee toolmend serve -h."},
		"address in use":    {[]string{"--upstream", url, "--listen", taken.Addr().String()}, "another program listens on " + taken.Addr().String() + "; stop it, or choose another port with --listen"},
		"gateway there":     {[]string{"--upstream", url, "--listen", gateway}, "listen: a Toolmend gateway listens on " + gateway + "; stop it, or choose another port with --listen"},
		"no folder":         {[]string{"--upstream", url, "--listen", "127.0.0.1:0", "--record", "@/none/a.jsonl"}, "record: the folder @/none does not exist; create it"},
		"address of nobody": {[]string{"--upstream", url, "--listen", "127.0.0.1:99999"}, `listen: must be HOST:PORT, such as 127.0.0.1:7777, got "127.0.0.1:99999"`},
		"no port":           {[]string{"--upstream", url, "--listen", "localhost"}, `--listen: must be HOST:PORT, such as 127.0.0.1:7777, got "localhost"`},
		"mode":              {[]string{"--upstream", url, "--mode", "strict"}, `mode: must be one of "enforce", "observe", "repair", got "strict"`},
		"url":               {[]string{"--upstream", "api.example.com"}, `--upstream "api.example.com" is not a URL; write https://api.example.com`},
		"url of a file":     {[]string{"--upstream", "file://a/b"}, `--upstream "file://a/b" is not a URL with http or https, such as https://api.anthropic.com`},
		"no file":           {[]string{"--config", "@/none.toml"}, "cannot read the configuration: open @/none.toml: "},
		"both":              {[]string{"--config", "testdata/start.toml", "--upstream", url}, "testdata/start.toml has upstreams already; leave out the flag, or the tables [[upstream]]"},
		"environment":       {[]string{"--config", "testdata/serve.toml"}, "the environment variable PROVIDER_KEY is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := exec(t, t.TempDir(), "", append([]string{"serve"}, c.args...)...)
			require.Equal(t, cli.ExitFailed, got.Code)
			require.Contains(t, got.ErrOut, c.want)
			require.True(t, strings.HasPrefix(got.ErrOut, "toolmend serve: "), got.ErrOut)
			require.NotContains(t, got.ErrOut, "gateway: ")
		})
	}
}

// TestServeHTTP2 holds that clients may speak HTTP/2 with and without TLS, and
// HTTP/1.1.
func TestServeHTTP2(t *testing.T) {
	t.Parallel()
	upstream := upstreamSaying(t, "u")
	cert, key, roots := certificate(t)
	file := filepath.Join(t.TempDir(), "tls.toml")
	require.NoError(t, os.WriteFile(file, []byte("tls_cert = '"+cert+"'\ntls_key = '"+key+"'\n[[upstream]]\nurl = '"+upstream+"'\n"), 0o600))
	plain, secure := startServe(t, "--upstream", upstream), startServe(t, "--config", file)
	require.Contains(t, secure.stderr.String(), "https://127.0.0.1:")
	for name, c := range map[string]struct {
		base  string
		allow func(*http.Protocols)
		want  int
	}{
		"HTTP/1.1":          {"http://" + plain.address, func(p *http.Protocols) { p.SetHTTP1(true) }, 1},
		"HTTP/2":            {"http://" + plain.address, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, 2},
		"HTTP/1.1 over TLS": {"https://" + secure.address, func(p *http.Protocols) { p.SetHTTP1(true) }, 1},
		"HTTP/2 over TLS":   {"https://" + secure.address, func(p *http.Protocols) { p.SetHTTP2(true) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{RootCAs: roots}}
			defer tr.CloseIdleConnections()
			c.allow(tr.Protocols)
			resp, err := (&http.Client{Transport: tr}).Get(c.base + "/x")
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, c.want, resp.ProtoMajor)
			require.Equal(t, http.StatusOK, resp.StatusCode)
		})
	}
}
