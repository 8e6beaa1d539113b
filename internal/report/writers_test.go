package report_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/test/reports"
)

var html = reports.Writer(report.WriteHTML)

func TestHTML(t *testing.T) {
	t.Parallel()
	reports.Laws(t, "html", html, readHTML)
}

// The JSON form of the figures is stable.
func TestSummaryJSON(t *testing.T) {
	t.Parallel()
	twin, err := json.MarshalIndent(reports.Summary(t, report.Options{Content: true}), "", " ")
	require.NoError(t, err)
	reports.Golden(t, "summary.json", string(twin)+"\n")
}

// A report of nothing is a whole report.
func TestEmpty(t *testing.T) {
	t.Parallel()
	require.Contains(t, html.Written(t, report.NewFigures(report.Options{}).Summary(), report.Layout{}), "0 calls")
}

// The HTML file says in its first line whether it shows values.
func TestNotice(t *testing.T) {
	t.Parallel()
	first := func(l report.Layout) string {
		_, body, _ := strings.Cut(html.Written(t, reports.Summary(t, report.Options{Content: true}), l), "<body>")
		return strings.Split(strings.TrimSpace(body), "\n")[0]
	}
	require.Contains(t, first(report.Layout{Values: true}), "shows tool calls with their arguments")
	require.Contains(t, first(report.Layout{}), "shows no arguments")
}

// The tags and attributes of the templates. There is no script, no link and no image.
var (
	tag        = regexp.MustCompile(`<([^>]*)>`)
	tagName    = regexp.MustCompile(`^/?(html|head|meta|title|style|body|main|section|article|header|h1|h2|h3|h4|p|b|a|nav|ul|ol|li|table|caption|thead|tbody|tfoot|tr|th|td|span|div|pre|code|mark|sup|svg|rect|text|figure|figcaption)( |$)`)
	attribute  = regexp.MustCompile(`^( (href|lang|charset|http-equiv|content|name|class|id|scope|colspan|tabindex|role|aria-label|aria-hidden|viewBox|preserveAspectRatio|x|y|width|height|text-anchor|dir)(="[^"<>]*")?)*$`)
	stylesheet = regexp.MustCompile(`(?s)<style>.*?</style>`)
)

func readHTML(t *rapid.T, got string) {
	got, ok := strings.CutPrefix(got, "<!DOCTYPE html>")
	require.True(t, ok)
	require.Equal(t, 1, strings.Count(got, "<style>"))
	got = stylesheet.ReplaceAllString(got, "")
	for _, m := range tag.FindAllStringSubmatch(got, -1) {
		if !tagName.MatchString(m[1]) {
			t.Fatalf("tag <%s>", m[1])
		}
		if _, rest, _ := strings.Cut(m[1], " "); rest != "" && !attribute.MatchString(" "+rest) {
			t.Fatalf("attributes of <%s>", m[1])
		}
	}
	for _, link := range strings.Split(got, " href=")[1:] {
		require.Regexp(t, `^"#[a-z]+[0-9]*"`, link)
	}
	require.Equal(t, strings.Count(got, "<"), len(tag.FindAllString(got, -1)), "a < outside of a tag")
}
