package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/page"
	"github.com/toolmend/toolmend/internal/report"
)

//go:embed help/view.txt
var viewHelp string

// viewMemory is how many bytes the steps of a recording may take.
const viewMemory = 256 << 20

// runView is `toolmend view`. It serves the page until ctx ends.
func runView(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s, listen, err := parseView(args)
	if err != nil {
		return usage(err, "view", viewHelp, stdout, stderr)
	}
	steps, figures := page.NewSteps(viewMemory), report.NewFigures(report.Options{})
	steps.KeepFaults()
	c := &check{
		settings: s, program: "toolmend view", checker: report.NewChecker(s.options()), stderr: stderr,
		figures: report.NewFigures(report.Options{NoExamples: true}), progress: newProgress(stderr, s.files),
		reading: report.Reading{Skipped: map[string]int{}}, rates: newTurnRates(),
		hinter: newHinter(s), hints: hintCounts{},
		seen: func(step *report.Step) {
			counted := *step
			counted.ID = strconv.FormatUint(steps.Add(*step), 10)
			figures.Add(&counted)
		},
	}
	c.run(ctx, stdin)
	c.progress.clear()
	c.count()
	switch {
	case ctx.Err() != nil:
		return exitFailed
	case c.calls == 0:
		if c.failed == 0 { // else the messages say why
			fmt.Fprintln(stderr, "toolmend view: no tool call was found; see toolmend check -h for the forms of a turn, and -model and -tool")
		}
		return exitFailed
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		fmt.Fprintf(stderr, "toolmend view: -listen: %v\n", err)
		return exitFailed
	}
	token, sum := page.NewToken(), figures.Summary()
	h := page.New(steps, page.Options{
		Access: page.Access{Token: token}, About: baseNames(s.files), Figures: figures,
		Sections: []report.Section{hintsSection(c.hints.list(c.hinter, sum.Pairs), sum.Retries)},
		Hints: func(tool string) report.Section {
			return toolHints(c.hints.of(tool).list(c.hinter, sum.Pairs), tool, sum.Places(tool))
		},
	})
	fmt.Fprintf(stdout, "toolmend shows %s at\n\n  http://%s/tools?token=%s\n\nThe page shows the contents of calls. Stop it with Ctrl-C.\n", baseNames(s.files), l.Addr(), token)
	if err := serveView(ctx, l, h); err != nil {
		fmt.Fprintf(stderr, "toolmend view: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// parseView reads the command line.
func parseView(args []string) (s settings, listen string, err error) {
	fs := newFlags("view")
	fs.StringVar(&listen, "listen", "127.0.0.1:0", "")
	var given []string
	for _, name := range []string{"tools", "model", "tool"} {
		fs.Func(name, "", func(value string) error { given = append(given, "-"+name, value); return nil })
	}
	if err := parseFlags(fs, args); err != nil {
		return s, "", err
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil || !loopback(host) {
		return s, "", fmt.Errorf("-listen: must be an address that only this machine reaches, such as 127.0.0.1:8080, not %q", listen)
	}
	s, err = parse(append(append(given, "--"), fs.Args()...))
	return s, listen, err
}

// loopback reports whether only programs on this machine reach a host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// baseNames names files for people.
func baseNames(files []string) string {
	var names []string
	for _, f := range files {
		if f == "-" {
			f = "standard input"
		}
		names = append(names, filepath.Base(f))
	}
	return strings.Join(names, ", ")
}

// serveView serves h until ctx ends. A request with another Host than this machine
// is refused: a web page can point its own name at a loopback address (DNS
// rebinding).
func serveView(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			host, _, err := net.SplitHostPort(r.Host)
			if err != nil {
				host = r.Host
			}
			if !loopback(strings.Trim(host, "[]")) {
				http.Error(w, "this address serves only requests to localhost or 127.0.0.1", http.StatusMisdirectedRequest)
				return
			}
			h.ServeHTTP(w, r)
		}),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close()
	}
	return nil
}
