// Package check is the command toolmend check. It validates the calls in recorded
// turns, and compares and explains the figures.
package check

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/mcptools"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Limits on the messages about unreadable input.
const (
	maxComplaints = 100 // in total
	maxOfFile     = 5   // about the lines of one file
)

// Run is `toolmend check`.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s, err := parse(args)
	if err != nil {
		return cli.Usage(err, "check", help, stdout, stderr)
	}
	var base *summaryJSON
	if s.baseline != "" {
		if base, err = readBaseline(s.baseline); err != nil {
			return cli.Failed(err, "check", stderr)
		}
	}
	c := newCheck(s, "toolmend check", stderr)
	c.measurer, c.out = newMeasurer(c.checker), bufio.NewWriter(stdout)
	c.run(ctx, stdin)
	sum := c.summary()
	var compared *comparison // nil without -baseline
	if base != nil {
		compared = compareRates(base, &c.rates, s)
	}
	err = cmp.Or(c.write(sum, compared), c.out.Flush())
	if err == nil && s.writeBaseline != "" && c.failed == 0 {
		err = c.writeSummary(sum)
	}
	if err != nil {
		return cli.Failed(err, "check", stderr)
	}
	return c.exitCode(sum, compared)
}

// check is one run.
type check struct {
	settings
	program  string             // for messages
	seen     func(*report.Step) // gets each step; may be nil
	checker  *report.Checker
	measurer *measurer     // nil measures nothing
	out      *bufio.Writer // keeps the first error until Flush
	stderr   io.Writer
	figures  *report.Figures // of all files
	reading  report.Reading
	last     report.Step // not counted yet: the next line may be an attempt of the same step
	calls    int         // read so far
	rates    turnRates
	measures measures
	hinter   *hinter // nil without -hints and -html
	hints    hintCounts
	progress *progress
	log      *recorded.Log
	sets     *recorded.Toolsets // of -tools; nil: those beside each file
	sessions sessions
	// unvalidated is the number of selected calls for which the log has no schema.
	unvalidated int
	answered    bool // a line has a call, whatever -model and -tool select
	read        fileRead
	failed      int // number of errors, printed or not
	ofFile      int // number of errors about lines of the current file
	shown       int // number of messages, printed or not: one may stand for many errors
}

// newCheck returns a run that measures and writes nothing.
func newCheck(s settings, program string, stderr io.Writer) *check {
	c := &check{
		settings: s, program: program, checker: report.NewChecker(s.verdict), stderr: stderr,
		figures: report.NewFigures(s.figures()), progress: newProgress(stderr, s.files),
		log: recorded.NewLog(), reading: report.Reading{Skipped: map[string]int{}}, rates: newTurnRates(), measures: measures{Models: map[string]*measured{}},
	}
	if s.hints || s.html != "" {
		c.hinter, c.hints = newHinter(s), hintCounts{}
	}
	return c
}

// run reads all files. An error in one file does not stop the run.
func (c *check) run(ctx context.Context, stdin io.Reader) {
	if c.tools != "" {
		var err error
		if c.sets, err = mcptools.Open(ctx, c.tools); err != nil {
			c.complain(err)
			return
		}
	}
	for _, name := range c.files {
		files, err := filesIn(name)
		if err != nil {
			c.complain(fmt.Errorf("%s: %w", c.program, err))
		}
		for _, file := range files {
			if ctx.Err() != nil {
				break
			}
			if err := c.file(ctx, file, stdin, file != name); err != nil {
				c.complain(err)
			}
		}
	}
	if ctx.Err() != nil {
		c.complain(errors.New(c.program + ": interrupted; what follows is what was read so far"))
	}
	c.progress.clear()
}

// filesIn returns the files of a directory that may be logs, in the order of their names; of
// another name, itself. It follows links to files. The error joins those of directories that
// cannot be read.
func filesIn(name string) (files []string, failed error) {
	root, err := filepath.EvalSymlinks(name)
	if info, e := os.Stat(name); err != nil || e != nil || !info.IsDir() {
		return []string{name}, nil
	}
	_ = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		failed = errors.Join(failed, err)
		switch filepath.Ext(strings.TrimSuffix(path, ".gz")) {
		case ".json", ".jsonl", ".ndjson", ".traj", ".har":
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				files = append(files, path)
			}
		}
		return nil
	})
	if failed == nil && len(files) == 0 {
		failed = fmt.Errorf("%s: the directory has no file with an end that logs have: .json, .jsonl, .ndjson, .traj or .har", name)
	}
	return files, failed
}

