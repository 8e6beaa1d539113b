// Package ci writes the figures of package report for programs that run checks:
// GitHub's annotations and summaries, JUnit's XML, and SARIF.
//
// Names of tools, models and properties are written by models, and so are the
// arguments. Every writer escapes them, cuts long ones and replaces characters that its
// format does not allow. It shows tools, pointers, codes, types and what a schema asks
// for, and values that models wrote only with report.Layout.Values.
package ci

import (
	"fmt"
	"io"
	"strings"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// MaxAnnotations is how many annotations of one kind GitHub shows of a step.
const MaxAnnotations = 10

// WriteAnnotation writes a workflow command, error, warning or notice, which GitHub shows beside the line
// of the file. A file of "" and a line of 0 are left out.
//
// Source: docs.github.com, "Workflow commands for GitHub Actions".
func WriteAnnotation(w io.Writer, command, file string, line int, title, message string) error {
	place := ""
	if file != "" {
		place = "file=" + property(file) + ","
		if line > 0 {
			place += fmt.Sprintf("line=%d,", line)
		}
	}
	_, err := fmt.Fprintf(w, "::%s %stitle=%s::%s\n", command, place, property(title), data(message))
	return err
}

// WriteAnnotations writes annotations for GitHub: at most 10 errors, calls that are
// not valid in the end, and at most 10 warnings, calls that were repaired. Each kind of
// fault of a tool comes once before one comes again.
func WriteAnnotations(w io.Writer, s report.Summary, l report.Layout) error {
	for _, kind := range []struct {
		command string
		good    bool // in the end
	}{{"error", false}, {"warning", true}} {
		for _, f := range spread(s.Findings, kind.good) {
			title := string(f.AsSent) + " call to " + report.Name(f.Tool)
			if err := WriteAnnotation(w, kind.command, text.Visible(f.File, false), f.Line, title, findingText(f, l.Values)); err != nil {
				return err
			}
		}
	}
	return nil
}

// spread returns the first findings of each tool and code, and then others, in order.
func spread(all []report.Finding, good bool) []*report.Finding {
	type kind struct{ tool, code string }
	seen := map[kind]bool{}
	var first, others []*report.Finding
	for i := range all {
		f := &all[i]
		if f.Final.Good() != good {
			continue
		}
		k := kind{f.Tool, string(f.AsSent)}
		if len(f.Codes) > 0 {
			k.code = f.Codes[0]
		}
		switch {
		case !seen[k]:
			seen[k] = true
			first = append(first, f)
		case len(others) < MaxAnnotations:
			others = append(others, f)
		}
		if len(first) == MaxAnnotations {
			break
		}
	}
	return head(append(first, others...), MaxAnnotations)
}

// data escapes the message of a workflow command.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// property escapes the value of a property of a workflow command.
func property(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
