package page_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
)

// TestHTMLReport opens the file of `toolmend check -html`: its own CSP lets its style in,
// nothing is fetched, axe-core finds no serious fault, it fits narrow screens, and what a
// model wrote is text.
func TestHTMLReport(t *testing.T) {
	figures := report.NewFigures(report.Options{})
	steps := sampleSteps(300)
	for i := range steps {
		figures.Add(&steps[i])
	}
	hostile := steps[0]
	hostile.Model = "<script>document.title='changed'</script>\u202e<img src=http://example.com/x>"
	figures.Add(&hostile)
	var file bytes.Buffer
	require.NoError(t, report.WriteHTML(&file, figures.Summary(), report.Layout{Values: true, Title: "Recorded calls"}))
	b := open(t, holding(t, file.Bytes()))
	b.visit("/report.html")
	b.arrive("document.title === 'Recorded calls'")
	require.Contains(t, b.text("body > p"), "This file shows tool calls with their arguments")
	require.Equal(t, "none", value[string](b, "getComputedStyle(document.querySelector('nav ul')).listStyleType"), "the style sheet is used")
	require.Contains(t, b.text("#models"), `<script>document.title='changed'</script>\u202e<img`)
	require.Positive(t, value[int](b, "document.querySelectorAll('#examples mark.fault').length"))
	require.Positive(t, value[int](b, "document.querySelectorAll('#examples mark.changed').length"))
	require.Zero(t, value[int](b, "document.querySelectorAll('script, img, [style], [onclick]').length"))
	b.accessible("report")
	b.shoot("report")
	for _, width := range []int64{1280, 800, 400} {
		b.width(width)
		b.fits("report")
	}
	b.shoot("report-narrow")
}

// TestHTMLReportOfRecordedCalls opens the file that is made of all recorded calls.
func TestHTMLReportOfRecordedCalls(t *testing.T) {
	logs, _ := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "data", "recorded", "bfcl-*.jsonl.gz"))
	if len(logs) == 0 {
		t.Skip("no recorded calls beside the repository")
	}
	path := filepath.Join(t.TempDir(), "report.html")
	check := exec.Command("go", append([]string{"run", ".", "check", "-html", path}, absolute(t, logs)...)...)
	check.Dir = filepath.Join("..", "..", "..", "cmd", "toolmend")
	out, err := check.CombinedOutput()
	var invalid *exec.ExitError
	require.ErrorAs(t, err, &invalid, "the calls are not all valid")
	file, err := os.ReadFile(path)
	require.NoError(t, err, string(out))
	require.LessOrEqual(t, len(file), 1_000_000)
	b := open(t, holding(t, file))
	b.visit("/report.html")
	b.arrive("document.querySelectorAll('#tools tbody tr').length === 100")
	b.accessible("recorded calls")
	b.shoot("recorded")
	b.width(400)
	b.fits("recorded calls")
}

// holding serves a file and returns the address of its folder.
func holding(t *testing.T, file []byte) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/report.html" {
			w.WriteHeader(http.StatusNoContent) // the browser asks for an icon
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(file)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// absolute returns the paths from the root.
func absolute(t *testing.T, paths []string) (out []string) {
	t.Helper()
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		require.NoError(t, err)
		out = append(out, abs)
	}
	return out
}
