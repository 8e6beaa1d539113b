package serve

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/text"
)

//go:embed help/run.txt
var runHelp string

// runFlags is the command line of run.
type runFlags struct {
	mode, record, upstream string   // "" means not given
	agent                  string   // or the program
	args                   []string // of the agent
	isCommand              bool     // agent is any program, which stands behind --
}

func parseRun(args []string) (runFlags, error) {
	var f runFlags
	fs := cli.NewFlags("run", map[string]*string{"mode": &f.mode, "record": &f.record, "upstream": &f.upstream})
	if err := cli.ParseFlags(fs, args); err != nil {
		return f, err
	}
	if fs.NArg() == 0 {
		return f, fmt.Errorf("name an agent: %s; or a program: toolmend run -- COMMAND", strings.Join(launcherNames(), ", "))
	}
	f.agent, f.args = fs.Arg(0), fs.Args()[1:]
	f.isCommand = cli.FlagsEnd(fs, args[:len(args)-fs.NArg()])
	if !f.isCommand && len(f.args) > 0 && f.args[0] == "--" {
		f.args = f.args[1:]
	}
	if !f.isCommand && launchers[f.agent] == nil {
		return f, fmt.Errorf("unknown agent %q; the agents are %s. For another program: toolmend run -- %s", f.agent, strings.Join(launcherNames(), ", "), f.agent)
	}
	return f, checkUpstream(f.upstream)
}

// RunAgent is `toolmend run`. It returns the exit code of the agent.
func RunAgent(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	f, err := parseRun(args)
	if err != nil {
		return cli.Usage(err, "run", runHelp, stdout, stderr)
	}
	program, err := osexec.LookPath(f.agent)
	if err != nil {
		fmt.Fprintf(stderr, "toolmend run: %s is not installed, or not in PATH\n", f.agent)
		return cli.ExitNotFound
	}
	agent := osexec.CommandContext(ctx, program)
	agent.Stdin, agent.Stdout, agent.Stderr = stdin, stdout, stderr
	code, err := f.run(ctx, agent, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "toolmend run: %s\n", strings.TrimPrefix(err.Error(), "gateway: "))
	}
	return code
}

// run starts the gateway and then the agent, and stops the gateway when the
// agent has ended.
func (f runFlags) run(ctx context.Context, agent *osexec.Cmd, stderr io.Writer) (code int, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return cli.ExitFailed, err
	}
	defer l.Close()
	start, logged := launchers[f.agent], f.agent
	if f.isCommand {
		start, logged = launchCommand, "command"
	}
	how, err := start(thisMachine(), "http://"+l.Addr().String(), f)
	if err != nil {
		return cli.ExitFailed, err
	}
	c := config{Config: gateway.Config{Listen: l.Addr().String(), Upstreams: how.upstreams}}
	c.Mode, c.Record.File = gateway.Mode(f.mode), f.record
	if err := c.Validate(); err != nil {
		return cli.ExitFailed, err
	}
	file, err := newRunLog(logged)
	if err != nil {
		return cli.ExitFailed, err
	}
	defer file.Close()
	served := &sums{}
	log := slog.New(tally{slog.NewJSONHandler(text.JSONWriter{To: file}, nil), served})
	// The agent sends no client key, and this gateway has no key of a provider.
	_ = os.Unsetenv("TOOLMEND_CLIENT_KEY")
	t, err := newTelemetry(ctx, log)
	if err != nil {
		return cli.ExitFailed, err
	}
	defer t.close()
	g, err := gateway.New(c.Config, t.options(log))
	if err != nil {
		return cli.ExitFailed, withFolder(err, f.record)
	}
	_ = os.Unsetenv("TOOLMEND_ADMIN_KEY") // the gateway has read it, and the agent must not
	closeGateway := sync.OnceFunc(func() { _ = g.Close() })
	defer closeGateway()
	var requests atomic.Int64 // those that are not for the gateway's own pages
	handler := how.handler(g)
	s := &server{log: log}
	srv := s.newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/_toolmend/") {
			requests.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	go func() { _ = srv.Serve(l) }()
	stop := sync.OnceFunc(func() { cli.StopServer(srv) })
	defer stop()

	agent.Args = append([]string{f.agent}, how.args...)
	agent.Env = slices.Concat(os.Environ(), how.env, noProxyEnv()) // of two values the last one counts
	log.Info("start", "agent", f.agent, "address", l.Addr().String(), "upstreams", urls(how.upstreams), "page", "http://"+l.Addr().String()+g.PagePath())
	code, err = cli.Wait(agent)
	if err != nil {
		return cli.ExitFailed, err
	}
	stop()
	closeGateway() // the last observed answers count too
	if f.isCommand {
		fmt.Fprintf(stderr, "toolmend: %s\n", served.line(requests.Load(), file.Name()))
		return code, nil
	}
	switch n := requests.Load(); {
	case n > 0:
		fmt.Fprintf(stderr, "toolmend: %s: %s\n", f.agent, served)
		if served.failures() > 0 && how.from != "" {
			fmt.Fprintf(stderr, "toolmend: the upstream %s comes from %s\n", strings.Join(urls(how.upstreams), ", "), how.from)
		}
	case code <= cli.EndedBySignal: // else the agent had no time for a request
		fmt.Fprintf(stderr, "toolmend: no request of %s reached the gateway, so no tool call was validated. It uses another provider than %s, or another way to name it.\n",
			f.agent, strings.Join(urls(how.upstreams), ", "))
	}
	fmt.Fprintf(stderr, "toolmend: the log of the gateway is %s\n", file.Name())
	return code, nil
}

func urls(upstreams []gateway.Upstream) []string {
	var all []string
	for _, u := range upstreams {
		all = append(all, u.URL)
	}
	return all
}

// noProxyEnv returns the variables that keep the requests to the gateway away
// from a proxy.
func noProxyEnv() []string {
	var env []string
	for _, name := range noProxyNames {
		env = append(env, name+"="+noProxy(os.Getenv))
	}
	return env
}
