package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The table stands between these lines of docs/clients.md.
const (
	tableBegin = "<!-- measured: make agents writes what follows -->"
	tableEnd   = "<!-- end of what make agents writes -->"
)

// table renders the results: a table for each scenario, with a row for each
// client and a column for each front.
func table(results map[string]result, versions map[string]string) string {
	var b strings.Builder
	for _, s := range scenarios {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| client | version |", s.title, s.about)
		columns := slices.DeleteFunc(slices.Clone(fronts), func(f front) bool { return f.raises && !s.raises })
		for _, f := range columns {
			fmt.Fprintf(&b, " %s |", f.title)
		}
		b.WriteString("\n|---|---|" + strings.Repeat("---|", len(columns)) + "\n")
		for _, c := range clients() {
			fmt.Fprintf(&b, "| %s | %s |", c.title, versions[c.pkg.name])
			for _, f := range columns {
				cell := "n/a"
				if r, ok := results[key(c, s, f)]; ok {
					cell = r.cell()
				}
				fmt.Fprintf(&b, " %s |", cell)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func key(c client, s scenario, f front) string { return c.name + "/" + s.name + "/" + f.name }

// cell says what the user sees, how many model calls the client made, and how
// many reached the upstream.
func (r result) cell() string {
	var seen string
	switch r.ended {
	case endedDone:
		seen = "the answer"
	case endedError:
		seen = "an error" + r.quoted()
	case endedOther:
		seen = "no answer: the model gave up"
	case endedHung:
		seen = fmt.Sprintf("nothing: killed after %s", limit)
	}
	return fmt.Sprintf("%s; %d, %d", seen, r.attempts, r.calls)
}

// exception is the beginning of the line in which Python and Node name what ended a
// program. Notes with random ids may follow it.
var exception = regexp.MustCompile(`^\w[\w.]*(Error|Exception)\b`)

// quoted is the message of the front if the client showed it, else the last
// exception of a program that died, else its last line.
func (r result) quoted() string {
	line := r.message
	if !r.messageShown() {
		lines := strings.Split(strings.TrimSpace(r.output.text), "\n")
		line = lines[len(lines)-1]
		for _, l := range slices.Backward(lines) {
			if exception.MatchString(l) {
				line = l
				break
			}
		}
		if strings.HasPrefix(line, "{") { // one of an agent's events
			return ""
		}
	}
	line = strings.NewReplacer("|", "/", "`", "'", "\x1b", "").Replace(strings.TrimSpace(line))
	if runes := []rune(line); len(runes) > 120 {
		line = string(runes[:120]) + "…"
	}
	return ": `" + line + "`"
}

// replaceTable puts the table between the marks of a page.
func replaceTable(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("the page has no lines %q and %q", tableBegin, tableEnd)
	}
	return before + tableBegin + "\n" + table + "\n" + tableEnd + after, nil
}
