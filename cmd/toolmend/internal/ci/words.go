package ci

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// The sentences that the formats have in common. They hold no value that a model wrote,
// unless values is set.

// headline sums a report up.
func headline(s *report.Summary) string {
	return fmt.Sprintf("%s in %s: %s not valid as sent (%s), %s in the end", text.Plural(s.Total.Calls, "call"), text.Plural(s.Turns, "turn"),
		text.Number(s.Total.Bad()), report.Share(s.Total.Bad(), s.Total.Checked()), text.Number(s.Total.Final))
}

// faultText says what is wrong at one place: "type at /x: expected integer, received
// string".
func faultText(f report.Fault, values bool) string {
	words := text.Visible(f.Code, false) + " at " + report.At(f.Code, f.Pointer)
	if t := report.Types(f); t != "" {
		words += ": " + t
	}
	if values && f.Message != "" {
		words += " (" + text.Visible(f.Message, false) + ")"
	}
	return words
}

// findingText says what is wrong with a call, in one line.
func findingText(f *report.Finding, values bool) string {
	var faults []string
	for _, fault := range f.Faults {
		faults = append(faults, faultText(fault, values))
	}
	if len(faults) == 0 {
		faults = []string{schemaText(f.Note)}
	}
	words := fmt.Sprintf("%s: %s. Model %s; %s", report.Name(f.Tool), strings.Join(faults, "; "), report.Name(f.Model), ending(f))
	if values && f.Arguments != "" {
		words += ". Sent: " + text.Visible(f.Arguments, false)
	}
	return words
}

// ending says what the repairs achieved.
func ending(f *report.Finding) string {
	if f.Final.Good() {
		return "repaired"
	}
	return "in the end " + string(f.Final)
}

// schemaText says that a schema cannot be used.
func schemaText(note string) string {
	return cmp.Or(text.Visible(note, false), "the tool's schema cannot be used")
}

// rowText says what is wrong at a place of a table.
func rowText(r report.FaultRow) string {
	line := fmt.Sprintf("%s: %s", faultText(report.Fault{Code: r.Code, Pointer: r.Pointer, Expected: r.Expected, Received: r.Received}, false), text.Plural(r.Sent, "call"))
	if r.Final < r.Sent {
		line += fmt.Sprintf(", %s in the end", text.Number(r.Final))
	}
	if first := report.Where(r.File, r.Line, r.ID); first != "" {
		line += ", first at " + first
	}
	return line
}

func head[T any](rows []T, n int) []T { return rows[:min(len(rows), n)] }

func rest[T any](rows []T, n int) int { return max(len(rows)-n, 0) }
