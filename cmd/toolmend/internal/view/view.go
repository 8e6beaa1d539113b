// Package view is the command toolmend view: recorded turns in a browser.
package view

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

	"github.com/toolmend/toolmend/cmd/toolmend/internal/check"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/internal/page"
	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/internal/report"
)

//go:embed help.txt
var help string

// memory is how many bytes the steps of a recording may take.
const memory = 256 << 20

// Run is `toolmend view`. It serves the page until ctx ends.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	listen, given, err := parse(args)
	if err != nil {
		return cli.Usage(err, "view", help, stdout, stderr)
	}
	steps, figures := page.NewSteps(memory), report.NewFigures(report.Options{})
	steps.KeepFaults()
	log, err := check.NewRecording("toolmend view", given, stderr, func(step *report.Step) {
		counted := *step
		counted.ID = strconv.FormatUint(steps.Add(*step), 10)
		figures.Add(&counted)
	})
	if err != nil {
		return cli.Usage(err, "view", help, stdout, stderr)
	}
	calls, failed := log.Read(ctx, stdin)
	switch {
	case ctx.Err() != nil:
		return cli.ExitFailed
	case calls == 0:
		if !failed { // else the messages say why
			fmt.Fprintln(stderr, "toolmend view: no tool call was found; see toolmend check -h for the forms of a turn, and -model and -tool")
		}
		return cli.ExitFailed
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return cli.Failed(fmt.Errorf("-listen: %w", err), "view", stderr)
	}
	token, sum := page.NewToken(), figures.Summary()
	h := page.New(steps, page.Options{
		Access: page.Access{Token: token}, About: baseNames(log.Files()), Figures: figures,
		Sections: []report.Section{log.HintsSection(sum)},
		Hints:    func(tool string) report.Section { return log.ToolHints(tool, sum) },
	})
	fmt.Fprintf(stdout, "toolmend shows %s at\n\n  http://%s/tools?token=%s\n\nThe page shows the contents of calls. Stop it with Ctrl-C.\n", baseNames(log.Files()), l.Addr(), token)
	if err := serveView(ctx, l, h); err != nil {
		return cli.Failed(err, "view", stderr)
	}
	return cli.ExitOK
}

// parse reads the command line. given are the arguments that say what is read.
func parse(args []string) (listen string, given []string, err error) {
	listen = "127.0.0.1:0"
	fs := cli.NewFlags("view", map[string]*string{"listen": &listen})
	for _, name := range []string{"tools", "model", "tool"} {
		fs.Func(name, "", func(value string) error { given = append(given, "-"+name, value); return nil })
	}
	if err := cli.ParseFlags(fs, args); err != nil {
		return "", nil, err
	}
	if _, _, err := net.SplitHostPort(listen); err != nil || !proxy.IsLoopback(listen) {
		return "", nil, fmt.Errorf("-listen: must be an address that only this machine reaches, such as 127.0.0.1:8080, not %q", listen)
	}
	return listen, append(append(given, "--"), fs.Args()...), nil
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
	srv := cli.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !proxy.IsLoopback(r.Host) {
			http.Error(w, "this address serves only requests to localhost or 127.0.0.1", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	}))
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	cli.StopServer(srv)
	return nil
}
