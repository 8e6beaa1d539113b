package check

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// maxName is the number of characters of a name in a table.
const maxName = 44

// writeTables prints the tables, worst rows first.
func writeTables(w io.Writer, s report.Summary, published *measured, compared *comparison, o settings) {
	fmt.Fprintf(w, "%s, %s in %s: %d not valid as sent, %d in the end (-strip %s -mend %s)\n",
		text.Plural(s.Turns, "turn"), text.Plural(s.Total.Calls, "call"), text.Plural(s.Reading.Files, "file"), s.Total.Bad(), s.Total.Final, o.stripName, o.mendName)
	kinds := slices.SortedFunc(maps.Keys(s.Reading.Skipped), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Reading.Skipped[b], s.Reading.Skipped[a]), strings.Compare(a, b))
	})
	for _, what := range kinds {
		fmt.Fprintf(w, "%s skipped: %s\n", text.Plural(s.Reading.Skipped[what], "line"), what)
	}
	if s.Reading.Unreadable > 0 {
		fmt.Fprintf(w, "%d not read: see the messages above\n", s.Reading.Unreadable)
	}
	if s.Total.Calls == 0 {
		return
	}
	countsTable("MODEL", s.Models, s.Total, o.top).write(w)
	countsTable("TOOL", s.Tools, s.Total, o.top).write(w)
	if len(s.Codes) > 0 {
		codesTable(s.Codes, o.top).write(w)
	}
	writePlaces(w, s, o.top)
	published.write(w)
	if compared != nil {
		compared.write(w, o.top)
	}
	if len(s.Notes) > 0 {
		fmt.Fprint(w, "\nNOTES\n")
		for i, note := range s.Notes {
			if o.top > 0 && i == o.top {
				fmt.Fprintf(w, "and %d more\n", len(s.Notes)-i)
				break
			}
			fmt.Fprintln(w, clean(note))
		}
	}
}

// table has rows of cells. The first column is aligned to the left, the others
// to the right.
type table struct {
	rows [][]string
	more int // number of rows left out before the last one
}

// countsTable has a row for each model or tool, and a row for the total, which
// includes the rows left out.
func countsTable(name string, rows []report.Row, total report.Counts, top int) table {
	t := table{rows: [][]string{{name, "CALLS", "INVALID", "UNPARSEABLE", "UNKNOWN", "TRUNCATED", "BAD", "UNCHECKED", "STRIPPED", "REPAIRED", "FINAL BAD"}}}
	for _, r := range cut(rows, top, &t.more) {
		t.rows = append(t.rows, row(r.Tool+r.Model, r.Counts)) // one of them is ""
	}
	t.rows = append(t.rows, row("total", total))
	return t
}

// row returns the cells of a row. BAD is the share of the calls that were
// validated.
func row(name string, c report.Counts) []string {
	row := []string{shorten(name), fmt.Sprint(c.Calls)}
	for _, n := range []int{c.Invalid, c.Unparseable, c.Unknown, c.Truncated} {
		row = append(row, number(n))
	}
	row = append(row, percent(c.Bad(), c.Checked()))
	for _, n := range []int{c.Unchecked, c.Stripped, c.Mended, c.Final} {
		row = append(row, number(n))
	}
	return row
}

// codesTable has a row for each issue code. A call with several codes is in
// several rows, so there is no total.
func codesTable(codes []report.CodeRow, top int) table {
	t := table{rows: [][]string{{"FAULT", "CALLS AS SENT", "IN THE END"}}}
	for _, c := range cut(codes, top, &t.more) {
		t.rows = append(t.rows, []string{shorten(c.Code), number(c.Sent), number(c.Final)})
	}
	return t
}

// writePlaces prints a line for each of the first top bad calls, in the form that
// compilers use for places.
func writePlaces(w io.Writer, s report.Summary, top int) {
	more := 0
	findings := cut(s.Findings, top, &more)
	if len(findings) == 0 {
		return
	}
	fmt.Fprint(w, "\nNOT VALID AS SENT\n")
	for _, f := range findings {
		why := ""
		if len(f.Codes) > 0 {
			why = " (" + clean(strings.Join(f.Codes, ", ")) + ")"
		}
		fmt.Fprintf(w, "%s:%d: %s: %s%s, in the end %s\n", clean(f.File), f.Line, shorten(f.Tool), f.AsSent, why, f.Final)
	}
	if more := s.Bad - len(findings); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

// cut returns the first top rows, or all if top is 0, and the number of rows left
// out.
func cut[T any](rows []T, top int, more *int) []T {
	if top > 0 && len(rows) > top {
		*more = len(rows) - top
		return rows[:top]
	}
	return rows
}

// write prints the table after a blank line. Widths are counted in characters, which is
// not exact for those that take two columns, or none.
func (t table) write(w io.Writer) {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	fmt.Fprintln(w)
	for n, row := range t.rows {
		isTotal := n == len(t.rows)-1 && row[0] == "total"
		if t.more > 0 && isTotal {
			fmt.Fprintf(w, "and %d more\n", t.more)
		}
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i > 0:
				fmt.Fprint(w, "  "+pad+cell)
			case len(row) > 1:
				fmt.Fprint(w, cell+pad)
			}
		}
		fmt.Fprintln(w)
		if t.more > 0 && n == len(t.rows)-1 && !isTotal {
			fmt.Fprintf(w, "and %d more\n", t.more)
		}
	}
}

// number leaves out zeros, so that the other figures stand out.
func number(n int) string {
	if n == 0 {
		return "."
	}
	return fmt.Sprint(n)
}

// percent returns the share of n in of, or a dot if it is zero or undefined.
func percent(n, of int) string {
	if n == 0 || of == 0 {
		return "."
	}
	return fmt.Sprintf("%.2f%%", 100*float64(n)/float64(of))
}

// shorten cuts a name to the width of its column. Names come from models, so
// they may hold any character.
func shorten(name string) string {
	name = clean(name)
	if name == "" {
		return "(none)"
	}
	if r := []rune(name); len(r) > maxName {
		return string(r[:maxName-1]) + "…"
	}
	return name
}

// clean makes a name that a model wrote safe for a terminal.
func clean(s string) string { return text.Printable(s) }
