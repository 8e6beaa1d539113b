package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// row is a step as the list shows it. All texts are short, on one line, and without characters
// that change the text around them.
type row struct {
	Number   uint64    `json:"number"`
	Time     time.Time `json:"time,omitzero"`
	Model    string    `json:"model"`
	Tools    []string  `json:"tools"` // of the calls of the last attempt, each once
	Outcome  outcome   `json:"outcome"`
	Fault    string    `json:"fault"`  // the first one of the first attempt, or the error
	Faults   int       `json:"faults"` // of all attempts
	Attempts int       `json:"attempts"`
	Input    int64     `json:"input_tokens"`
	Output   int64     `json:"output_tokens"`
	Millis   float64   `json:"duration_ms"`
	Client   string    `json:"client,omitzero"`
	Source   string    `json:"source,omitzero"`

	// Cells are the texts of the cells, for the script that adds rows.
	Cells map[string]string `json:"cells"`
}

// rowView is a row with the root and the query of its link, for the template of a
// row.
type rowView struct {
	row
	Root, Query string
}

// maxRowTools is how many tools a row names.
const maxRowTools = 3

// row returns the row of e.
func (e *entry) row() row {
	s, usage := &e.step, e.step.Usage()
	r := row{
		Number: e.number, Time: s.Time, Model: text.Label(s.Model), Outcome: e.outcome, Attempts: len(s.Attempts),
		Input: usage.InputTokens, Output: usage.OutputTokens, Millis: float64(s.Duration.Microseconds()) / 1000,
		Client: text.Label(s.Client), Source: text.Label(s.Source), Tools: []string{},
	}
	counts := map[string]int{}
	for i := range s.Attempts {
		last := i == len(s.Attempts)-1
		addFaults(&r, s.Attempts[i].Issues)
		for j := range s.Attempts[i].Calls {
			c := &s.Attempts[i].Calls[j]
			addFaults(&r, c.Issues)
			if name := text.Label(c.Ran.Name); last {
				if counts[name]++; counts[name] == 1 {
					r.Tools = append(r.Tools, name)
				}
			}
		}
	}
	if r.Outcome == failed {
		r.Fault = text.Label(s.Error)
		if s.Error == "" {
			r.Fault = "status " + strconv.Itoa(s.Code)
		}
	}
	r.Fault = strings.TrimSpace(r.Fault)
	r.Cells = map[string]string{
		"time": clock(s.Time), "model": r.Model, "tools": toolsCell(r.Tools, counts), "outcome": string(r.Outcome), "sign": r.Outcome.Sign(), "class": r.Outcome.Class(),
		"fault": r.Fault, "more": more(r.Faults), "attempts": text.Number(r.Attempts),
		"tokens": text.Number(r.Input) + " / " + text.Number(r.Output), "duration": span(s.Duration),
	}
	if r.Input+r.Output == 0 {
		r.Cells["tokens"] = "–"
	}
	if r.Time.IsZero() { // the time is the text of the link
		r.Cells["time"] = "#" + strconv.FormatUint(e.number, 10)
	}
	return r
}

// addFaults counts issues, and names the first one of the step.
func addFaults(r *row, issues []middleware.Issue) {
	if r.Faults == 0 && len(issues) > 0 {
		r.Fault = text.Label(issues[0].Code) + " " + text.Label(issues[0].Pointer)
	}
	r.Faults += len(issues)
}

// more returns the number of further faults for people, or "".
func more(faults int) string {
	if faults < 2 {
		return ""
	}
	return fmt.Sprintf("+%d", faults-1)
}

// toolsCell names tools with their number of calls.
func toolsCell(names []string, counts map[string]int) string {
	var out []string
	for i, name := range names {
		if i == maxRowTools {
			out = append(out, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		if counts[name] > 1 {
			name += fmt.Sprintf(" ×%d", counts[name])
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// clock returns the time of day, with the date unless it is today.
func clock(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t = t.Local()
	if now := time.Now(); now.YearDay() == t.YearDay() && now.Year() == t.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// span returns a duration with about three digits.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// maxSearch is how many bytes of a step a search looks at.
const maxSearch = 4 << 10

// searchText returns the text that is searched: names, codes, pointers, rules and the beginning of
// the arguments.
func searchText(s *report.Step) string {
	var b strings.Builder
	add := func(t string) {
		if room := maxSearch - b.Len(); len(t) < room {
			b.WriteString(t)
			b.WriteByte('\n')
		} else if room > 0 {
			b.WriteString(t[:room])
		}
	}
	for _, t := range []string{s.ID, s.Model, s.Client, s.ClientKey, s.Source, s.Error} {
		add(t)
	}
	for i := range s.Attempts {
		for _, issue := range s.Attempts[i].Issues {
			add(issue.Code)
		}
	}
	for c := range callsOf(s) {
		add(c.Sent.Name)
		for _, issue := range c.Issues {
			add(issue.Code + " " + issue.Pointer)
		}
		for _, change := range c.Changes {
			add(change.By)
		}
	}
	for c := range callsOf(s) {
		add(c.Sent.Arguments)
	}
	return strings.ToLower(b.String())
}
