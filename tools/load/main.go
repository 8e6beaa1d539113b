// Command load measures what the gateway adds to a model call, on loopback and
// with an upstream that answers at once.
//
//	make load
//	go run -C tools ./load -gateway ../bin/toolmend
//
// Each server is a process of its own, as users run them: a mock upstream, an
// httputil.ReverseProxy with a BufferPool and a connection to the upstream for each client,
// transport.Handler with argsvalidate, and the gateway. Load starts all but the gateway by running
// itself with the argument "role". The figures depend on the machine, so none of them makes load
// fail. A request that fails does, and so does an answer that does not mean what the mock sent.
//
// The run is a table of rows (rows.go). -list prints their names, and -row selects some by a regular
// expression. With -base another build of the gateway is measured in the same run. One row with three
// targets takes ten seconds:
//
//	go run -C tools ./load -gateway ../bin/toolmend -base ../bin/older -row '^60 tools, chat, whole$'
//
// With -reloads it measures something else: the requests that fail while the
// gateway reads its configuration again, and when it is told to end.
//
//	go run -C tools ./load -gateway ../bin/toolmend -reloads 100
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// settings are the flags of one run.
type settings struct {
	gateway string // the path of the command toolmend; "" leaves the gateway out
	base    string // the path of another build of it; "" is none
	profile string // where transport.Handler writes a CPU profile; "" is nowhere
	only    string // a regular expression for the names of rows
	clients int
	crowd   int           // clients of the rows with a crowd
	blocks  int           // into which each measurement is divided
	rounds  int           // of calls of toolmend mcp in a block
	phase   time.Duration // of one target in a block
	gap     time.Duration // in a stream, after its first text
	streams int           // that are open while memory is measured
	settle  time.Duration // from their first text to the end of that measurement
	starts  int           // of each server
	reloads int           // 0 measures speed
	mcp     bool          // measure only toolmend mcp
	list    bool          // measure nothing
	matches *regexp.Regexp
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == "role" && (args[1] == roleMCP || args[1] == rolePipe) {
		return serveStdio(args[1])
	}
	if len(args) > 0 && args[0] == "role" {
		return serveRole(ctx, args[1:], os.Stdin)
	}
	var s settings
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.gateway, "gateway", "", "the `path` of the command toolmend; without it the gateway is left out")
	flags.StringVar(&s.base, "base", "", "the `path` of another build of the command, which is measured beside it")
	flags.StringVar(&s.profile, "profile", "", "write a CPU profile of transport.Handler to this `file`")
	flags.StringVar(&s.only, "row", "", "measure only the rows whose names match this `expression`, such as '60 tools, chat, whole$'")
	flags.BoolVar(&s.list, "list", false, "list the names of the rows, and measure nothing")
	flags.IntVar(&s.clients, "clients", 10, "the `number` of clients")
	flags.IntVar(&s.crowd, "crowd", 100, "the `number` of clients of the rows with a crowd")
	flags.IntVar(&s.blocks, "blocks", 10, "the `number` of blocks of each measurement; the quartiles are those of the blocks")
	flags.IntVar(&s.rounds, "rounds", 200, "the `number` of calls of toolmend mcp in a block")
	flags.DurationVar(&s.phase, "phase", 250*time.Millisecond, "how long a target is under load in each block")
	flags.DurationVar(&s.gap, "gap", 10*time.Millisecond, "the pause of the mock after the first text of a stream")
	flags.IntVar(&s.streams, "streams", 500, "the `number` of streams that are open while memory is measured")
	flags.DurationVar(&s.settle, "settle", 2*time.Second, "how long memory is measured")
	flags.IntVar(&s.starts, "starts", 10, "how often each server is started")
	flags.IntVar(&s.reloads, "reloads", 0, "count failed requests over this `number` of reloads and a SIGTERM, and measure nothing else")
	flags.BoolVar(&s.mcp, "mcp", false, "measure toolmend mcp, and nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: every setting is a flag", flags.Arg(0))
	}
	if err := s.validate(); err != nil {
		return err
	}
	var err error
	if s.matches, err = regexp.Compile(s.only); err != nil {
		return err
	}
	switch {
	case s.list:
		for _, r := range rows(s.clients, s.crowd) {
			fmt.Fprintln(out, r.name)
		}
		_, err := fmt.Fprintf(out, "%s\n%s\n%s\n", rowMemory, rowStart, rowMCP)
		return err
	case s.reloads > 0:
		return reload(ctx, s, out)
	case s.mcp:
		return measureMCP(ctx, s, out)
	}
	r, err := measure(ctx, s)
	if err != nil {
		return err
	}
	if _, err = io.WriteString(out, r.markdown()); err != nil {
		return err
	}
	if !s.selects(rowMCP) {
		return nil
	}
	return measureMCP(ctx, s, out)
}

// selects reports whether the row is measured.
func (s settings) selects(row string) bool { return s.matches.MatchString(row) }

func (s settings) validate() error {
	if min(s.clients, s.crowd, s.blocks, s.rounds, s.streams, s.starts) < 1 || min(s.phase, s.gap, s.settle) <= 0 || s.reloads < 0 {
		return errors.New("the numbers and durations of the flags must be positive")
	}
	if s.settle > 5*time.Second {
		return errors.New("-settle: a stream must not be silent for longer than 5s, because a gateway then sends its keep-alive")
	}
	if (s.reloads > 0 || s.base != "" || s.mcp) && s.gateway == "" {
		return errors.New("-reloads, -base and -mcp need -gateway")
	}
	return nil
}
