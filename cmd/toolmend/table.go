package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
)

// maxName is the number of characters of a name in a table.
const maxName = 44

// writeTables prints the tables, worst rows first.
func writeTables(w io.Writer, s *summary, o settings) {
	fmt.Fprintf(w, "%s, %s in %s: %d not valid as sent, %d in the end (-strip %s -mend %s)\n",
		plural(s.Turns, "turn"), plural(s.Calls, "call"), plural(s.Files, "file"), s.total.badAsSent(), s.total.final, o.stripName, o.mendName)
	for _, what := range sorted(pointers(s.Skipped), func(n *int) int { return *n }) {
		fmt.Fprintf(w, "%s skipped: %s\n", plural(s.Skipped[what], "line"), what)
	}
	if s.Unreadable > 0 {
		fmt.Fprintf(w, "%d not read: see the messages above\n", s.Unreadable)
	}
	if s.Calls == 0 {
		return
	}
	countsTable("MODEL", s.byModel, s.total, o.top).write(w)
	countsTable("TOOL", s.byTool, s.total, o.top).write(w)
	if len(s.faults) > 0 {
		faultsTable(s.faults, o.top).write(w)
	}
	writePlaces(w, s)
	s.measures.Total.write(w)
	if s.comparison != nil {
		s.comparison.write(w, o.top)
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

// pointers converts a map for sorted.
func pointers(m map[string]int) map[string]*int {
	p := make(map[string]*int, len(m))
	for k, v := range m {
		p[k] = &v
	}
	return p
}

// table has rows of cells. The first column is aligned to the left, the others
// to the right.
type table struct {
	rows [][]string
	more int // number of rows left out before the last one
}

// countsTable has a row for each key of m, sorted by bad calls and then by
// calls, and a row for the total, which includes the rows left out.
func countsTable(name string, m map[string]*counts, total counts, top int) table {
	t := table{rows: [][]string{{name, "CALLS", "INVALID", "UNPARSEABLE", "UNKNOWN", "TRUNCATED", "BAD", "UNCHECKED", "STRIPPED", "REPAIRED", "FINAL BAD"}}}
	keys := sorted(m, (*counts).badAsSent, func(c *counts) int { return c.calls })
	for _, key := range cut(keys, top, &t.more) {
		t.rows = append(t.rows, m[key].row(key))
	}
	t.rows = append(t.rows, total.row("total"))
	return t
}

// row returns the cells of a row. BAD is the share of the calls that were
// validated.
func (c *counts) row(name string) []string {
	row := []string{shorten(name), fmt.Sprint(c.calls)}
	for _, n := range []int{c.invalid, c.unparseable, c.unknown, c.truncated} {
		row = append(row, number(n))
	}
	row = append(row, percent(c.badAsSent(), c.calls-c.unchecked))
	for _, n := range []int{c.unchecked, c.stripped, c.mended, c.final} {
		row = append(row, number(n))
	}
	return row
}

// faultsTable has a row for each issue code. A call with several codes is in
// several rows, so there is no total.
func faultsTable(m map[string]*fault, top int) table {
	t := table{rows: [][]string{{"FAULT", "CALLS AS SENT", "IN THE END"}}}
	keys := sorted(m, func(f *fault) int { return f.sent }, func(f *fault) int { return f.final })
	for _, key := range cut(keys, top, &t.more) {
		t.rows = append(t.rows, []string{shorten(key), number(m[key].sent), number(m[key].final)})
	}
	return t
}

// writePlaces prints a line for each bad call, in the form that compilers use
// for places.
func writePlaces(w io.Writer, s *summary) {
	if len(s.places) == 0 {
		return
	}
	fmt.Fprint(w, "\nNOT VALID AS SENT\n")
	for _, p := range s.places {
		why := ""
		if len(p.codes) > 0 {
			why = " (" + clean(strings.Join(p.codes, ", ")) + ")"
		}
		fmt.Fprintf(w, "%s:%d: %s: %s%s, in the end %s\n", clean(p.file), p.line, shorten(p.tool), p.asSent, why, p.final)
	}
	if more := s.bad - len(s.places); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}

// cut returns the first top keys, or all if top is 0, and the number of keys
// left out.
func cut(keys []string, top int, more *int) []string {
	if top > 0 && len(keys) > top {
		*more = len(keys) - top
		return keys[:top]
	}
	return keys
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
	return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(of))
}

// plural returns a number with its noun.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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

// clean replaces the characters that move a terminal's cursor, and those that reverse
// its direction: a name is what a model wrote.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// codes returns the issue codes, without repetitions, in order.
func codes(issues []middleware.Issue) []string {
	var out []string
	for _, i := range issues {
		if !slices.Contains(out, i.Code) {
			out = append(out, i.Code)
		}
	}
	return out
}
