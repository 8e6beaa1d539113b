package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The table is between these lines of docs/measured/clients.md.
const (
	tableBegin = "<!-- measured: make agents writes what follows -->"
	tableEnd   = "<!-- end of what make agents writes -->"
)

// tables are the tables of the page, with what is above each of them. Every table behind the
// first one is on the page only if a client has run its scenarios.
var tables = []struct {
	intro     string
	scenarios []scenario
}{
	{"", scenarios},
	{"The message around the calls, and re-asks that fail:", wholes},
}

// all returns the scenarios of all tables.
func all() (list []scenario) {
	for _, t := range tables {
		list = append(list, t.scenarios...)
	}
	return list
}

// page renders the tables, each with a row for each client. Rows are, by client, its row of each
// table. A client that did not run a table keeps the row that it has in old, the tables of an
// earlier run.
func page(old string, rows map[string][]string) string {
	var b strings.Builder
	for i := len(tables) - 1; i > 0; i-- {
		var own string
		old, own, _ = strings.Cut(old, "\n"+tables[i].intro+"\n")
		ran := own != ""
		for _, r := range rows {
			ran = ran || r[i] != ""
		}
		if ran {
			rest := b.String()
			b.Reset()
			b.WriteString("\n" + tables[i].intro + "\n" + table(tables[i].scenarios, own, column(rows, i)) + rest)
		}
	}
	return table(tables[0].scenarios, old, column(rows, 0)) + b.String()
}

// column returns the rows of one table, without empty ones.
func column(rows map[string][]string, i int) map[string]string {
	of := map[string]string{}
	for name, r := range rows {
		if r[i] != "" {
			of[name] = r[i]
		}
	}
	return of
}

// table renders a row for each client and a column for each scenario. A client that did
// not run keeps the row that it has in old, the table of an earlier run.
func table(scenarios []scenario, old string, rows map[string]string) string {
	var b strings.Builder
	b.WriteString("\n| client | format | version |")
	for _, s := range scenarios {
		fmt.Fprintf(&b, " %s |", s.title)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(scenarios)) + "\n")
	lines := strings.Split(old, "\n")
	for _, c := range clients() {
		head := fmt.Sprintf("| %s | %s |", c.title, c.format.Name)
		row, ok := rows[c.name]
		if !ok {
			row = " – | not run |"
			at := slices.IndexFunc(lines, func(l string) bool {
				return strings.HasPrefix(l, head) && strings.Count(l, "|") == len(scenarios)+4
			})
			if at >= 0 {
				row = strings.TrimPrefix(lines[at], head)
			}
		}
		b.WriteString(head + row + "\n")
	}
	b.WriteString("\n")
	for _, s := range scenarios {
		b.WriteString(wrapped(fmt.Sprintf("- **%s**: %s", s.title, s.about)) + "\n")
	}
	return b.String()
}

// row renders what a client did, "" if a result is missing.
func row(c client, version string, scenarios []scenario, results map[string]result) string {
	var b strings.Builder
	fmt.Fprintf(&b, " %s |", version)
	for _, s := range scenarios {
		var cells []string
		for _, f := range fronts {
			if f.passes || !s.runs(c, f) {
				continue
			}
			r, ok := results[key(c, s, f)]
			if !ok {
				return ""
			}
			cells = append(cells, r.cell())
		}
		if cells == nil {
			cells = []string{"n/a"}
		}
		fmt.Fprintf(&b, " %s |", strings.Join(cells, " → "))
	}
	return b.String()
}

func key(c client, s scenario, f front) string { return c.name + "/" + s.name + "/" + f.name }

// cell says what the user sees, how many model calls the client made, and how
// many reached the upstream.
func (r result) cell() string {
	seen := map[ending]string{endedDone: "ok", endedError: "error", endedOther: "gave up", endedHung: "hangs"}[r.ended]
	cell := fmt.Sprintf("%s %d/%d", seen, r.attempts, r.calls)
	if len(r.refused) > 0 {
		cell += fmt.Sprintf(", %d refused", len(r.refused))
	}
	return cell
}

// failure renders the row of a client that could not be installed or run.
func failure(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return " – | could not be installed: " + quoted(lines) + " |"
}

// exception is the beginning of the line in which Python and Node name what ended a
// program, or npm and pip what they lack. Notes with random ids may follow it.
var exception = regexp.MustCompile(`^(\w[\w.]*(Error|Exception)\b|npm error|ERROR:|go: )`)

// quoted is the last exception among lines, else the last of them.
func quoted(lines []string) string {
	line := lines[len(lines)-1]
	for _, l := range slices.Backward(lines) {
		if exception.MatchString(l) {
			line = l
			break
		}
	}
	line = strings.NewReplacer("|", "/", "`", "'", "\x1b", "").Replace(strings.TrimSpace(line))
	if runes := []rune(line); len(runes) > 120 {
		line = string(runes[:120]) + "…"
	}
	return "`" + line + "`"
}

// tableIn returns what is between the marks of a page.
func tableIn(page string) (before, table, after string, err error) {
	before, rest, ok := strings.Cut(page, tableBegin)
	table, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", "", "", fmt.Errorf("the page has no lines %q and %q", tableBegin, tableEnd)
	}
	return before + tableBegin + "\n", table, "\n" + tableEnd + after, nil
}

// wrapped breaks an item of a list at 120 columns, as the other pages are.
func wrapped(item string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(item) {
		switch n := utf8.RuneCountInString(word); {
		case column == 0:
			column = n
		case column+1+n > 120:
			b.WriteString("\n  ")
			column = 2 + n
		default:
			b.WriteString(" ")
			column += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
}
