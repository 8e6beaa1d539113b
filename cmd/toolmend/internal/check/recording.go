package check

import (
	"context"
	"io"

	"github.com/toolmend/toolmend/internal/report"
)

// Recording are recorded turns that another command reads as check does.
type Recording struct{ check *check }

// NewRecording returns the Recording that args, a command line of check, name. Read
// passes each step to seen. program begins messages. The error is about args.
func NewRecording(program string, args []string, stderr io.Writer, seen func(*report.Step)) (*Recording, error) {
	s, err := parse(args)
	if err != nil {
		return nil, err
	}
	s.hints = true
	c := newCheck(s, program, stderr)
	c.seen = seen
	return &Recording{c}, nil
}

// Read reads all files, or until ctx ends. It returns the number of calls, and whether
// it has written an error to stderr.
func (r *Recording) Read(ctx context.Context, stdin io.Reader) (calls int, failed bool) {
	r.check.run(ctx, stdin)
	r.check.count()
	return r.check.calls, r.check.failed > 0
}

// Files returns the names of the files; "-" is standard input.
func (r *Recording) Files() []string { return r.check.files }

// HintsSection returns what would help most. sum is of the steps that seen got.
func (r *Recording) HintsSection(sum report.Summary) report.Section {
	return hintsSection(r.check.hints.list(sum.Pairs), sum.Retries)
}

// ToolHints returns what would help with a tool. sum is of the steps that seen got.
func (r *Recording) ToolHints(tool string, sum report.Summary) report.Section {
	return toolHints(r.check.hints.of(tool).list(sum.Pairs), tool, sum.Places(tool))
}
