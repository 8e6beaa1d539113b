package check

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/ci"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/internal/report"
)

// summaryJSON is the last line of -json. Its keys are stable.
type summaryJSON struct {
	report.Line

	Strip     string          `json:"strip"` // the settings of this run
	Mend      string          `json:"mend"`
	Unknown   string          `json:"unknown"`
	Formats   string          `json:"formats"`
	TurnRates *turnRates      `json:"turn_rates"` // for -baseline
	Measures  *measures       `json:"measures"`
	Baseline  *comparison     `json:"baseline,omitempty"`
	Hints     []hint          `json:"hints,omitempty"`   // with -hints
	Retries   *report.Retries `json:"retries,omitempty"` // with -hints
}

// write writes the figures as -format says, and the HTML report.
func (c *check) write(sum report.Summary, compared *comparison) error {
	hints := c.hints.list(sum.Pairs)
	sections := c.sections(sum, compared, hints)
	if c.html != "" {
		if err := c.writeHTML(sum, sections, hints); err != nil {
			return err
		}
	}
	layout := report.Layout{Values: c.content, Final: c.gateFinal, Sections: sections}
	switch c.format {
	case cli.FormatGitHub:
		if compared != nil && compared.Risen { // why the step fails
			answer, _, _ := strings.Cut(compared.answer(), "\n")
			_ = ci.WriteAnnotation(c.out, "error", "", 0, "toolmend check -baseline", answer) // out keeps the error
		}
		return c.writeGitHub(sum, layout)
	case cli.FormatJUnit:
		return ci.WriteJUnit(c.out, sum, layout)
	case cli.FormatSARIF:
		return ci.WriteSARIF(c.out, sum, layout)
	case cli.FormatJSON:
		line := c.summaryLine(sum)
		line.Baseline = compared
		if c.settings.hints {
			line.Hints = hints
			line.Retries = &sum.Retries
		}
		return report.WriteJSON(c.out, line)
	}
	writeTables(c.out, sum, &c.measures.Total, &c.sessions, compared, c.settings)
	if c.settings.hints {
		writeHints(c.out, hints, sum.Retries, c.top)
	}
	return nil
}

// summaryLine returns the summary without a comparison and hints.
func (c *check) summaryLine(sum report.Summary) summaryJSON {
	return summaryJSON{
		Line: sum.Line(), Strip: c.stripName, Mend: c.mendName, Unknown: c.unknownName, Formats: c.formatsName, TurnRates: &c.rates, Measures: &c.measures,
	}
}

// writeSummary writes what -baseline reads.
func (c *check) writeSummary(sum report.Summary) error {
	if c.rates.Total.Turns == 0 {
		return errors.New("-write-baseline: no turn was validated, so there is nothing to compare with later")
	}
	var line bytes.Buffer
	if err := report.WriteJSON(&line, c.summaryLine(sum)); err != nil {
		return err
	}
	return os.WriteFile(c.writeBaseline, line.Bytes(), 0o644)
}

// sections returns the parts of a report beside the figures, the most telling first.
func (c *check) sections(sum report.Summary, compared *comparison, hints []hint) (out []report.Section) {
	if compared != nil {
		out = append(out, compared.section(maxSectionRows))
	}
	if c.hinter != nil {
		out = append(out, hintsSection(hints, sum.Retries))
	}
	if len(c.sessions.rows) > 0 {
		out = append(out, c.sessions.section())
	}
	if c.calls > 0 {
		out = append(out, c.measures.section())
	}
	return out
}

// writeHTML writes the HTML report.
func (c *check) writeHTML(sum report.Summary, sections []report.Section, hints []hint) error {
	f, err := os.Create(c.html)
	if err != nil {
		return err
	}
	values := !c.noContent && (len(c.sessions.rows) == 0 || c.content) // a session is a person's own work
	l := report.Layout{Values: values, Sections: sections}
	for _, h := range hints {
		l.Advice = append(l.Advice, h.Text)
	}
	err = report.WriteHTML(f, sum, l)
	return cmp.Or(err, f.Close())
}

// writeGitHub writes annotations to standard output, which GitHub reads, and the
// summary to the file that GitHub names; elsewhere to standard output too.
func (c *check) writeGitHub(sum report.Summary, l report.Layout) error {
	if err := ci.WriteAnnotations(c.out, sum, l); err != nil {
		return err
	}
	path := os.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return ci.WriteMarkdown(c.out, sum, l, ci.MaxStepSummary)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	room := ci.MaxStepSummary
	if info, failed := f.Stat(); failed == nil { // earlier commands of the step may have written to it
		room = max(room-int(min(info.Size(), ci.MaxStepSummary)), 0)
	}
	err = ci.WriteMarkdown(f, sum, l, room)
	return cmp.Or(err, f.Close())
}
