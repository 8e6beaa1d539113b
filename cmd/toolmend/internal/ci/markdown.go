package ci

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
)

// Bounds of the Markdown report.
const (
	markdownRows  = 15
	markdownCalls = 10
	maxName       = 200   // bytes of the title, and of what is expected at a place
	maxText       = 8_000 // bytes of a paragraph or a cell
)

// MaxStepSummary is what GitHub accepts as the summary of one step, in bytes.
const MaxStepSummary = 1 << 20

// WriteMarkdown writes figures as GitHub's Markdown, at most maxBytes: for the summary of
// a step, or a comment. Rows past the bound are left out, and the last line says so.
func WriteMarkdown(w io.Writer, s report.Summary, l report.Layout, maxBytes int) error {
	m := &markdown{left: maxBytes - len(markdownCut)}
	m.line("## " + md(text.Clip(cmp.Or(l.Title, "Tool calls"), maxName)))
	m.paragraph(md(headline(&s)) + ".")
	if s.Reading.Unreadable > 0 {
		m.paragraph(fmt.Sprintf("**%s not read.**", text.Number(s.Reading.Unreadable)))
	}
	m.rows("Model", s.Models, s.Total)
	m.rows("Tool", s.Tools, s.Total)
	m.places(s.Places(""), l.Values)
	for _, sec := range l.Sections {
		m.section(sec)
	}
	m.schemas(s.Schemas)
	if l.Values {
		m.findings(s.Findings)
	}
	if m.cut && maxBytes >= len(markdownCut) {
		m.b.WriteString(markdownCut)
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

const markdownCut = "\n\nThe rest is left out: it is too long.\n"

// markdown is a text of bounded length. After the first line that does not fit, it
// takes no more.
type markdown struct {
	b    strings.Builder
	left int
	cut  bool
}

func (m *markdown) line(s string) {
	if len(s)+1 > m.left || m.cut {
		m.cut = true
		return
	}
	m.left -= len(s) + 1
	m.b.WriteString(s + "\n")
}

// paragraph writes a line after a blank one.
func (m *markdown) paragraph(s string) {
	m.line("")
	m.line(s)
}

// table writes rows of cells that are Markdown already. Columns that are numeric are
// aligned to the right.
func (m *markdown) table(header []string, numeric func(i int) bool, rows [][]string, more int) {
	if len(rows) == 0 {
		return
	}
	m.paragraph("| " + strings.Join(header, " | ") + " |")
	rule := "|"
	for i := range header {
		if numeric(i) {
			rule += " ---: |"
		} else {
			rule += " --- |"
		}
	}
	m.line(rule)
	for _, r := range rows {
		m.line("| " + strings.Join(r, " | ") + " |")
	}
	if more > 0 {
		m.paragraph(fmt.Sprintf("and %s more rows", text.Number(more)))
	}
}

// rows writes the figures of models or tools.
func (m *markdown) rows(what string, rows []report.Row, total report.Counts) {
	if len(rows) == 0 {
		return
	}
	cells := func(n string, c report.Counts) []string {
		return []string{n, text.Number(c.Calls), report.Dot(c.Bad()), report.Share(c.Bad(), c.Checked()), report.Dot(c.Repaired), report.Dot(c.Final), report.Dot(c.Unchecked)}
	}
	var out [][]string
	for _, r := range head(rows, markdownRows) {
		out = append(out, cells(code(r.Tool+r.Model), r.Counts)) // one of them is ""
	}
	more := rest(rows, markdownRows)
	label := "**Total**"
	if more > 0 {
		label = fmt.Sprintf("**Total**, with %s more rows", text.Number(more))
	}
	out = append(out, cells(label, total))
	m.table([]string{what, "Calls", "Not valid as sent", "Share", "Repaired", "Not valid in the end", "Not validated"}, func(i int) bool { return i > 0 }, out, 0)
}

func (m *markdown) places(rows []report.FaultRow, values bool) {
	columns := []string{"Tool", "Place", "Fault", "Expected", "Received", "As sent", "In the end"}
	if values {
		columns = append(columns, "Values sent")
	}
	var out [][]string
	for _, r := range head(rows, markdownRows) {
		row := []string{code(r.Tool), code(report.At(r.Code, r.Pointer)), md(report.Name(r.Code)), md(text.Visible(text.Clip(r.Expected, maxName), false)), md(report.Received(r.Code, r.Received)), text.Number(r.Sent), report.Dot(r.Final)}
		if values {
			row = append(row, md(r.Top().String()))
		}
		out = append(out, row)
	}
	m.table(columns, func(i int) bool { return i == 5 || i == 6 }, out, rest(rows, markdownRows))
}

func (m *markdown) schemas(rows []report.SchemaRow) {
	var out [][]string
	for _, r := range head(rows, markdownRows) {
		out = append(out, []string{code(r.Tool), md(schemaText(r.Why)), text.Number(r.Calls)})
	}
	m.table([]string{"Schema of", "Cannot be used", "Calls not validated"}, func(i int) bool { return i > 1 }, out, rest(rows, markdownRows))
}

func (m *markdown) section(s report.Section) {
	m.paragraph("### " + md(s.Title))
	for _, p := range s.Text {
		m.paragraph(md(text.Clip(p, maxText)))
	}
	var header []string
	for _, c := range s.Columns {
		header = append(header, md(c))
	}
	var rows [][]string
	for _, r := range head(s.Rows, markdownRows) {
		var cells []string
		for _, c := range r {
			cells = append(cells, md(text.Clip(c, maxText)))
		}
		rows = append(rows, cells)
	}
	m.table(header, s.Numeric, rows, rest(s.Rows, markdownRows))
}

// findings shows the first findings with their arguments.
func (m *markdown) findings(all []report.Finding) {
	for i := range head(all, markdownCalls) {
		f := &all[i]
		if i == 0 {
			m.paragraph("### Calls")
		}
		m.paragraph(fmt.Sprintf("%s %s, %s", code(report.Where(f.File, f.Line, f.ID)), code(f.Tool), md(ending(f))))
		for _, fault := range f.Faults {
			m.line("- " + md(faultText(fault, true)))
		}
		if f.Arguments != "" {
			m.paragraph("<pre>" + md(f.Arguments) + "</pre>")
		}
	}
}

// code shows a name in the type of a terminal.
func code(s string) string { return "<code>" + md(report.Name(s)) + "</code>" }

// md escapes text for Markdown, on one line, and replaces what cannot be seen. Everything
// but letters, digits and spaces is a character reference, so that nothing is a mark, a
// link, a mention or a cell.
func md(s string) string {
	var b strings.Builder
	for _, r := range text.Visible(s, true) {
		if r == ' ' || r > unicode.MaxASCII || unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	return b.String()
}
