package check

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// tally is one call of a session of an agent, and what became of it.
type tally struct {
	tool    string
	call    [16]byte // the same for equal calls of a file
	outcome recorded.Outcome
}

// tallyOf returns the tallies of the calls of a turn whose tools match.
func tallyOf(file string, t *recorded.Turn, tool string) (out []tally) {
	for i, c := range t.Calls {
		if strings.Contains(strings.ToLower(c.Name), tool) {
			out = append(out, tally{c.Name, recorded.KeyOf(file, middleware.ToolCall{Name: c.Name, Arguments: c.Arguments}), t.Outcomes[i]})
		}
	}
	return out
}

// sessionRow is what became of the calls of a tool.
type sessionRow struct{ calls, errors, rejected, again int }

// sessions count what became of calls. The zero value is empty.
type sessions struct {
	rows   map[string]*sessionRow
	failed map[[16]byte]int // how often a call failed without a change
}

// maxFailed is how many failed calls are remembered.
const maxFailed = 100_000

func (s *sessions) add(t tally) {
	if s.rows == nil {
		s.rows, s.failed = map[string]*sessionRow{}, map[[16]byte]int{}
	}
	row := at(s.rows, t.tool)
	row.calls++
	switch t.outcome {
	case recorded.OutcomeRejected:
		row.rejected++
	case recorded.OutcomeError:
		if row.errors++; len(s.failed) < maxFailed {
			if s.failed[t.call]++; s.failed[t.call] > 1 {
				row.again++
			}
		}
	}
}

// table has a row for each of the first top tools, the one with the most errors first.
func (s *sessions) table(top int) [][]string {
	tools := slices.SortedFunc(maps.Keys(s.rows), func(a, b string) int {
		x, y := s.rows[a], s.rows[b]
		return cmp.Or(cmp.Compare(y.errors, x.errors), cmp.Compare(y.rejected, x.rejected), cmp.Compare(y.calls, x.calls), strings.Compare(a, b))
	})
	return table([]string{"SESSIONS", "CALLS", "ERRORS", "SHARE", "SAME CALL AGAIN", "REJECTED"}, tools, top, func(tool string) []string {
		r := s.rows[tool]
		return []string{shorten(tool), fmt.Sprint(r.calls), number(r.errors), percent(r.errors, r.calls), number(r.again), number(r.rejected)}
	})
}

// write prints what became of the calls, if there are sessions.
func (s *sessions) write(w io.Writer, top int) {
	if len(s.rows) == 0 {
		return
	}
	writeTable(w, s.table(top))
	fmt.Fprintln(w, "ERRORS are results that say so; SAME CALL AGAIN failed before with the same arguments; a person rejected or cancelled REJECTED calls.")
}

// section is the part of a report about sessions.
func (s *sessions) section() report.Section {
	t := s.table(0)
	first, more := cut(t[1:], maxSectionRows)
	out := report.Section{
		Title: "Sessions", Caption: "What became of the calls, as the logs of the agents say", Rows: first,
		Columns: []string{"Tool", "Calls", "Errors", "Share", "Same call again", "Rejected"}, Numbers: []int{1, 2, 3, 4, 5},
	}
	if more > 0 {
		out.Text = []string{fmt.Sprintf("%d more tools are left out.", more)}
	}
	return out
}
