package mcptools_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/mcptools"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
)

// roleVariable makes the test program an MCP server. A silent one writes its id to a file.
const (
	roleVariable = "MCPTOOLS_TEST_ROLE"
	fileVariable = "MCPTOOLS_TEST_FILE"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "server":
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Print(answer(in.Text(), "\n"))
		}
		os.Exit(0)
	case "wrapper": // npx and uvx are such ones
		server := exec.Command(os.Args[0])
		server.Env = append(os.Environ(), roleVariable+"=silent")
		server.Stdin, server.Stdout, server.Stderr = os.Stdin, os.Stdout, os.Stderr
		_ = server.Run()
		os.Exit(0)
	case "broken":
		os.Exit(1)
	case "silent":
		_ = os.WriteFile(os.Getenv(fileVariable), []byte(strconv.Itoa(os.Getpid())), 0o600)
		time.Sleep(time.Minute) // a process that TestCommandIsEnded kills long before
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// answer returns what a server with two pages of tools answers to a message, and end.
func answer(message, end string) string {
	var m struct {
		ID     int
		Method string
		Params struct{ Cursor string }
	}
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return err.Error()
	}
	result := `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
	switch {
	case m.ID == 0:
		return ""
	case m.Method == "tools/list" && m.Params.Cursor == "":
		result = `{"tools":[{"name":"add","inputSchema":{"type":"object","title":"A"}}],"nextCursor":"2"}`
	case m.Method == "tools/list":
		result = `{"tools":[{"name":"mul","inputSchema":{"type":"object"}}]}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}%s`, m.ID, result, end)
}

func names(sets *recorded.Toolsets) (out []string) {
	for _, t := range sets.Tools() {
		out = append(out, t.Name+" "+string(t.Parameters))
	}
	return out
}

var want = []string{`add {"title":"A","type":"object"}`, `mul {"type":"object"}`}

func TestCommand(t *testing.T) {
	t.Setenv(roleVariable, "server")
	sets, err := mcptools.Open(t.Context(), "mcp:"+os.Args[0])
	require.NoError(t, err)
	require.Equal(t, want, names(sets))

	t.Setenv(roleVariable, "broken")
	_, err = mcptools.Open(t.Context(), "mcp:"+os.Args[0])
	require.ErrorContains(t, err, "EOF")

	_, err = mcptools.Open(t.Context(), "mcp:no-such-command-here")
	require.ErrorContains(t, err, "executable file not found")
	_, err = mcptools.Open(t.Context(), "mcp:")
	require.ErrorContains(t, err, "a command is missing")
}

// A server that does not end with its input is killed, and so is one behind a wrapper.
func TestCommandIsEnded(t *testing.T) {
	for _, role := range []string{"silent", "wrapper"} {
		if role == "wrapper" && runtime.GOOS == "windows" {
			continue
		}
		t.Setenv(roleVariable, role)
		started := filepath.Join(t.TempDir(), "pid")
		t.Setenv(fileVariable, started)
		ctx, end := context.WithCancelCause(t.Context())
		go func() {
			for pid := ""; pid == ""; time.Sleep(time.Millisecond) { // the file of a real process, which has no clock of a test
				b, _ := os.ReadFile(started)
				pid = string(b)
			}
			end(errors.New("enough"))
		}()
		_, err := mcptools.Open(ctx, "mcp:"+os.Args[0])
		require.ErrorContains(t, err, "enough")
		pid, err := os.ReadFile(started)
		require.NoError(t, err)
		server, err := strconv.Atoi(string(pid))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return ended(server) }, 2*time.Second, time.Millisecond, "the server of %s has ended", role)
	}
}

// ended reports whether a process has ended. The child of one that was killed may stay as a zombie
// where its parent does not wait for it, as in a container.
func ended(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil || process.Signal(syscall.Signal(0)) != nil {
		return true
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(stat), ") Z ")
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, before, end, err string
		status                 int
	}{
		"JSON":             {kind: "application/json"},
		"stream":           {kind: "text/event-stream; charset=utf-8", before: ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\ndata: ", end: "\n\n"},
		"unauthorized":     {status: http.StatusUnauthorized, err: "Unauthorized"},
		"something else":   {kind: "text/html", before: "<html>", err: "unsupported content type"},
		"stream that ends": {kind: "text/event-stream", before: "event: x\n\n", end: "", err: "without response"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodDelete {
					closed <- r.Header.Get("Mcp-Session-Id")
					return
				}
				body, _ := io.ReadAll(r.Body)
				if c.status != 0 {
					w.WriteHeader(c.status)
					return
				}
				if strings.Contains(string(body), `"initialize"`) {
					w.Header().Set("Mcp-Session-Id", "s1")
				} else if r.Header.Get("Mcp-Session-Id") != "s1" {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				w.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(w, c.before+answer(string(body), c.end))
			}))
			defer server.Close()
			sets, err := mcptools.Open(t.Context(), strings.Replace(server.URL, "http://", "http://user:secret@", 1))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, want, names(sets))
			require.Equal(t, "s1", <-closed)
		})
	}
}

// A session calls the tools of a server by longer names, and others too.
func TestCallsOfOtherTools(t *testing.T) {
	t.Setenv(roleVariable, "server")
	sets, err := mcptools.Open(t.Context(), "mcp:"+os.Args[0])
	require.NoError(t, err)
	const message = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"mcp__calc__add","input":{}},{"type":"tool_use","id":"b","name":"Bash","input":{}}]}`
	log := message + "\n" + `{"messages":[` + message + `]}` + "\n" + strings.Replace(message, `"role":"assistant"`, `"type":"message","role":"assistant","stop_reason":"tool_use"`, 1)
	n := 0
	for line := range recorded.NewLog().Reader("f", strings.NewReader(log)).All() {
		turns, _ := line.Turns(sets)
		for _, turn := range turns {
			require.True(t, turn.Some)
			require.False(t, turn.NoTools)
			require.Equal(t, "mcp__calc__add", turn.Tools[0].Name)
			require.Equal(t, `{"title":"A","type":"object"}`, string(turn.Tools[0].Parameters))
			require.Equal(t, "Bash", turn.Tools[1].Name)
			require.Nil(t, turn.Tools[1].Parameters)
			n++
		}
	}
	require.Equal(t, 3, n, "a message, a conversation and an answer")
}
