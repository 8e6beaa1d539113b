// Command toolmend validates and repairs the tool calls of language models.
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
	"runtime/debug"
)

// Exit codes.
const (
	exitOK      = 0
	exitInvalid = 1 // a call is invalid as sent
	exitFailed  = 2 // an input could not be read, the output could not be written, or the command line is wrong
)

// help is printed if there is no command.
const help = `toolmend validates and repairs the tool calls of language models.

usage:

  toolmend check [flags] FILE...   validate the calls in recorded turns
  toolmend version                 show the version
  toolmend help                    show this text
  toolmend check -h                show the flags of check

To validate and repair calls while your program runs, use the library:
https://pkg.go.dev/github.com/toolmend/toolmend
`

// main handles interrupts and the exit code. Tests call run.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, help)
		return exitFailed
	}
	switch args[0] {
	case "check":
		return runCheck(ctx, args[1:], stdin, stdout, stderr)
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && args[1] == "check" {
			return runCheck(ctx, []string{"-h"}, stdin, stdout, stderr)
		}
		fmt.Fprint(stdout, help)
		return exitOK
	}
	if args[0] == "version" || args[0] == "-version" || args[0] == "--version" {
		fmt.Fprintln(stdout, version())
		return exitOK
	}
	fmt.Fprintf(stderr, "toolmend: unknown command %q\n\n%s", args[0], help)
	return exitFailed
}

// version returns the version of the module, the Go version and the platform.
func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("toolmend %s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
