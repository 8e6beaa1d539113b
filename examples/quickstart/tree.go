package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
)

// treeWidth is the number of characters of a text in one line of a tree.
const treeWidth = 92

// writeTree writes the report of a step as a text for people, with one branch for
// each attempt: the calls that the model sent, the changes (~) and issues (✗) of
// each call or of the text, and the replies to the model (→). Long texts are
// cut. Then come the calls that the step returned, and the status, the number of
// model calls and the tokens.
func writeTree(w io.Writer, r *middleware.Response) error {
	t := tree{bufio.NewWriter(w)}
	t.attempts(r.Report)
	for i, c := range r.Message.ToolCalls {
		branch := "   └─ out  "
		if i > 0 {
			branch = "           "
		}
		t.line("%s%s %s", branch, c.Name, clipLine(c.Arguments, treeWidth))
	}
	t.line("           %s", summary(r.Report))
	return t.w.Flush()
}

// summary is the last line of a tree.
func summary(r middleware.Report) string {
	var tokens int64
	for _, a := range r.Attempts {
		tokens += a.Usage.InputTokens + a.Usage.OutputTokens
	}
	status := string(r.Status)
	if r.Status == middleware.NoCalls {
		status = "no calls"
	}
	return fmt.Sprintf("%s, %s, %d tokens", status, count(len(r.Attempts), "model call"), tokens)
}

// tree writes lines; the writer keeps its first error.
type tree struct{ w *bufio.Writer }

// line writes one line without the control characters that model-written text
// may hold: they could change the display of a terminal.
func (t tree) line(format string, args ...any) {
	fmt.Fprintln(t.w, strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return ' '
		}
		return c
	}, fmt.Sprintf(format, args...)))
}

func (t tree) attempts(r middleware.Report) {
	for i, a := range r.Attempts {
		t.line("   ├─ attempt %d", i+1)
		for _, sent := range a.Message.ToolCalls {
			t.line("   │    %s %s", sent.Name, clipLine(sent.Arguments, treeWidth))
		}
		if a.Err != nil {
			t.line("   │    ✗ %s", clipLine(a.Err.Error(), treeWidth))
		}
		if text := a.Message.Text(); text != "" && len(a.Issues)+len(a.Changes) > 0 {
			t.line("   │    %q", clip(text, treeWidth))
		}
		t.faults("the answer", a.Changes, a.Issues)
		for _, v := range a.Verdicts {
			t.faults(middleware.Issue{}.Path(), v.Changes, v.Issues)
		}
		for _, reply := range a.Replies {
			t.reply(reply)
		}
	}
	for _, note := range r.Notes {
		t.line("   ├─ note: %s", clipLine(note, treeWidth))
	}
}

// faults writes changes and issues. whole is the place that is printed for an
// issue without a pointer.
func (t tree) faults(whole string, changes []middleware.Change, issues []middleware.Issue) {
	for _, c := range changes {
		t.line("   │    ~ %s: %s", c.By, edit(c))
	}
	for _, i := range issues {
		place := whole
		if i.Pointer != "" {
			place = i.Path()
		}
		t.line("   │    ✗ %s: %s", place, i.Message)
	}
}

// edit describes the change and its place, if the change has one.
func edit(c middleware.Change) string {
	what := clipLine(c.Before, treeWidth) + " taken out"
	if c.After != "" {
		what = strings.TrimSpace(clipLine(c.Before, treeWidth) + " → " + clipLine(c.After, treeWidth))
	}
	if c.Pointer != "" {
		what += " at " + c.Pointer
	}
	return what
}

func (t tree) reply(reply middleware.Message) {
	mark := "→ reply:"
	if reply.Role == middleware.RoleTool && !reply.IsError {
		mark = "→ reply (a valid sibling):"
	}
	t.line("   │    %s", mark)
	bullets := 0
	more := func() {
		if bullets > 1 {
			t.line("   │      (%d more, see ✗ above)", bullets-1)
		}
		bullets = 0
	}
	for l := range strings.SplitSeq(reply.Text(), "\n") {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if !strings.HasPrefix(l, "•") {
			more()
		} else if bullets++; bullets > 1 { // the ✗ lines above say it
			continue
		}
		for _, part := range wrap(l) {
			t.line("   │      %s", part)
		}
	}
	more()
}

// clipLine puts s on one line of at most n bytes.
func clipLine(s string, n int) string { return strings.ReplaceAll(clip(s, n), "\n", " ") }

// clip cuts s at n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n
	for end > n-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// wrap breaks s at spaces into lines that fit.
func wrap(s string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > treeWidth {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
