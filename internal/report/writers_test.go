package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
)

// writers are all formats that have a Layout.
var writers = map[string]func(io.Writer, report.Summary, report.Layout) error{
	"html":        report.WriteHTML,
	"annotations": report.WriteAnnotations,
	"junit.xml":   report.WriteJUnit,
	"sarif":       report.WriteSARIF,
	"md": func(w io.Writer, s report.Summary, l report.Layout) error {
		return report.WriteMarkdown(w, s, l, report.MaxStepSummary)
	},
}

// written returns what a writer writes.
func written(t testing.TB, format string, s report.Summary, l report.Layout) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, writers[format](&b, s, l))
	return b.String()
}

func TestGolden(t *testing.T) {
	t.Parallel()
	s := summary(t, report.Options{Content: true})
	sections := []report.Section{{Title: "Hints", Text: []string{"What would help most."}, Caption: "By tool", Columns: []string{"Tool", "Calls"}, Numbers: []int{1}, Rows: [][]string{{"plan", "3"}}}}
	for format := range writers {
		for suffix, l := range map[string]report.Layout{
			"":        {Sections: sections},
			".values": {Sections: sections, Values: true, Title: "Yesterday", Final: true},
		} {
			golden(t, "report"+suffix+"."+format, strings.ReplaceAll(written(t, format, s, l), report.Style(), "…style…"))
		}
	}
	twin, err := json.MarshalIndent(s, "", " ")
	require.NoError(t, err)
	golden(t, "summary.json", string(twin)+"\n")
}

// A report of nothing is a whole report.
func TestEmpty(t *testing.T) {
	t.Parallel()
	s := report.NewFigures(report.Options{}).Summary()
	require.Contains(t, written(t, "html", s, report.Layout{}), "0 calls")
	require.Contains(t, written(t, "md", s, report.Layout{}), "0 calls")
	require.Empty(t, written(t, "annotations", s, report.Layout{}))
	require.NoError(t, xml.Unmarshal([]byte(written(t, "junit.xml", s, report.Layout{})), new(struct{})))
	require.Contains(t, written(t, "sarif", s, report.Layout{}), `"results":[]`)
}

// Each writer returns the error of its output.
func TestWriteErrors(t *testing.T) {
	t.Parallel()
	s := summary(t, report.Options{})
	for format, write := range writers {
		for _, n := range []int{0, 10, 500} {
			if format == "annotations" && n == 500 {
				n = 200
			}
			require.ErrorIs(t, write(&failing{n}, s, report.Layout{}), errFull, format)
		}
	}
}

// Without Values no format shows a value that a model wrote. The HTML file says so in
// its first line.
func TestNoValues(t *testing.T) {
	t.Parallel()
	s := summary(t, report.Options{Content: true})
	for format := range writers {
		with, without := written(t, format, s, report.Layout{Values: true}), written(t, format, s, report.Layout{})
		for _, value := range []string{"Oslo", "kelvin"} {
			require.Contains(t, with, value, format)
			require.NotContains(t, without, value, format)
		}
	}
	first := func(l report.Layout) string {
		_, body, _ := strings.Cut(written(t, "html", s, l), "<body>")
		return strings.Split(strings.TrimSpace(body), "\n")[0]
	}
	require.Contains(t, first(report.Layout{Values: true}), "shows tool calls with their arguments")
	require.Contains(t, first(report.Layout{}), "shows no arguments")
}

// Figures that were made without Options.Content have no values to show, except for
// the examples of the HTML file.
func TestNoContent(t *testing.T) {
	t.Parallel()
	s := summary(t, report.Options{NoExamples: true})
	for format := range writers {
		got := written(t, format, s, report.Layout{Values: true})
		require.NotContains(t, got, "Oslo", format)
		require.NotContains(t, got, "kelvin", format)
	}
}

func TestMarkdownBound(t *testing.T) {
	t.Parallel()
	s := summary(t, report.Options{Content: true})
	whole := written(t, "md", s, report.Layout{Values: true})
	for _, most := range []int{0, 10, 60, 500, 2_000, len(whole) - 1, len(whole), report.MaxStepSummary} {
		var b bytes.Buffer
		require.NoError(t, report.WriteMarkdown(&b, s, report.Layout{Values: true}, most))
		require.LessOrEqual(t, b.Len(), most)
		if most >= 60 && most < len(whole) {
			require.Contains(t, b.String(), "The rest is left out")
		}
	}
}
