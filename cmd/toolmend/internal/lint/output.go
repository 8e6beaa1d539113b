package lint

import (
	"fmt"
	"io"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/ci"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/sarif"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// maxName is how many bytes of a tool's or a property's name a finding shows.
const maxName = 60

// WriteText writes a line for each finding, in the form that compilers use.
func WriteText(w io.Writer, findings []Finding) error {
	for _, f := range findings {
		where := ""
		if f.Pointer != "" {
			where = " (" + f.Pointer + ")"
		}
		if _, err := fmt.Fprintln(w, text.Visible(fmt.Sprintf("%s:%d: %s: %s%s [%s]%s", f.File, f.Line, f.Level, of(f.Tool), f.Message, f.Rule, where), false)); err != nil {
			return err
		}
	}
	return nil
}

// of begins a message with the name of its tool.
func of(tool string) string {
	if tool == "" {
		return ""
	}
	return "tool " + text.Clip(tool, maxName) + ": "
}

// WriteJSON writes each finding as a line of JSON.
func WriteJSON(w io.Writer, findings []Finding) error {
	for _, f := range findings {
		if err := report.WriteJSON(w, f); err != nil {
			return err
		}
	}
	return nil
}

// WriteGitHub writes the first findings of each level as annotations for GitHub, and
// the others as text for the log.
func WriteGitHub(w io.Writer, findings []Finding) error {
	var others []Finding
	for _, level := range []struct {
		of      Level
		command string
	}{{Error, "error"}, {Warning, "warning"}, {Note, "notice"}} {
		shown := 0
		for _, f := range findings {
			if f.Level != level.of {
				continue
			}
			if shown++; shown > ci.MaxAnnotations {
				others = append(others, f)
				continue
			}
			if err := ci.WriteAnnotation(w, level.command, f.File, f.Line, "toolmend lint: "+f.Rule, text.Visible(of(f.Tool)+f.Message, false)); err != nil {
				return err
			}
		}
	}
	return WriteText(w, others)
}

// WriteSARIF writes the findings as a SARIF 2.1.0 log, for code scanning.
func WriteSARIF(w io.Writer, findings []Finding) error {
	run := sarif.NewRun("toolmend lint")
	for _, f := range findings {
		at := sarif.Location{Physical: sarif.InFile(f.File, f.Line)}
		if f.Pointer != "" {
			at.Logical = []sarif.Logical{{Full: f.Pointer}}
		}
		run.Add(sarif.Rule{ID: f.Rule, HelpURI: "https://github.com/toolmend/toolmend/blob/main/docs/reports.md#lint"},
			sarif.Result{Level: string(f.Level), Message: sarif.Escaped(text.Visible(of(f.Tool)+f.Message, false)), Locations: []sarif.Location{at}})
	}
	return run.Write(w, " ")
}