// fileRead counts what was read of one file.
type fileRead struct {
	calls   int
	unknown int    // records in no form that is read
	unread  int    // of these, records that look as if they had calls
	first   string // about the first of them
}

// file reads one file to its end. A file of a directory may be something else than a log. It
// returns an error if the file cannot be
// opened, or if it has no toolsets although -tools names some. It reports
// errors of single lines as it goes.
func (c *check) file(ctx context.Context, name string, stdin io.Reader, inDirectory bool) error {
	in, label := stdin, "stdin"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("%s: %w", c.program, err)
		}
		defer f.Close()
		in, label = f, name
	}
	sets := c.sets
	if sets == nil {
		var err error
		if sets, err = recorded.ToolsetsFor(name); err != nil {
			return err
		}
	}
	c.reading.Files++
	c.ofFile = 0
	c.read = fileRead{}
	lines := c.log.Reader(label, c.progress.watch(in))
	inOrder(ctx, lines.All(), func(l recorded.Line) lineResult { return c.look(ctx, l, sets) }, c.add)
	if more := c.ofFile - maxOfFile; more > 0 {
		c.say(fmt.Errorf("%s: and %d more lines that could not be read", label, more))
	}
	switch r := c.read; {
	case r.calls == 0 && r.unknown > 0 && !inDirectory:
		c.complain(fmt.Errorf("%s: not a form that is read, so nothing of it was checked: %s; see toolmend check -h for the forms", label, r.first))
	case r.unread > 0:
		c.complain(fmt.Errorf("%s: %s left out that may have calls, in no form that is read: %s", label, text.Plural(r.unread, "record"), r.first))
	}
	return nil
}

// lineResult is the result of one line.
type lineResult struct {
	steps       []report.Step  // the turns that match -model, with the calls that match -tool
	measures    []measuredTurn // of the turns with such a call
	hints       []hint         // with -hints
	tallies     []tally
	calls       int           // before -tool selects
	unvalidated int           // calls without a schema that -model and -tool select
	line        recorded.Line // of an err
	err         error         // a recorded.Skipped, or the error of the line
}

// look validates one line. It runs concurrently, and so it changes nothing in c. -model
// and -tool select what is counted, not what is validated: the rules look at the other
// calls of a turn.
func (c *check) look(ctx context.Context, l recorded.Line, sets *recorded.Toolsets) lineResult {
	turns, err := l.Turns(sets)
	f := lineResult{err: err}
	if err != nil {
		f.line = l
	}
	for i := range turns {
		t := &turns[i]
		f.calls += len(t.Calls)
		if !strings.Contains(strings.ToLower(t.Model), c.model) {
			continue
		}
		for _, call := range t.Calls {
			noSchema := t.NoTools || (t.Session || t.Some) && slices.ContainsFunc(t.Tools, func(tool middleware.Tool) bool {
				return tool.Name == call.Name && tool.Parameters == nil && tool.Kind == call.Kind
			})
			if noSchema && strings.Contains(strings.ToLower(call.Name), c.tool) {
				f.unvalidated++
			}
		}
		req := t.Limits
		req.Messages, req.Tools = t.Messages, t.Tools
		calls, err := c.checker.CheckTurn(ctx, &req, t.Finish, t.Calls...)
		if err != nil {
			f.err = &recorded.Error{File: l.File, Line: l.N, Err: err}
			return f
		}
		matches := func(call report.Call) bool { return strings.Contains(strings.ToLower(call.Sent.Name), c.tool) }
		if t.Session {
			f.tallies = append(f.tallies, tallyOf(l.File, t, c.tool)...)
		}
		if c.measurer != nil && !t.NoTools && slices.ContainsFunc(calls, matches) {
			f.measures = append(f.measures, measuredTurn{t.Model, c.measurer.turn(t, calls)})
		}
		calls = slices.DeleteFunc(calls, func(call report.Call) bool { return !matches(call) })
		f.steps = append(f.steps, stepOf(l, t, calls))
		if c.hinter != nil {
			for n := range calls {
				f.hints = append(f.hints, c.hinter.call(ctx, t.Tools, t.Model, &calls[n])...)
			}
		}
	}
	return f
}

