package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
)

// Bounds of what goes to stderr when files are of the wrong kind.
const (
	maxComplaints = 100 // in all
	maxOfFile     = 5   // about the lines of one file
)

// runCheck is `toolmend check`.
func runCheck(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, checkHelp)
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "toolmend check: %v\nSee toolmend check -h.\n", err)
		return exitFailed
	}
	out := bufio.NewWriter(stdout)
	c := &check{
		settings: s, judge: newJudge(s), out: out, stderr: stderr,
		sum: newSummary(), progress: newProgress(stderr, s.files),
	}
	c.run(ctx, stdin)
	c.progress.clear()
	c.report()
	if err := out.Flush(); err != nil {
		fmt.Fprintf(stderr, "toolmend check: %v\n", err)
		return exitFailed
	}
	return c.exitCode()
}

// check is one run.
type check struct {
	settings
	judge    *judge
	out      *bufio.Writer // keeps the first error until Flush
	stderr   io.Writer
	sum      *summary // of all files together
	progress *progress
	failed   int // complaints, shown or not
	ofFile   int // those about lines of the file in hand
	shown    int
}

// run reads all files. What is wrong with one does not keep it from the next.
func (c *check) run(ctx context.Context, stdin io.Reader) {
	for _, name := range c.files {
		if ctx.Err() != nil {
			break
		}
		if err := c.file(ctx, name, stdin); err != nil {
			c.complain(err)
		}
	}
	if ctx.Err() != nil {
		c.complain(errors.New("toolmend check: interrupted; what follows is what was read so far"))
	}
}

// file reads one file to its end. The error says that it could not be opened,
// or that there are no toolsets where some were asked for; what is wrong with
// single lines is told on the way.
func (c *check) file(ctx context.Context, name string, stdin io.Reader) error {
	in, label := stdin, "stdin"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("toolmend check: %w", err)
		}
		defer f.Close()
		in, label = f, name
	}
	sets, err := c.toolsets(name)
	if err != nil {
		return err
	}
	c.sum.Files++
	c.ofFile = 0
	lines := recorded.NewReader(label, c.progress.watch(in))
	inOrder(ctx, lines.Next, func(l recorded.Line) found { return c.look(ctx, l, sets) }, c.take)
	if more := c.ofFile - maxOfFile; more > 0 {
		c.say(fmt.Errorf("%s: and %d more lines that could not be read", label, more))
	}
	return nil
}

// toolsets returns the sets for a file; nil if there are none, which only
// matters to turns that refer to one.
func (c *check) toolsets(name string) (*recorded.Toolsets, error) {
	path := c.tools
	if path == "" && name != "-" {
		path = recorded.ToolsetsBeside(name)
	}
	if path == "" {
		return nil, nil
	}
	return recorded.OpenToolsets(path)
}

// found is what a line holds.
type found struct {
	turns int      // that matched -model
	calls []judged // that matched -tool
	err   error    // a recorded.Skipped, or what is wrong with the line
}

// look works one line out. It runs on several goroutines at once.
func (c *check) look(ctx context.Context, l recorded.Line, sets *recorded.Toolsets) found {
	turns, err := l.Turns(sets)
	f := found{err: err}
	for i := range turns {
		t := &turns[i]
		if !strings.Contains(strings.ToLower(t.Model), c.model) {
			continue
		}
		calls, err := c.judge.turn(ctx, l, t)
		if err != nil {
			f.err = &recorded.Error{File: l.File, Line: l.N, Err: err}
			return f
		}
		f.turns++
		for _, j := range calls {
			if strings.Contains(strings.ToLower(j.call.Name), c.tool) {
				f.calls = append(f.calls, j)
			}
		}
	}
	return f
}

// take counts and prints, in the order of the lines.
func (c *check) take(f found) {
	var skipped recorded.Skipped
	switch {
	case errors.As(f.err, &skipped):
		c.sum.Skipped[string(skipped)]++
	case f.err != nil:
		if c.ofFile++; c.ofFile > maxOfFile {
			c.failed++
		} else {
			c.complain(f.err)
		}
	}
	c.sum.Turns += f.turns
	for i := range f.calls {
		c.sum.add(&f.calls[i], c.top)
		if c.json {
			writeCall(c.out, &f.calls[i])
		}
	}
	c.progress.show(c.sum.Calls)
}

// complain counts what is wrong, and says it.
func (c *check) complain(err error) {
	c.failed++
	c.say(err)
}

// say writes a line of its own above the progress bar. Past maxComplaints it
// does nothing.
func (c *check) say(err error) {
	if c.shown++; c.shown <= maxComplaints {
		c.progress.clear()
		fmt.Fprintln(c.stderr, err)
	}
}

// report prints what was counted, after all that was found on the way.
func (c *check) report() {
	if more := c.shown - maxComplaints; more > 0 {
		fmt.Fprintf(c.stderr, "and %d more such lines\n", more)
	}
	c.sum.Unreadable = c.failed
	if c.json {
		writeSummary(c.out, c.sum)
	} else {
		writeTables(c.out, c.sum, c.settings)
	}
}

// exitCode prefers "could not be read" to "invalid": a figure over half of a
// log is none. Without -gate the verdict as sent counts, so that the code does
// not depend on -strip: it tells about the model, not about the repairs.
func (c *check) exitCode() int {
	bad := c.sum.bad
	if c.gateFinal {
		bad = c.sum.badEnd
	}
	switch {
	case c.failed > 0:
		return exitFailed
	case bad > 0:
		return exitInvalid
	}
	return exitOK
}
