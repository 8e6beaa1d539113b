package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain makes the test binary what load starts: its own roles, and a gateway
// of HTTP and of MCP.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "role":
			main()
			return
		case "serve":
			if err := serveFake(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		case "mcp": // the server answers every call alike, so a pipe does
			if err := serveStdio(rolePipe); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// How the gateway of the tests is broken.
const (
	faultVariable = "LOAD_TEST_FAULT"
	observes      = "observes" // validates nothing
	alters        = "alters"   // writes a byte before each answer
	abrupt        = "abrupt"   // drops its connections when it is told to end
	deaf          = "deaf"     // ends at a reload
	broken        = "broken"   // ends at its start
)

// serveFake is a gateway with the flags of `toolmend serve`.
func serveFake(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	upstream := flags.String("upstream", "", "")
	listen := flags.String("listen", "", "")
	config := flags.String("config", "", "")
	mode := flags.String("mode", "enforce", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *config != "" {
		text, err := os.ReadFile(*config)
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(text), "url = \"")
		*upstream, _, _ = strings.Cut(rest, "\"")
	}
	fault := os.Getenv(faultVariable)
	if fault == broken {
		return errors.New("the address is taken")
	}
	name := roleHandler
	if fault == observes || *mode == "observe" {
		name = roleProxy
	}
	handler, err := roleOf(name, *upstream)
	if err != nil {
		return err
	}
	var draining atomic.Bool
	server := &http.Server{Addr: *listen, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if draining.Load() {
			w.Header().Set("Connection", "close")
		}
		if fault == alters {
			_, _ = w.Write([]byte("!"))
		}
		handler.ServeHTTP(w, r)
	})}
	if fault != deaf {
		signal.Ignore(syscall.SIGHUP)
	}
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 1)
	context.AfterFunc(told, func() {
		if fault == abrupt {
			ended <- server.Close()
			return
		}
		// A stream that has begun has promised a further request on its
		// connection. The promise is kept until all these have ended.
		draining.Store(true)
		time.AfterFunc(2*reloadGap, func() { ended <- server.Shutdown(context.Background()) })
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

// short are flags of a run that takes little time.
func short(more ...string) []string {
	return append(strings.Fields("-clients 2 -crowd 3 -blocks 2 -rounds 3 -phase 2ms -gap 1ms -streams 5 -settle 30ms -starts 1"), more...)
}

// TestRun measures once, with a gateway.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	profile := t.TempDir() + "/profile"
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), short("-gateway", self, "-base", self, "-profile", profile), &out))
	for _, want := range []string{"| direct |", "| httputil.ReverseProxy |", "| transport.Handler |", "| toolmend serve |", "| toolmend serve, observe |", "| base: toolmend serve |", "| base: toolmend serve, observe |",
		"| small, stream of text, a crowd (request 1.5 KB, answer 12.7 KB, 3 clients) |", "| 250 turns, responses, stream (", "1.00 (1.00–1.00)", "| start-up |", "| binary |", "| a bare pipe in front |", "| toolmend mcp, valid calls |", "| toolmend mcp, repaired calls |", "Machine: "} {
		require.Contains(t, out.String(), want)
	}
	if trustsFiles {
		require.Contains(t, out.String(), "HTTP/2 upstream (")
	}
	require.NotContains(t, out.String(), "NaN")
	require.NotContains(t, out.String(), "Inf")
	info, err := os.Stat(profile)
	require.NoError(t, err)
	require.NotZero(t, info.Size())
}

// TestRunFails: figures never make a run fail, but wrong answers do.
func TestRunFails(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, tc := range []struct{ name, fault, gateway, want string }{
		{"a gateway that validates nothing", observes, self, "chat: the upstream got 1 requests for an invalid call"},
		{"answers with one byte more", alters, self, "toolmend serve does not start: the answer to request 0 differs from what the mock sent, from byte 0 on"},
		{"a gateway that does not start", broken, self, "the address is taken"},
		{"no gateway", "", self + "none", "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(faultVariable, tc.fault)
			require.ErrorContains(t, run(t.Context(), short("-gateway", tc.gateway), t.Output()), tc.want)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, run(ctx, short(), t.Output()), context.Canceled)
}

// TestRunOfSomeRows: a run measures only the rows that its flag selects.
func TestRunOfSomeRows(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), short("-gateway", self, "-row", "^60 tools, chat, whole$"), &out))
	require.Regexp(t, `(?m)^\| 60 tools, chat, whole \(.* \| direct \|.*\n\| \| httputil.ReverseProxy \|.*\n\| \| toolmend serve \|.*\n\z`, out.String())
	require.NotContains(t, out.String(), "small")

	out.Reset()
	require.NoError(t, run(t.Context(), []string{"-list"}, &out))
	require.Contains(t, out.String(), "\nmoving cache marker, messages, whole\n")
}

// TestReload counts requests that fail around signals.
func TestReload(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, tc := range []struct{ name, fault, want string }{
		{"a gateway that drains", "", ""},
		{"a gateway that closes its connections", abrupt, "requests failed, such as:"},
		{"a gateway that does not know SIGHUP", deaf, "toolmend serve ended after 1 reloads"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.fault == deaf && signal.Ignored(syscall.SIGHUP) {
				t.Skip("the tests run under nohup: so does each gateway that they start")
			}
			t.Setenv(faultVariable, tc.fault)
			var out bytes.Buffer
			err := run(t.Context(), short("-gateway", self, "-reloads", "3"), &out)
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			require.Regexp(t, `^3 reloads and a SIGTERM under load, 2 clients: [1-9]\d* whole answers and [1-9]\d* streams came in full, 0 requests failed\.`, out.String())
		})
	}
}

// TestConfigure: each reload has another mode than the one before.
func TestConfigure(t *testing.T) {
	t.Parallel()
	d := drill{config: filepath.Join(t.TempDir(), "gateway.toml"), upstream: "http://127.0.0.1:1"}
	var last string
	for i := range 5 {
		require.NoError(t, d.configure(i))
		b, err := os.ReadFile(d.config)
		require.NoError(t, err)
		require.Contains(t, string(b), "\n[[upstream]]\nurl = \"http://127.0.0.1:1\"\n")
		require.NotEqual(t, last, string(b))
		last = string(b)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ args, want string }{
		{"-clients 0", "must be positive"},
		{"-settle 20s", "keep-alive"},
		{"-reloads 3", "need -gateway"},
		{"-base other", "need -gateway"},
		{"-row (", "missing closing )"},
		{"please", `unexpected argument "please"`},
		{"role proxy", "want a name, an address and an argument"},
		{"role cache 127.0.0.1:0 1", `role "cache"`},
	} {
		require.ErrorContains(t, run(t.Context(), strings.Fields(tc.args), t.Output()), tc.want, tc.args)
	}
}
