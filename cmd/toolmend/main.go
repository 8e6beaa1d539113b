// Command toolmend validates and repairs the tool calls of language models.
//
//	toolmend serve --upstream https://api.anthropic.com
//
// runs a gateway between agents and a provider, and
//
//	toolmend check calls.jsonl
//
// prints how many of the calls in a log are valid, and what is wrong with the
// invalid ones. See toolmend help.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/check"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/lib"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/lint"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/mcpproxy"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/serve"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/view"
)

// help is printed if there is no command.
const help = `toolmend validates and repairs the tool calls of language models.

usage:

  toolmend serve --upstream URL    run the gateway between agents and a provider
  toolmend run AGENT [-- ARGS]     start a coding agent behind a gateway of its own
  toolmend mcp [flags] -- COMMAND  run a proxy in front of an MCP server
  toolmend env AGENT               show how to point an agent at the gateway
  toolmend health                  ask the gateway whether it is alive
  toolmend check [flags] FILE...   validate the calls in recorded turns
  toolmend try -tool FILE -call JSON
                                   validate one call, and show the reply to the model
  toolmend lint [flags] TOOLS...   check tool definitions
  toolmend view [flags] FILE...    show recorded turns in a browser
  toolmend version                 show the version
  toolmend help [COMMAND]          show this text, or that of a command

To validate and repair calls inside a Go program, use the library:
https://pkg.go.dev/github.com/toolmend/toolmend
`

// main handles the exit code. Tests call run.
func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, help)
		return cli.ExitFailed
	}
	switch args[0] {
	case "serve":
		return serve.Run(ctx, args[1:], stdout, stderr)
	case "run":
		return serve.RunAgent(ctx, args[1:], stdin, stdout, stderr)
	case "env":
		return serve.Env(args[1:], stdout, stderr)
	case "mcp":
		return mcpproxy.Run(ctx, args[1:], stdin, stdout, stderr, cli.Wait)
	case "health":
		return serve.Health(ctx, args[1:], stdout, stderr)
	case "check":
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
		defer stop()
		return check.Run(ctx, args[1:], stdin, stdout, stderr)
	case "try":
		return check.Try(ctx, args[1:], stdin, stdout, stderr)
	case "lint":
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
		defer stop()
		return lint.Run(ctx, args[1:], stdin, stdout, stderr)
	case "view":
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		return view.Run(ctx, args[1:], stdin, stdout, stderr)
	case "lib": // for the packages of Python and npm: docs/protocol.md
		signal.Ignore(os.Interrupt)                              // a terminal sends it to the host too, which decides what it means
		if lib.Serve(ctx, cli.Version(), stdin, stdout) != nil { // its last frame is the error
			return cli.ExitFailed
		}
		return cli.ExitOK
	case "version", "-version", "--version":
		fmt.Fprintln(stdout, version())
		return cli.ExitOK
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && args[1] != "help" && args[1] != "version" {
			return run(ctx, []string{args[1], "-h"}, stdin, stdout, stderr)
		}
		fmt.Fprint(stdout, help)
		return cli.ExitOK
	}
	fmt.Fprintf(stderr, "toolmend: unknown command %q\n\n%s", args[0], help)
	return cli.ExitFailed
}

// version returns the version of the module, the Go version and the platform.
func version() string {
	return fmt.Sprintf("toolmend %s %s %s/%s", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
