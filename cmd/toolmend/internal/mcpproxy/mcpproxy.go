// Package mcpproxy is the command toolmend mcp: a proxy in front of an MCP server,
// on stdio (stdio.go) or over Streamable HTTP (http.go).
//
// The proxy changes calls of tools and nothing else: all other messages pass byte
// for byte, in both directions. It learns the tools from the lists that pass. For
// a call of a tool that it has not seen it asks the server, with an id of its own,
// and the client does not see the answer. If that fails, enforce refuses the call
// with an error, and the other modes pass it.
//
// Neither side is trusted. What the proxy keeps is bounded, and a message that it
// cannot read passes.
package mcpproxy

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/internal/page"
	"github.com/toolmend/toolmend/internal/proxy"
)

// Help is what toolmend mcp -h prints.
//
//go:embed help.txt
var Help string

const defaultListen = "127.0.0.1:7778"

// settings are the command line.
type settings struct {
	mode, record, page, listen, name string
	print, wrap                      string
	write                            bool
	upstream                         *url.URL // nil if there is a command
	command                          []string
}

// Run is toolmend mcp. It returns the exit code, which is the server's if
// there is a command. wait starts a program, sends it the signals that toolmend
// gets, and returns its exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, wait func(*exec.Cmd) (int, error)) int {
	s, err := parse(args)
	if err != nil {
		return cli.Usage(err, "mcp", Help, stdout, stderr)
	}
	code, err := s.run(ctx, stdin, stdout, stderr, wait)
	if err != nil {
		fmt.Fprintf(stderr, "toolmend mcp: %v\n", err)
		code = max(code, cli.ExitFailed)
	}
	return code
}

func parse(args []string) (s settings, err error) {
	s.mode, s.listen = modeEnforce, defaultListen
	fs := cli.NewFlags("mcp", map[string]*string{
		"mode": &s.mode, "record": &s.record, "page": &s.page, "listen": &s.listen, "name": &s.name, "print": &s.print, "wrap": &s.wrap,
	})
	fs.BoolVar(&s.write, "write", false, "")
	fs.Func("upstream", "", func(value string) error {
		if s.upstream, err = url.Parse(value); err != nil || s.upstream.Host == "" || s.upstream.Scheme != "http" && s.upstream.Scheme != "https" {
			return errors.New("must be the URL of the server, such as https://example.com/mcp")
		}
		return nil
	})
	if err := cli.ParseFlags(fs, args); err != nil {
		return s, err
	}
	s.command = fs.Args()
	return s, s.validate()
}

// validate returns what is wrong with the command line, or nil.
func (s settings) validate() error {
	switch {
	case !slices.Contains([]string{modeEnforce, modeRepair, modeObserve}, s.mode):
		return fmt.Errorf("--mode is enforce, repair or observe, not %q", s.mode)
	case s.wrap != "" && (len(s.command) > 0 || s.upstream != nil || s.print != ""):
		return errors.New("--wrap FILE stands alone: the file names the servers")
	case s.write && s.wrap == "":
		return errors.New("--write needs --wrap FILE")
	case s.wrap != "":
		return nil
	case len(s.command) > 0 && s.upstream != nil:
		return errors.New("name a command or --upstream URL, not both")
	case len(s.command) == 0 && s.upstream == nil:
		return errors.New("no server; name its command behind --, or --upstream URL")
	case s.upstream != nil && !proxy.IsLoopback(s.listen):
		return fmt.Errorf("--listen is an address that only this machine reaches, such as %s, not %q", defaultListen, s.listen)
	case s.page != "" && !proxy.IsLoopback(s.page):
		return fmt.Errorf("--page is an address that only this machine reaches, such as 127.0.0.1:0, not %q", s.page)
	}
	return nil
}

// run returns the exit code of the server, and 0 without one.
func (s settings) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, wait func(*exec.Cmd) (int, error)) (int, error) {
	switch {
	case s.wrap != "":
		return 0, s.rewrap(stdout, stderr)
	case s.print != "":
		return 0, s.printConfig(stdout)
	}
	steps, stop, err := s.openPage(stderr)
	if err != nil {
		return 0, err
	}
	defer stop()
	l, err := newLog(s.serverName(), s.mode, s.record, steps)
	if err != nil {
		return 0, err
	}
	defer l.close()
	if s.upstream != nil {
		return 0, s.serveHTTP(ctx, newChecker(s.mode, l), stderr)
	}
	return s.serveStdio(ctx, newChecker(s.mode, l), stdin, stdout, stderr, wait)
}

// serverName returns a name for the record: the one that the user gave, or one
// that follows from its address or its command.
func (s settings) serverName() string {
	if s.name != "" {
		return s.name
	}
	if s.upstream != nil {
		return s.upstream.Host
	}
	for _, a := range s.command[1:] {
		if base := filepath.Base(a); strings.Contains(base, "mcp") || strings.Contains(base, "server") {
			return base
		}
	}
	return filepath.Base(s.command[0])
}

// serveStdio runs the server and passes what it and the client say.
func (s settings) serveStdio(ctx context.Context, c *checker, stdin io.Reader, stdout, stderr io.Writer, wait func(*exec.Cmd) (int, error)) (int, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	p := newPipe(ctx, c, in, stdout)
	out := p.fromServer()
	cmd.Stdout, cmd.Stderr = out, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTimeout
	// Where the system can do it, the server ends with the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithParent(cmd)
	go func() {
		p.fromClient(stdin)
		_ = in.Close()
	}()
	if f, ok := stdout.(*os.File); ok {
		go func() {
			awaitReaderGone(f)
			end() // a server must end when its input is closed, but not every one does
		}()
	}
	code, err := wait(cmd)
	_ = out.end()
	p.end()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = cli.ExitNotFound
	}
	return code, err
}

// endTimeout is how long a server may take to end when its client has gone, and how
// long its output is read when it has ended: a process that it left behind may hold
// its standard output.
const endTimeout = 10 * time.Second

// openPage serves the page of the calls. Without --page it does nothing.
func (s settings) openPage(stderr io.Writer) (*page.Steps, func(), error) {
	if s.page == "" {
		return nil, func() {}, nil
	}
	l, err := net.Listen("tcp", s.page)
	if err != nil {
		return nil, nil, fmt.Errorf("--page: %w", err)
	}
	steps, token := page.NewSteps(pageMemory), page.NewToken()
	srv := cli.NewServer(local(page.New(steps, page.Options{Access: page.Access{Token: token}, About: s.serverName(), Live: true})))
	go func() { _ = srv.Serve(l) }()
	fmt.Fprintf(stderr, "toolmend: the calls are shown at http://%s/?token=%s\n", l.Addr(), token)
	return steps, func() { _ = srv.Close() }, nil
}

// serveHTTP runs the proxy until a signal ends it.
func (s settings) serveHTTP(ctx context.Context, c *checker, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	srv := cli.NewServer(local(newHandler(s.upstream, c)))
	fmt.Fprintf(stderr, "toolmend: the server is at http://%s%s\n", l.Addr(), s.upstream.RequestURI())
	context.AfterFunc(ctx, func() { _ = srv.Close() }) // streams do not end by themselves
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
