//go:build !windows

package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// asProgram makes the test binary run a command instead of the tests.
const asProgram = "TOOLMEND_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if launchers[os.Args[0]] != nil || os.Args[0] == fakeCommand { // run started it under the name of an agent
		os.Exit(fakeAgent(os.Args[0], os.Args[1:]))
	}
	if os.Getenv(asProgram) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// program is `toolmend serve` as a process of its own, which gets real signals.
type program struct {
	*osexec.Cmd
	address string
	stderr  *clitest.Lines
}

// startProgram starts the program. It ends with the test.
func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	return startUnder(t, "env", args...)
}

// startUnder starts the program with another one that becomes it.
func startUnder(t *testing.T, first string, args ...string) *program {
	t.Helper()
	p := &program{Cmd: osexec.CommandContext(t.Context(), first, append([]string{os.Args[0], "serve"}, args...)...), stderr: clitest.NewLines()}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stderr = p.stderr
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	p.address = address(t, p.stderr)
	return p
}

// end returns the exit code.
func (p *program) end(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	if p.ProcessState.Exited() {
		return p.ProcessState.ExitCode()
	}
	require.NoError(t, err)
	return -1
}

// writeFile replaces a file as editors and tools do.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func TestReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.toml")
	file := func(listen, upstream string) string {
		return fmt.Sprintf("listen = %q\n[[upstream]]\nurl = %q\n", listen, upstream)
	}
	one, two := upstreamSaying(t, "one"), upstreamSaying(t, "two")
	writeFile(t, path, file("127.0.0.1:0", one))
	p := startProgram(t, "--config", path)
	ask := func() string { return clitest.Get(t, http.DefaultClient, "http://"+p.address+"/x") }
	require.Equal(t, "one GET /x", ask())

	writeFile(t, path, file("127.0.0.1:0", two))
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	p.stderr.Await(t, `"msg":"configuration reloaded"`, 1)
	require.Equal(t, "two GET /x", ask())

	writeFile(t, path, "listen = 1\n")
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	out := p.stderr.Await(t, `"msg":"configuration not reloaded: the previous one stays in force"`, 1)
	require.Contains(t, out, path+":1:10: listen: ")
	require.Equal(t, "two GET /x", ask())

	writeFile(t, path, file("127.0.0.1:1", one))
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	out = p.stderr.Await(t, `"msg":"configuration reloaded"`, 2)
	require.Contains(t, out, `"msg":"a changed key needs a restart","key":"listen"`)
	require.Equal(t, "one GET /x", ask())

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, cli.ExitOK, p.end(t))
}

// TestHangup holds that a gateway without a file ends with its terminal, and with
// nohup does not.
func TestHangup(t *testing.T) {
	t.Parallel()
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("the tests run under nohup: so would each gateway that they start")
	}
	p := startProgram(t, "--upstream", upstreamSaying(t, "u"), "--listen", "127.0.0.1:0")
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	require.Equal(t, cli.ExitOK, p.end(t))

	p = startUnder(t, "nohup", "--upstream", upstreamSaying(t, "u"), "--listen", "127.0.0.1:0")
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	require.Equal(t, "u GET /x", clitest.Get(t, http.DefaultClient, "http://"+p.address+"/x"))
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, cli.ExitOK, p.end(t))
	require.Equal(t, 1, strings.Count(p.stderr.String(), `"msg":"stopping`))
}

// TestReloadUnderLoad holds that no request fails while the configuration is
// read a hundred times.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.toml")
	writeFile(t, path, fmt.Sprintf("listen = '127.0.0.1:0'\n[[upstream]]\nurl = %q\n", answering(t)))
	p := startProgram(t, "--config", path)
	ctx, stop := context.WithCancel(t.Context())
	failed, served := make(chan error, 4), make(chan struct{})
	for range cap(failed) {
		go func() {
			for ctx.Err() == nil {
				resp, err := http.Post("http://"+p.address+"/v1/chat/completions", "application/json", strings.NewReader(modelCall))
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				if err == nil && resp.StatusCode != http.StatusOK {
					err = errors.New(resp.Status)
				}
				if err != nil {
					failed <- err
					return
				}
				select {
				case served <- struct{}{}:
				default:
				}
			}
			failed <- nil
		}()
	}
	for i := range 100 {
		require.NoError(t, p.Process.Signal(syscall.SIGHUP))
		p.stderr.Await(t, `"msg":"configuration reloaded"`, i+1)
		select {
		case <-served: // one ended, and others are under way
		case err := <-failed:
			require.NoError(t, err)
		}
	}
	stop()
	for range cap(failed) {
		require.NoError(t, <-failed)
	}
}

// TestDrain holds that the first signal waits for requests that have begun and
// takes no new ones, and that the second one cuts them off.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ second, http2 bool }{{false, false}, {true, false}, {false, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			client := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
			client.Transport.(*http.Transport).Protocols.SetHTTP1(!c.http2)
			client.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(c.http2)
			begun, release := make(chan struct{}), make(chan struct{})
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(begun)
				select {
				case <-release:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "whole")
			}))
			defer up.Close()
			p := startProgram(t, "--upstream", up.URL, "--listen", "127.0.0.1:0")
			answer := make(chan string, 1)
			go func() {
				resp, err := client.Get("http://" + p.address + "/slow")
				if err != nil {
					answer <- "cut off"
					return
				}
				defer resp.Body.Close()
				var body bytes.Buffer
				_, _ = body.ReadFrom(resp.Body)
				answer <- body.String()
			}()
			<-begun
			require.NoError(t, p.Process.Signal(syscall.SIGTERM))
			p.stderr.Await(t, `"msg":"stopping: waiting for the requests that have begun; press Ctrl-C again to stop at once"`, 1)
			if c.second {
				require.NoError(t, p.Process.Signal(os.Interrupt))
				require.Equal(t, cli.ExitInvalid, p.end(t))
				require.Equal(t, "cut off", <-answer)
				require.Contains(t, p.stderr.String(), "requests were cut off")
				return
			}
			close(release)
			require.Equal(t, cli.ExitOK, p.end(t))
			require.Equal(t, "whole", <-answer)
		})
	}
}
