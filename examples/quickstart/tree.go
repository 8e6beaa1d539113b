package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
)

// printer writes steps as trees, with colour where a person reads them.
type printer struct {
	out        io.Writer
	colour     bool
	modelCalls int
	steps      int
}

// colourful reports whether f is a terminal whose user did not ask for plain
// text (no-color.org).
func colourful(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p *printer) paint(code, s string) string {
	if !p.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) bold(s string) string  { return p.paint("1", s) }
func (p *printer) faint(s string) string { return p.paint("2", s) }
func (p *printer) red(s string) string   { return p.paint("31", s) }
func (p *printer) green(s string) string { return p.paint("32", s) }

// step prints the ledger of one step: what the model sent, what was wrong with
// it, what it was told, and what came out.
func (p *printer) step(n int, title string, resp *middleware.Response) {
	p.steps++
	p.line("%s  %s", p.bold(fmt.Sprint(n)), p.bold(title))
	for i, a := range resp.Report.Attempts {
		p.modelCalls++
		p.line("   ├─ attempt %d", i+1)
		for _, sent := range a.Message.ToolCalls {
			p.line("   │    %s %s", sent.Name, p.faint(clip(sent.Arguments)))
		}
		for _, v := range a.Verdicts {
			p.verdict(v)
		}
		for _, reply := range a.Replies {
			p.told(reply)
		}
	}
	for i, c := range resp.Message.ToolCalls {
		branch := "   └─ out  "
		if i > 0 {
			branch = "           "
		}
		p.line("%s%s %s", branch, p.green(c.Name), p.green(clip(c.Arguments)))
	}
	p.line("           %s", p.faint(fmt.Sprintf("%s, %s, %d tokens", resp.Report.Status,
		count(len(resp.Report.Attempts), "model call"), resp.Usage.Input+resp.Usage.Output)))
	p.line("")
}

func (p *printer) verdict(v middleware.Verdict) {
	for _, c := range v.Changes {
		p.line("   │    %s", p.green(fmt.Sprintf("~ %s: %s", c.By, edit(c))))
	}
	for _, i := range v.Issues {
		p.line("   │    %s", p.red(fmt.Sprintf("✗ %s: %s", i.Path(), i.Message)))
	}
}

// edit says what a change did, and where if it says so.
func edit(c middleware.Change) string {
	what := c.Before + " taken out"
	if c.After != "" {
		what = strings.TrimSpace(c.Before + " → " + c.After)
	}
	if c.Pointer != "" {
		what += " at " + c.Pointer
	}
	return what
}

func (p *printer) told(reply middleware.Message) {
	mark := "→ told:"
	if !reply.IsError {
		mark = "→ told (a valid sibling):"
	}
	p.line("   │    %s", p.faint(mark))
	for l := range strings.SplitSeq(reply.Text(), "\n") {
		if l = strings.TrimSpace(l); l == "" || strings.HasPrefix(l, "•") { // the ✗ lines above say it
			continue
		}
		for _, part := range wrap(l) {
			p.line("   │      %s", p.faint(part))
		}
	}
}

func (p *printer) summary() {
	p.line("%s", p.bold(fmt.Sprintf("%s, %s, 0 invalid tool calls reached the loop.", count(p.steps, "step"), count(p.modelCalls, "model call"))))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

const width = 92 // of what stands right of a tree, so that a usual terminal holds it

// clip keeps s on one line.
func clip(s string) string {
	s = strings.ReplaceAll(s, "\n", " ")
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// wrap breaks s at spaces into lines that fit.
func wrap(s string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
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
