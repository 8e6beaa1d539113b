package main

import (
	"os"

	"github.com/toolmend/toolmend/report"
)

// summaryJSON is the last line of -json. Its keys are stable.
type summaryJSON struct {
	report.Line

	Strip     string          `json:"strip"` // the settings of this run
	Mend      string          `json:"mend"`
	Unknown   string          `json:"unknown"`
	TurnRates *turnRates      `json:"turn_rates"` // for -baseline
	Measures  *measures       `json:"measures"`
	Baseline  *comparisonJSON `json:"baseline,omitempty"`
}

// write writes the figures as -format says, and the HTML report.
func (c *check) write(sum report.Summary, compared *comparison) error {
	if c.html != "" {
		if err := c.writeHTML(sum); err != nil {
			return err
		}
	}
	layout := report.Layout{Values: c.content, Final: c.gateFinal}
	switch c.format {
	case formatGitHub:
		return c.writeGitHub(sum, layout)
	case formatJUnit:
		return report.WriteJUnit(c.out, sum, layout)
	case formatSARIF:
		return report.WriteSARIF(c.out, sum, layout)
	case formatJSON:
		return report.WriteJSON(c.out, summaryJSON{
			Line: sum.Line(), Strip: c.stripName, Mend: c.mendName, Unknown: c.unknownName,
			TurnRates: &c.rates, Measures: &c.measures, Baseline: compared.json(),
		})
	}
	writeTables(c.out, sum, &c.measures.Total, compared, c.settings)
	return nil
}

// writeHTML writes the HTML report.
func (c *check) writeHTML(sum report.Summary) error {
	f, err := os.Create(c.html)
	if err != nil {
		return err
	}
	err = report.WriteHTML(f, sum, report.Layout{Values: !c.noContent})
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// writeGitHub writes annotations to standard output, which GitHub reads, and the
// summary to the file that GitHub names; elsewhere to standard output too.
func (c *check) writeGitHub(sum report.Summary, l report.Layout) error {
	if err := report.WriteAnnotations(c.out, sum, l); err != nil {
		return err
	}
	path := os.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return report.WriteMarkdown(c.out, sum, l, report.MaxStepSummary)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	room := report.MaxStepSummary
	if info, failed := f.Stat(); failed == nil { // earlier commands of the step may have written to it
		room = max(room-int(min(info.Size(), report.MaxStepSummary)), 0)
	}
	err = report.WriteMarkdown(f, sum, l, room)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
