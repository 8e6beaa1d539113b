// Package cli is what the commands of toolmend share: exit codes, flags, and
// programs that they start.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/text"
)

// Exit codes.
const (
	ExitOK      = 0
	ExitInvalid = 1 // a call is invalid as sent
	ExitFailed  = 2 // an input could not be read, the output could not be written, or the command line is wrong
	// ExitNotFound is the exit code of shells for a program that is not installed.
	ExitNotFound = 127
	// EndedBySignal is what is added to the number of the signal that ended a
	// program, for its exit code.
	EndedBySignal = 128
)

// The values of -format.
const (
	FormatText   = "text"
	FormatJSON   = "json"
	FormatGitHub = "github"
	FormatJUnit  = "junit"
	FormatSARIF  = "sarif"
)

// NewFlags returns a set of flags that prints nothing. texts are the flags whose values are
// text; the default of each is the text that it has.
func NewFlags(name string, texts map[string]*string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	for name, to := range texts {
		fs.StringVar(to, name, *to, "")
	}
	return fs
}

// Failed prints the error because of which a command stops. It returns the exit code.
func Failed(err error, command string, stderr io.Writer) int {
	fmt.Fprintf(stderr, "toolmend %s: %s\n", command, text.Visible(err.Error(), true))
	return ExitFailed
}

// ParseFlags is fs.Parse. The error for an unknown flag names the flag that was
// probably meant.
func ParseFlags(fs *flag.FlagSet, args []string) error {
	err := fs.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err
	}
	var known []string
	fs.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	return fmt.Errorf("unknown flag --%s%s", name, Meant("--", name, known))
}

// ParseFiles reads a command line of flags and files, in any order; all arguments
// after "--" are files.
func ParseFiles(fs *flag.FlagSet, args []string) (files []string, err error) {
	for {
		if err := ParseFlags(fs, args); err != nil {
			return nil, err
		}
		rest := fs.Args()
		if len(rest) == 0 {
			return files, nil
		}
		if FlagsEnd(fs, args[:len(args)-len(rest)]) {
			return append(files, rest...), nil
		}
		files, args = append(files, rest[0]), rest[1:]
	}
}

// FlagsEnd reports whether parsed, which fs has read, ends with a "--" that
// ends the flags. It returns false if that "--" is the value of a flag.
func FlagsEnd(fs *flag.FlagSet, parsed []string) bool {
	last := len(parsed) - 1
	return last >= 0 && parsed[last] == "--" && fs.Parse(parsed[:last]) == nil
}

// NewServer returns a server with limits on clients. A request and its answer may take as
// long as they need.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second, // from the first byte of a connection or a request to the end of the headers
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// StopServer ends a server. Requests that have begun have a second to finish.
func StopServer(srv *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close()
	}
}

// Usage prints the help of a command if err asks for it, or else err, which is
// about the command line. It returns the exit code.
func Usage(err error, command, help string, stdout, stderr io.Writer) int {
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, help)
		return ExitOK
	}
	Failed(err, command, stderr)
	fmt.Fprintf(stderr, "See toolmend %s -h.\n", command)
	return ExitFailed
}

// Meant returns the end of a message about an unknown name, or "" if none of the
// known ones is close.
func Meant(prefix, name string, known []string) string {
	if s := schema.SuggestTool(name, known); s != "" {
		return fmt.Sprintf("; did you mean %s%s?", prefix, s)
	}
	return ""
}

// Version returns the version of the module, or "(devel)".
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
