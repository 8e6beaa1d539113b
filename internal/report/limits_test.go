package report_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/test/reports"
	"github.com/toolmend/toolmend/middleware"
)

// The HTML file has at most a million bytes: if it would have more, it has fewer examples
// and shorter tables.
func TestHTMLIsBounded(t *testing.T) {
	t.Parallel()
	s := reports.Summary(t, report.Options{})
	x := s.Examples[0]
	x.Call.Sent = []report.Segment{{Text: strings.Repeat("<", 20_000)}} // four bytes each
	for range 200 {
		s.Examples = append([]report.Example{x}, s.Examples...)
	}
	got := html.Written(t, s, report.Layout{Values: true})
	require.LessOrEqual(t, len(got), 1_000_000)
	require.Contains(t, got, `<article class="call">`)
	for i := range 5_000 {
		s.Tools = append(s.Tools, report.Row{Tool: strings.Repeat("<", 190) + fmt.Sprint(i)})
		s.Models = append(s.Models, report.Row{Model: strings.Repeat("<", 190) + fmt.Sprint(i)})
	}
	s.Examples = nil
	got = html.Written(t, s, report.Layout{})
	require.LessOrEqual(t, len(got), 1_000_000)
	require.Contains(t, got, "more rows")
}

// However many models send values, those that are counted take at most some 2 MB. The
// counts stay right.
func TestValueBytes(t *testing.T) {
	t.Parallel()
	f := report.NewFigures(report.Options{})
	issue := []middleware.Issue{{Code: "enum", Pointer: "/unit"}}
	for i := range 8 {
		arguments := fmt.Sprintf(`{"unit":"%d%s"}`, i, strings.Repeat("x", 200))
		sent := middleware.ToolCall{Name: "get_weather", Arguments: arguments}
		for m := range 5_000 {
			f.Add(reports.Turn(1, fmt.Sprint("m", m), []report.Call{{Sent: sent, Ran: sent, AsSent: report.Invalid, Final: report.Invalid, Issues: issue, FinalIssues: issue}}))
		}
	}
	bytes, calls := 0, 0
	s := f.Summary()
	for _, row := range s.Faults {
		calls += row.OtherValues
		for _, v := range row.Values {
			bytes += len(v.Value)
			calls += v.Calls
		}
	}
	require.Len(t, s.Faults, 5_000)
	require.Equal(t, 40_000, calls)
	require.Less(t, bytes, 2<<20)
	require.Greater(t, bytes, 1<<20)
}

// A large schema is read once for all calls of a step, and of a log.
func TestLargeSchemaIsReadOnce(t *testing.T) {
	t.Parallel()
	properties := map[string]any{}
	for i := range 20_000 {
		properties[fmt.Sprint("p", i)] = map[string]any{"type": "string", "enum": []string{"a", "b"}}
	}
	parameters, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	require.NoError(t, err)
	sent := middleware.ToolCall{Name: "t", Arguments: `{"p1":1}`}
	issues := []middleware.Issue{{Code: "type", Pointer: "/p1"}}
	call := report.Call{Sent: sent, Ran: sent, AsSent: report.Invalid, Final: report.Invalid, Issues: issues, FinalIssues: issues}
	step := reports.Turn(1, "m", slices.Repeat([]report.Call{call}, 300))
	step.Tools = []middleware.Tool{{Name: "t", Parameters: parameters}}
	start := time.Now()
	shown := report.ViewStep(step)
	require.Less(t, time.Since(start), 3*time.Second)
	require.Equal(t, "string", shown[0].Calls[299].Faults[0].Expected)
	f := report.NewFigures(report.Options{})
	start = time.Now()
	f.Add(step)
	require.Less(t, time.Since(start), 3*time.Second)
}
