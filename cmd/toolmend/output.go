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
	switch c.format {
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
