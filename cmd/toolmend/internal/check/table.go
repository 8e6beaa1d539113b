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
func writeTables(w io.Writer, s report.Summary, published *measured, ran *sessions, compared *comparison, o settings) {
	fmt.Fprintf(w, "%s, %s in %s: %d not valid as sent, %d in the end (-strip %s -mend %s)\n",
		text.Plural(s.Turns, "turn"), text.Plural(s.Total.Calls, "call"), text.Plural(s.Reading.Files, "file"), s.Total.Bad(), s.Total.Final, o.stripName, o.mendName)
	kinds := slices.SortedFunc(maps.Keys(s.Reading.Skipped), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Reading.Skipped[b], s.Reading.Skipped[a]), strings.Compare(a, b))
	})
	for _, what := range kinds {
		fmt.Fprintf(w, "%s skipped: %s\n", text.Plural(s.Reading.Skipped[what], "line"), clean(what))
	}
	if s.Reading.Unreadable > 0 {
		fmt.Fprintf(w, "%d not read: see the messages above\n", s.Reading.Unreadable)
	}
	if s.Total.Calls == 0 {
		return
	}
	ran.write(w, o.top)
	writeTable(w, countsTable("MODEL", s.Models, s.Total, o.top))
	writeTable(w, countsTable("TOOL", s.Tools, s.Total, o.top))
	if len(s.Codes) > 0 {
		writeTable(w, codesTable(s.Codes, o.top))
	}
	writePlaces(w, s, o.top)
	published.write(w)
	if compared != nil {
		compared.write(w, o.top)
	}
	if len(s.Notes) > 0 {
		fmt.Fprint(w, "\nNOTES\n")
		notes, more := cut(s.Notes, o.top)
		for _, note := range notes {
			fmt.Fprintln(w, clean(note))
		}
		writeMore(w, more)
	}
}

// countsTable has a row for each model or tool, and a row for the total, which
// includes the rows left out.
func countsTable(name string, rows []report.Row, total report.Counts, top int) [][]string {
	header := []string{name, "CALLS", "INVALID", "UNPARSEABLE", "UNKNOWN", "TRUNCATED", "BAD", "UNCHECKED", "STRIPPED", "REPAIRED", "FINAL BAD"}
	t := table(header, rows, top, func(r report.Row) []string { return row(r.Tool+r.Model, r.Counts) }) // one of them is ""
	return append(t, row("total", total))
}

// row returns the cells of a row. BAD is the share of the calls that were
// validated.
func row(name string, c report.Counts) []string {
	return []string{
		shorten(name), fmt.Sprint(c.Calls), number(c.Invalid), number(c.Unparseable), number(c.Unknown), number(c.Truncated),
		percent(c.Bad(), c.Checked()), number(c.Unchecked), number(c.Stripped), number(c.Mended), number(c.Final),
	}
}

// codesTable has a row for each issue code. A call with several codes is in
// several rows, so there is no total.
func codesTable(codes []report.CodeRow, top int) [][]string {
	return table([]string{"FAULT", "CALLS AS SENT", "IN THE END"}, codes, top, func(c report.CodeRow) []string {
		return []string{shorten(c.Code), number(c.Sent), number(c.Final)}
	})
}

// table has a header and the cells of the first top rows. If rows are left out, a row says
// how many.
func table[T any](header []string, rows []T, top int, cells func(T) []string) [][]string {
	t := [][]string{header}
	first, more := cut(rows, top)
	for _, r := range first {
		t = append(t, cells(r))
	}
	if more > 0 {
		t = append(t, []string{fmt.Sprintf("and %d more", more)})
	}
	return t
}

// writePlaces prints a line for each of the first top bad calls, in the form that
// compilers use for places.
func writePlaces(w io.Writer, s report.Summary, top int) {
	findings, _ := cut(s.Findings, top) // not all bad calls are kept
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
	writeMore(w, s.Bad-len(findings))
}

// cut returns the first top rows, or all if top is 0, and the number of rows left
// out.
func cut[T any](rows []T, top int) (first []T, more int) {
	if top > 0 && len(rows) > top {
		return rows[:top], len(rows) - top
	}
	return rows, 0
}

// writeMore says how many rows are left out, if any.
func writeMore(w io.Writer, more int) {
	if more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

// writeTable prints rows of cells after a blank line. The first column is aligned to the left, the
// others to the right; a row of one cell is a remark. Widths are counted in characters, which is
// not exact for those that take two columns, or none.
func writeTable(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			if len(row) > 1 {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	fmt.Fprintln(w)
	for _, row := range rows {
		line := row[0]
		for i, cell := range row[1:] {
			line = fmt.Sprintf("%-*s  %*s", widths[0], line, widths[i+1], cell)
		}
		fmt.Fprintln(w, line)
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
func clean(s string) string { return text.Visible(s, false) }
