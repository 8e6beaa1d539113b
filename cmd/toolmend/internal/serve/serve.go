// Package serve is the commands that run a gateway or help to use one: toolmend serve
// (serve.go), toolmend run (run.go), toolmend env (env.go) and toolmend health (health.go).
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/logbatch"
	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/text"
)

// levels are the values of log_level.
var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// Run is `toolmend serve`. It stops when ctx ends, as it does at SIGTERM.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseServe(args)
	if err != nil {
		return cli.Usage(err, "serve", serveHelp, stdout, stderr)
	}
	code, err := f.serve(ctx, stdout, stderr)
	if err != nil {
		lines := strings.ReplaceAll(text.Visible(err.Error(), true), "\n", "\ntoolmend serve: ") // one error a line
		fmt.Fprintf(stderr, "toolmend serve: %s\n", strings.TrimPrefix(lines, "gateway: "))
	}
	return code
}

// serve returns the exit code, and the error because of which the gateway did
// not start or stopped.
func (f serveFlags) serve(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	c, err := f.load()
	switch {
	case err != nil:
		return cli.ExitFailed, err
	case f.print:
		if err := printConfig(stdout, c); err != nil {
			return cli.ExitFailed, err
		}
		return cli.ExitOK, nil
	case f.check:
		if err := check(c); err != nil {
			return cli.ExitFailed, f.located(err, c.Record.File)
		}
		fmt.Fprintln(stdout, "the configuration is valid")
		return cli.ExitOK, nil
	}
	signals, stop := listenForSignals(f.config != "")
	defer stop()
	level := new(slog.LevelVar)
	level.Set(levels[c.LogLevel])
	served := &sums{}
	lines := logbatch.New(stderr)
	defer lines.Close() // also when serve panics
	visible := text.JSONWriter{To: lines}
	log := slog.New(tally{logbatch.Handler{Handler: slog.NewJSONHandler(visible, &slog.HandlerOptions{Level: level}), To: visible, Writer: lines, Frequent: gateway.LogMessage}, served})
	t, err := newTelemetry(ctx, log)
	if err != nil {
		return cli.ExitFailed, err
	}
	defer func() {
		if err := t.close(); err != nil {
			log.Warn("telemetry", "error", err)
		}
	}()
	g, err := gateway.New(c.Config, t.options(log))
	if err != nil {
		return cli.ExitFailed, f.located(err, c.Record.File)
	}
	lines.OnLost(g.CountLostLog)
	s := &server{flags: f, config: c, gateway: g, log: log, lines: lines, level: level, signals: signals}
	if err := s.listen(); err != nil {
		_ = g.Close()
		return cli.ExitFailed, err
	}
	own := adminURL(c, s.listener.Addr())
	if s.admin != nil {
		own = urlFor(config{}, s.admin.Addr())
	}
	writeStart(stderr, c, urlFor(c, s.listener.Addr()), own, g.PagePath())
	whole := s.run(ctx)
	_ = g.Close() // the last observed answers count too
	log.Info("served", "summary", served.String())
	if !whole {
		return cli.ExitInvalid, nil
	}
	return cli.ExitOK, nil
}

// check makes a gateway of c and listens at free ports of its hosts. It leaves no file.
func check(c config) error {
	if _, err := os.Stat(c.Record.File); errors.Is(err, os.ErrNotExist) {
		defer os.Remove(c.Record.File)
	}
	g, err := gateway.New(c.Config, gateway.Options{})
	if err != nil {
		return err
	}
	defer g.Close()
	for _, a := range []struct{ key, addr string }{{"listen", c.Listen}, {"admin_listen", c.AdminListen}} {
		if a.addr == "" {
			continue
		}
		host, _, _ := net.SplitHostPort(a.addr)
		l, err := listen(a.key, a.key, net.JoinHostPort(host, "0"))
		if err != nil {
			return &gateway.ConfigError{Path: a.key, Err: err}
		}
		_ = l.Close()
	}
	return nil
}

// located returns an error of gateway.New with the line of its key. record is the file of the
// record.
func (f serveFlags) located(err error, record string) error {
	doc, _ := os.ReadFile(f.config)
	return located(f.config, doc, withFolder(err, record))
}

// withFolder returns err, or what to do if the reason is that the folder of the
// record does not exist.
func withFolder(err error, record string) error {
	folder := filepath.Dir(record)
	if _, missing := os.Stat(folder); record != "" && errors.Is(missing, os.ErrNotExist) {
		return fmt.Errorf("record: the folder %s does not exist; create it", folder)
	}
	return err
}

// listenerOf says who listens on an address.
func listenerOf(addr string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	host, port, err := net.SplitHostPort(addr)
	if err == nil && probe(ctx, baseURL(config{}, host, port)+alivePage) == nil {
		return "a Toolmend gateway"
	}
	return "another program"
}

// listen opens the address of a key, which the user sets with option. Its error says what to do.
func listen(key, option, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, addressInUse):
		return nil, fmt.Errorf("%s: %s listens on %s; stop it, or choose another port with %s", key, listenerOf(addr), addr, option)
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%s: not allowed to listen on %s; choose a port above 1023", key, addr)
	}
	return nil, fmt.Errorf("%s: %w; choose an address of this machine, such as %s", key, err, defaultListen)
}
