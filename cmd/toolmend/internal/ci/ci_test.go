package ci_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/ci"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/test/reports"
	"github.com/toolmend/toolmend/middleware"
)

var (
	annotations = reports.Writer(ci.WriteAnnotations)
	junit       = reports.Writer(ci.WriteJUnit)
	sarif       = reports.Writer(ci.WriteSARIF)
	markdown    = reports.Writer(func(w io.Writer, s report.Summary, l report.Layout) error {
		return ci.WriteMarkdown(w, s, l, ci.MaxStepSummary)
	})
)

func TestWriters(t *testing.T) {
	t.Parallel()
	reports.Laws(t, "annotations", annotations, readAnnotations)
	reports.Laws(t, "junit.xml", junit, readXML)
	reports.Laws(t, "sarif", sarif, readSARIF)
	reports.Laws(t, "md", markdown, readMarkdown)
}

// A report of nothing is a whole report.
func TestEmpty(t *testing.T) {
	t.Parallel()
	s := report.NewFigures(report.Options{}).Summary()
	require.Contains(t, markdown.Written(t, s, report.Layout{}), "0 calls")
	require.Empty(t, annotations.Written(t, s, report.Layout{}))
	require.NoError(t, xml.Unmarshal([]byte(junit.Written(t, s, report.Layout{})), new(struct{})))
	require.Contains(t, sarif.Written(t, s, report.Layout{}), `"results":[]`)
}

func TestMarkdownBound(t *testing.T) {
	t.Parallel()
	s := reports.Summary(t, report.Options{Content: true})
	whole := markdown.Written(t, s, report.Layout{Values: true})
	for _, most := range []int{0, 10, 60, 500, 2_000, len(whole) - 1, len(whole), ci.MaxStepSummary} {
		var b bytes.Buffer
		require.NoError(t, ci.WriteMarkdown(&b, s, report.Layout{Values: true}, most))
		require.LessOrEqual(t, b.Len(), most)
		if most >= 60 && most < len(whole) {
			require.Contains(t, b.String(), "The rest is left out")
		}
	}
}

// many returns the figures of n calls that are repaired and n that are not valid in the
// end, to one of four tools each.
func many(t *testing.T, n int) report.Summary {
	t.Helper()
	calls := reports.Check(t, middleware.FinishToolCalls, "get_weather", `{"city":"Oslo","days":"3"}`, "get_weather", `{"days":1,"x":2}`)
	f := report.NewFigures(report.Options{Findings: report.AllFindings, NoExamples: true})
	for i := range n {
		one := append([]report.Call(nil), calls...)
		for c := range one {
			if i >= n-3 { // the last ones
				one[c].Sent.Name = fmt.Sprint("other", i)
			}
		}
		f.Add(reports.Turn(i+1, "m", one))
	}
	return f.Summary()
}

// GitHub shows ten errors and ten warnings. Each tool and code has one before one has
// two, wherever it is in the log.
func TestAnnotationsAreSpread(t *testing.T) {
	t.Parallel()
	got := annotations.Written(t, many(t, 30), report.Layout{})
	require.Equal(t, 10, strings.Count(got, "::error "))
	require.Equal(t, 10, strings.Count(got, "::warning "))
	for _, other := range []string{"other27", "other28", "other29"} {
		require.Equal(t, 2, strings.Count(got, "call to "+other+"::"), other)
	}
	few := annotations.Written(t, many(t, 4), report.Layout{})
	require.Equal(t, 4, strings.Count(few, "::error "))
}

// Code scanning takes 5,000 results. A call has all of its results or none.
func TestSARIFIsBounded(t *testing.T) {
	t.Parallel()
	var v struct {
		Runs []struct {
			Results    []struct{ Level string }
			Properties struct{ Omitted, Calls int }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(sarif.Written(t, many(t, 3_000), report.Layout{})), &v))
	run := v.Runs[0]
	levels := map[string]int{}
	for _, r := range run.Results {
		levels[r.Level]++
	}
	// A pair of calls has three results: one warning, two errors.
	require.Equal(t, map[string]int{"warning": 1_667, "error": 3_332}, levels)
	require.Equal(t, 6_000-1_667-1_666, run.Properties.Omitted)
	require.Equal(t, 6_000, run.Properties.Calls)
}

func readAnnotations(t *rapid.T, got string) {
	command := regexp.MustCompile(`^::(error|warning) ((file|line|title)=[^:,]*,?)*::[^\r\n]*$`)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	require.LessOrEqual(t, len(lines), 20)
	for _, line := range lines {
		if line != "" && !command.MatchString(line) {
			t.Fatalf("%q", line)
		}
	}
}

func readXML(t *rapid.T, got string) {
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			require.Contains(t, []string{"testsuites", "testsuite", "testcase", "failure", "skipped"}, e.Name.Local)
		case xml.Comment, xml.Directive:
			t.Fatalf("%v", e)
		}
	}
}

func readSARIF(t *rapid.T, got string) {
	var v struct {
		Runs []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Message   struct{ Text string }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got), &v))
	link := regexp.MustCompile(`(^|[^\\])(\\\\)*\[`)
	for _, r := range v.Runs[0].Results {
		require.Equal(t, v.Runs[0].Tool.Driver.Rules[r.RuleIndex].ID, r.RuleID)
		require.NotEmpty(t, r.RuleID)
		require.NotRegexp(t, link, r.Message.Text)
	}
}

func readMarkdown(t *rapid.T, got string) {
	cells := regexp.MustCompile(`^\| .* \|$|^\|( -+:? \|)+$`)
	columns := 0
	for _, line := range strings.Split(got, "\n") {
		plain := strings.NewReplacer("<code>", "", "</code>", "", "<pre>", "", "</pre>", "", "**Total**", "").Replace(line)
		if strings.HasPrefix(plain, "|") {
			require.Regexp(t, cells, line)
			if n := strings.Count(line, "|"); columns == 0 {
				columns = n
			} else {
				require.Equal(t, columns, n, line)
			}
			plain = strings.ReplaceAll(plain, "|", "")
		} else {
			columns = 0
		}
		plain = strings.TrimPrefix(strings.TrimPrefix(plain, "- "), "###")
		plain = strings.TrimPrefix(plain, "##")
		if strings.ContainsAny(plain, "<>`[]@*_~\\|!") || regexp.MustCompile(`^ *#|://|www\.`).MatchString(plain) {
			t.Fatalf("%q", line)
		}
	}
}
