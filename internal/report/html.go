package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/text"
)

// Bounds of the HTML report.
const (
	maxHTML      = 1_000_000 // bytes
	maxTableRows = 100
	htmlExamples = 200
)

// The first line of the report.
const (
	noticeShown  = "This file shows tool calls with their arguments, as models wrote them. They may hold personal data or secrets."
	noticeHidden = "This file shows no arguments. Names of tools, models and properties are those that models wrote."
)

// htmlData is what the template "report" gets.
type htmlData struct {
	Notice, Title string
	StyleHash     string
	Style         template.CSS
	S             *Summary
	Answers       []answerRow
	Chart         *ChartView
	Verdicts      []verdictRow
	Codes         []CodeRow
	Rules         []RuleRow
	Models, Tools rowsView
	Places        PlacesView
	Values        bool
	Schemas       schemasView
	Sections      []Section
	Examples      []Example
}

type verdictRow struct {
	Verdict     Verdict
	Sent, Final int
}

// answerRow answers a question of the first screen.
type answerRow struct {
	Question string
	Name     string // of a tool or a model, as a model may have written it
	Answers  []string
}

// answers says which tool and which model fail most, how, and what would have fixed it. It
// is empty if no call fails.
func answers(s *Summary, advice []string) (out []answerRow) {
	failing := func(question string, rows []Row, name func(Row) string) {
		if len(rows) > 0 && rows[0].Bad() > 0 {
			r := rows[0]
			out = append(out, answerRow{question, name(r), []string{fmt.Sprintf("%d of %s not valid as sent, %d in the end", r.Bad(), text.Plural(r.Checked(), "validated call"), r.Final)}})
		}
	}
	failing("The tool that fails most", s.Tools, func(r Row) string { return r.Tool })
	failing("The model that fails most", s.Models, func(r Row) string { return r.Model })
	if len(out) == 0 {
		return nil
	}
	if f := s.Places(s.Tools[0].Tool); len(f) > 0 {
		how := fmt.Sprintf("%s: %s", cmp.Or(strings.TrimPrefix(f[0].Pointer, "/"), "the call"), f[0].Code)
		if f[0].Expected != "" {
			how += ", expected " + f[0].Expected
		}
		out = append(out, answerRow{"How", s.Tools[0].Tool, []string{how + " (" + text.Plural(f[0].Sent, "call") + ")"}})
	}
	fix := answerRow{Question: "What would have fixed it"}
	if s.Total.Repaired > 0 {
		by := ""
		if len(s.Rules) > 0 {
			by = ", most often by " + s.Rules[0].Rule
		}
		fix.Answers = append(fix.Answers, fmt.Sprintf("the repairs that are on make %d of %d calls valid%s", s.Total.Repaired, s.Total.Bad(), by))
	}
	if fix.Answers = append(fix.Answers, head(advice, 2)...); len(fix.Answers) == 0 {
		fix.Answers = []string{"a re-ask with the error: no repair is certain"}
	}
	return append(out, fix)
}

// WriteHTML writes one HTML file of at most 1 MB, without a script and without any
// address: figures, and the most telling examples. The first line of the page says
// whether it shows values that models wrote.
func WriteHTML(w io.Writer, s Summary, l Layout) error {
	style := Style()
	sum := sha256.Sum256([]byte(style))
	d := htmlData{
		Notice: noticeShown, Title: Name(cmp.Or(l.Title, "Tool calls")), S: &s, Chart: Chart(s.Series), Sections: l.Sections, Values: l.Values,
		StyleHash: "sha256-" + base64.StdEncoding.EncodeToString(sum[:]), Style: template.CSS(style), // our own
		Answers: answers(&s, l.Advice), Examples: slices.Clone(head(s.Examples, htmlExamples)),
	}
	if !l.Values {
		d.Notice = noticeHidden
		for i := range d.Examples {
			d.Examples[i].Call = d.Examples[i].Call.withoutValues()
		}
	}
	for _, v := range []Verdict{OK, Invalid, BadJSON, NotObject, UnknownTool, Truncated, NoSchema, BadSchema, Announced} {
		if s.AsSent[v]+s.Final[v] > 0 {
			d.Verdicts = append(d.Verdicts, verdictRow{v, s.AsSent[v], s.Final[v]})
		}
	}
	for rows := maxTableRows; ; rows /= 2 {
		d.tables(rows)
		var b bytes.Buffer
		if err := own().ExecuteTemplate(&b, "report", d); err != nil {
			return err
		}
		if b.Len() <= maxHTML || rows == 0 {
			_, err := w.Write(b.Bytes())
			return err
		}
		d.Examples = d.Examples[:len(d.Examples)/2]
	}
}

// tables fills the tables with at most n rows each.
func (d *htmlData) tables(n int) {
	s := d.S
	d.Models = rowsView{Caption: "Calls by model, worst first", By: "Model", Rows: head(s.Models, n), Total: s.Total, More: rest(s.Models, n)}
	d.Tools = rowsView{Caption: "Calls by tool, worst first", By: "Tool", Rows: head(s.Tools, n), Total: s.Total, More: rest(s.Tools, n)}
	places := s.Places("")
	d.Places = PlacesView{Caption: "Places with the most faults; * stands for the index of an array", Tools: true, Values: d.Values, Rows: head(places, n), More: rest(places, n)}
	d.Schemas = schemasView{Caption: "Calls to these tools were not validated", Rows: head(s.Schemas, n), More: rest(s.Schemas, n)}
	d.Codes, d.Rules = head(s.Codes, n), head(s.Rules, n)
}

func head[T any](rows []T, n int) []T { return rows[:min(len(rows), n)] }

func rest[T any](rows []T, n int) int { return max(len(rows)-n, 0) }
