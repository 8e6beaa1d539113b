package report_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/test/reports"
)

// The templates for a page that shows single steps.
func TestTemplates(t *testing.T) {
	t.Parallel()
	all := reports.Steps(t)
	two := all[len(all)-1]
	two.Attempts[0].Replies[0].Text += " <b>"
	s := reports.Summary(t, report.Options{})
	first := report.ViewStep(two)[0]
	var b bytes.Buffer
	for _, part := range []struct {
		name string
		data any
	}{
		{"call", first.Calls[0]},
		{"replies", first.Replies},
		{"places", report.PlacesView{Caption: "By model", Models: true, Values: true, Steps: "/steps/", Rows: s.Faults, More: 3}},
		{"chart", report.Chart(s.Series)},
	} {
		require.NoError(t, report.Templates().ExecuteTemplate(&b, part.name, part.data))
		b.WriteString("\n\n")
	}
	reports.Golden(t, "parts.html", b.String())
	require.NotContains(t, b.String(), " <b>\n")
	require.Contains(t, b.String(), "&lt;b&gt;")
	require.NotContains(t, b.String(), "style=")
}

// A clone is the caller's own.
func TestTemplatesAreClones(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, html.Written(t, reports.Summary(t, report.Options{}), report.Layout{}))
	mine := report.Templates()
	_, err := mine.Parse(`{{define "verdict"}}mine{{end}}`)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, report.Templates().ExecuteTemplate(&b, "verdict", report.OK))
	require.Contains(t, b.String(), "v-good")
	for name, data := range map[string]any{"verdict": report.BadSchema, "replies": []report.Reply{{Role: "tool", Text: "x"}}, "legend": nil, "section": report.Section{Title: "t"}} {
		require.NoError(t, report.Templates().ExecuteTemplate(&b, name, data))
	}
	require.Contains(t, b.String(), "v-unchecked")
}

// Numbers are written for people.
func TestNumbers(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	page, err := report.Templates().Parse(`{{define "n"}}{{num 0}} {{num 999}} {{num 1000}} {{num 1234567}} {{num -1234}} {{num .Big}} {{num "x"}}|{{dot 0}} {{dot 1000}}|{{share 1 3}} {{share 0 0}}|{{plural 1 "call"}} {{plural 1000 "call"}}|{{range .Times}}{{seconds .}} {{end}}|{{name ""}}|{{place "a/b.jsonl" 3 ""}} {{place "b" 0 ""}} {{place "" 0 "id"}}{{end}}`)
	require.NoError(t, err)
	require.NoError(t, page.ExecuteTemplate(&b, "n", map[string]any{"Big": int64(5_000_000_000), "Times": []time.Duration{900, 1_500_000, 1_500_000_000, 100_400_000_000}}))
	require.Equal(t, "0 999 1,000 1,234,567 -1,234 5,000,000,000 x|. 1,000|33.33% .|1 call 1,000 calls|0 µs 1 ms 1.5 s 100 s |(none)|b.jsonl:3 b id", b.String())
}
