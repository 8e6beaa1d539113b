package main

import (
	"fmt"
	"io"
	"os"
	"strings"

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
	if !p.colour || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) bold(s string) string { return p.paint("1", s) }

// colours are the colours of the lines of a tree, by the mark behind the branch.
var colours = []struct{ mark, code string }{
	{"   │    ~ ", "32"}, // green: a change
	{"   │    ✗ ", "31"}, // red: an issue
	{"   │    → ", "2"},  // faint: what the model was told
	{"   │      ", "2"},
	{"   └─ out  ", "32"},
	{"           ", "2"},
}

// step prints the report of one step: what the model sent, what was wrong with
// it, what it was told, and what came out.
func (p *printer) step(n int, title string, resp *middleware.Response) error {
	p.steps++
	p.modelCalls += len(resp.Report.Attempts)
	p.line("%s  %s", p.bold(fmt.Sprint(n)), p.bold(title))
	var tree strings.Builder
	if err := writeTree(&tree, resp); err != nil {
		return err
	}
	for l := range strings.Lines(tree.String()) {
		l = strings.TrimSuffix(l, "\n")
		branch, code := "", ""
		for _, c := range colours {
			if strings.HasPrefix(l, c.mark) {
				branch, code = c.mark, c.code
				break
			}
		}
		if code != "" {
			l = branch + p.paint(code, strings.TrimPrefix(l, branch))
		}
		p.line("%s", l)
	}
	p.line("")
	return nil
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