// add counts and prints results, in the order of the lines. It does not run
// concurrently. A log of another kind has an error in each line: past maxOfFile they
// count, and are not printed.
func (c *check) add(f lineResult) {
	var skipped recorded.Skipped
	switch {
	case errors.As(f.err, &skipped):
		c.reading.Skipped[string(skipped)]++
		if skipped == recorded.SkippedUnknown {
			c.unknown(f.line)
		}
	case f.err != nil:
		if c.ofFile++; c.ofFile > maxOfFile {
			c.failed++
		} else {
			c.complain(f.err)
		}
	default:
		c.answered = true
	}
	c.read.calls, c.unvalidated = c.read.calls+f.calls, c.unvalidated+f.unvalidated
	for _, t := range f.tallies {
		c.sessions.add(t)
	}
	for _, m := range f.measures {
		c.measures.add(m)
	}
	c.hints.add(f.hints)
	for i := range f.steps {
		s := &f.steps[i]
		c.rates.add(s)
		c.calls += len(s.Attempts[0].Calls)
		if c.format == cli.FormatJSON {
			_ = report.WriteJSONCalls(c.out, s, c.content) // out keeps the error
		}
		if !c.last.Join(s) {
			c.count()
			c.last = *s
		}
	}
	c.progress.show(c.calls)
}

// unknown counts a record in no form that is read.
func (c *check) unknown(l recorded.Line) {
	if c.read.unknown++; c.read.unknown == 1 {
		c.read.first = l.Describe()
	}
	if l.MayHoldCall() {
		c.read.unread++
	}
}

// complain counts a message and prints it.
func (c *check) complain(err error) {
	c.failed++
	c.say(err)
}

// say prints a message above the progress bar. After maxComplaints messages it
// prints nothing.
func (c *check) say(err error) {
	if c.shown++; c.shown <= maxComplaints {
		c.progress.clear()
		fmt.Fprintln(c.stderr, text.Visible(err.Error(), true))
	}
}

// count counts the last step.
func (c *check) count() {
	if len(c.last.Attempts) == 0 {
		return
	}
	c.figures.Add(&c.last)
	if c.seen != nil {
		c.seen(&c.last)
	}
}

// summary returns the figures at the end of the run, after the last messages.
func (c *check) summary() report.Summary {
	if more := c.shown - maxComplaints; more > 0 {
		fmt.Fprintf(c.stderr, "and %d more such lines\n", more)
	}
	c.reading.Unreadable = c.failed
	if c.unvalidated > 0 {
		fmt.Fprintf(c.stderr, "%s: %s not validated: the log does not have the schemas of the tools. Name them with -tools: a file with a list of tools, the body of a request, a result of MCP's tools/list or one schema; the address of an MCP server; or \"mcp:COMMAND\", which starts one\n",
			c.program, text.Plural(c.unvalidated, "call"))
	}
	if c.calls == 0 && c.failed == 0 {
		if !c.answered && len(c.reading.Skipped) > 0 {
			c.failed++
			fmt.Fprint(c.stderr, "toolmend check: no line has a tool call in a form that is read, so nothing was checked: calls that are only text are not read. See toolmend check -h\n")
		} else {
			fmt.Fprintln(c.stderr, "toolmend check: no tool call was found, so none was checked; see toolmend check -h for the forms of a turn, and -model and -tool")
		}
	}
	c.count()
	sum := c.figures.Summary()
	sum.Reading = c.reading
	return sum
}

// exitCode returns 2 rather than 1 if both apply, because the figures of a
// partly read log are wrong. Without -gate the verdict as sent counts. It
// describes the model rather than the repairs, and the exit code does not
// depend on -strip. With -baseline the comparison decides, and the share of the
// calls only if -max-invalid is set. If the share is above -max-invalid, a message says so.
func (c *check) exitCode(sum report.Summary, compared *comparison) int {
	bad, of := sum.Bad, sum.Total.Checked()+sum.Total.Unusable
	if c.gateFinal {
		bad = sum.BadEnd
	}
	above := 100*float64(bad) > (c.maxInvalid+1e-9)*float64(of)
	if above && c.maxInvalid > 0 {
		fmt.Fprintf(c.stderr, "toolmend check: %d of %s not valid, more than the %g%% of -max-invalid\n", bad, text.Plural(of, "call"), c.maxInvalid)
	}
	switch {
	case c.failed > 0 || c.unvalidated > 0:
		return cli.ExitFailed
	case compared != nil && compared.Risen, above:
		return cli.ExitInvalid
	}
	return cli.ExitOK
}
