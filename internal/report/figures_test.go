package report_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/test/reports"
	"github.com/toolmend/toolmend/middleware"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	s := reports.Summary(t, report.Options{})
	require.Equal(t, report.Counts{
		Calls: 13, Invalid: 4, Unparseable: 2, Unknown: 2, Truncated: 1, Unchecked: 2, Unusable: 1,
		Mended: 2, Repaired: 2, Final: 7, Reasked: 1, First: 10, FirstValid: 1,
	}, s.Total)
	require.Equal(t, 9, s.Total.Bad())
	require.Equal(t, 6, s.Total.Failed())
	require.Equal(t, 9, s.Steps)
	require.Equal(t, 10, s.Turns)
	require.Equal(t, report.Retries{Steps: 1, Attempts: 1, Usage: middleware.Usage{InputTokens: 130, OutputTokens: 25}, Duration: 500 * time.Millisecond}, s.Retries)
	require.Equal(t, 10, s.Bad)
	require.Equal(t, 8, s.BadEnd)
	require.Len(t, s.Findings, 10)
	require.Equal(t, []report.RuleRow{{Rule: "mend.coerce", Calls: 1}, {Rule: "mend.syntax", Calls: 1}}, s.Rules)
	require.Equal(t, "/steps/*/name", s.Places("plan")[2].Pointer)
	require.Equal(t, 1, s.Places("plan")[2].Sent, "a call with two faults at one place counts once")
	require.Empty(t, s.Places("odd"))
	require.Equal(t, "odd", s.Schemas[0].Tool)
	for _, rows := range [][]report.Row{s.Models, s.Tools, s.Pairs} {
		var sum report.Counts
		for _, r := range rows {
			sum.Calls += r.Calls
			sum.Invalid += r.Invalid
			sum.Final += r.Final
		}
		require.Equal(t, 13, sum.Calls)
		require.Equal(t, 4, sum.Invalid)
		require.Equal(t, 7, sum.Final)
	}
	twin, err := json.Marshal(s)
	require.NoError(t, err)
	var back report.Summary
	require.NoError(t, json.Unmarshal(twin, &back))
	require.Equal(t, s.Total, back.Total)
}

// Sent and in the end, by place: a repaired fault is not there in the end.
func TestFaultRows(t *testing.T) {
	t.Parallel()
	got := map[string]report.FaultRow{}
	s := reports.Summary(t, report.Options{})
	for _, f := range s.Faults {
		got[f.Tool+f.Pointer+" "+f.Code] = f
	}
	days := got["get_weather/days type"]
	require.Equal(t, report.FaultRow{
		Tool: "get_weather", Model: "model-a", Pointer: "/days", Code: "type", Expected: "integer", Received: "string",
		Sent: 1, Final: 0, File: "logs/log.jsonl", Line: 1, ID: "r",
		Values: []report.ValueRow{{Value: `"3"`, Calls: 1}},
	}, days)
	require.Equal(t, 1, got["get_weather/unit enum"].Final)
	require.Empty(t, got["search unknown_tool"].Expected, "other turns may have had other tools")
	require.Equal(t, 8, got["plan/steps/*/name required"].Line)
}

// The values where a fault is are counted, but not without limit.
func TestValues(t *testing.T) {
	t.Parallel()
	figures := func(o report.Options) report.Summary {
		f := report.NewFigures(o)
		for i := range 40 {
			f.Add(reports.Turn(i, "model-"+string(rune('a'+i%2)), reports.Check(t, middleware.FinishToolCalls, "get_weather", `{"city":"Oslo","unit":"kelvin"}`)))
			f.Add(reports.Turn(i, "model-a", reports.Check(t, middleware.FinishToolCalls, "get_weather", fmt.Sprintf(`{"city":"Oslo","unit":"%d%s"}`, i%20, strings.Repeat("x", 200)))))
			f.Add(reports.Turn(i, "model-a", reports.Check(t, middleware.FinishToolCalls, "get_weather", `{"city":"Oslo","city":"Rome"}`)))
		}
		return f.Summary()
	}
	s := figures(report.Options{})
	byCode := map[string]report.FaultRow{}
	for _, row := range s.Places("get_weather") {
		byCode[row.Code] = row
	}
	unit := byCode["enum"]
	require.Equal(t, report.ValueRow{Value: `"kelvin"`, Calls: 40}, unit.Values[0], "over both models")
	require.Len(t, unit.Values, 8)
	sum := unit.OtherValues
	for _, v := range unit.Values {
		require.LessOrEqual(t, len(v.Value), 80+len("…"))
		sum += v.Calls
	}
	require.Equal(t, unit.Sent, sum)
	require.Len(t, unit.Top().Values, 5)
	require.Equal(t, 40-4*2, unit.Top().Rest)
	require.Equal(t, `one of "celsius", "fahrenheit"`, unit.Expected)
	require.Empty(t, byCode["duplicate_key"].Values)
	require.Equal(t, "each property once", byCode["duplicate_key"].Expected)
	require.Contains(t, html.Written(t, s, report.Layout{Values: true}), "×40")
	require.NotContains(t, html.Written(t, s, report.Layout{}), "kelvin")
	for _, row := range figures(report.Options{NoExamples: true}).Faults {
		require.Empty(t, row.Values)
	}
	require.NotEmpty(t, figures(report.Options{NoExamples: true, Content: true}).Faults[0].Values)
}

// TestFiguresAreBounded: whatever names models choose, the number of rows is bounded, and so is the
// memory. The sums stay right. It is not parallel, because it measures the heap.
func TestFiguresAreBounded(t *testing.T) {
	calls := reports.Check(t, middleware.FinishToolCalls, "get_weather", `{"days":"x"}`)
	f := report.NewFigures(report.Options{})
	const n = 30_000
	long := strings.Repeat("n", 500)
	var before, after runtime.MemStats
	for i := range n {
		if i == n/2 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		c := calls[0]
		c.Sent.Name = fmt.Sprint(i, long)
		c.Issues = []middleware.Issue{{Code: fmt.Sprint("code", i), Pointer: fmt.Sprintf("/p%dx%s", i, long)}}
		c.FinalIssues = c.Issues
		c.Changes = []middleware.Change{{By: fmt.Sprint("rule", i), Pointer: fmt.Sprintf("/p%dx", i)}}
		c.Note = fmt.Sprint("note", i, long)
		f.Add(&report.Step{ID: long, File: "f", Model: fmt.Sprint("m", i, long), Tools: reports.Tools, Error: fmt.Sprint("e", i), Attempts: []report.Attempt{{Calls: []report.Call{c}}}})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(16<<20), "the second half adds next to nothing")
	s := f.Summary()
	require.Equal(t, n, s.Total.Calls)
	for what, rows := range map[string]int{
		"models": len(s.Models), "tools": len(s.Tools), "pairs": len(s.Pairs), "codes": len(s.Codes), "rules": len(s.Rules), "faults": len(s.Faults),
		"repairs": len(s.Repairs), "schemas": len(s.Schemas), "notes": len(s.Notes), "errors": len(s.Errors), "findings": len(s.Findings), "examples": len(s.Examples),
	} {
		require.LessOrEqual(t, rows, 20_001, what)
		require.Positive(t, rows, what)
	}
	require.Equal(t, n-10_000, s.Models[0].Calls)
	require.Equal(t, report.Others, s.Models[0].Model)
	require.Len(t, s.Findings, report.DefaultFindings)
	html := html.Written(t, s, report.Layout{Values: true})
	require.LessOrEqual(t, len(html), 1_000_000)
}

func TestFindings(t *testing.T) {
	t.Parallel()
	for findings, want := range map[int]int{report.AllFindings: 10, 0: 10, 3: 3} {
		s := reports.Summary(t, report.Options{Findings: findings})
		require.Len(t, s.Findings, want)
		require.Equal(t, 10, s.Bad)
	}
	for _, f := range reports.Summary(t, report.Options{}).Findings {
		require.Empty(t, f.Arguments)
		for _, fault := range f.Faults {
			require.Empty(t, fault.Message)
		}
	}
}

// An example of another model or place is kept rather than the same again, and a short
// call rather than a long one.
func TestExamples(t *testing.T) {
	t.Parallel()
	f := report.NewFigures(report.Options{})
	long := `{"city":"` + strings.Repeat("x", 5_000) + `","days":"3"}`
	for i, arguments := range []string{long, `{"city":"a","days":"3"}`, `{"city":"b","days":"4"}`, `{"city":"c","days":"5"}`, `{"city":"d","days":"6"}`} {
		for _, model := range []string{"m1", "m2", "m3", "m4"} {
			f.Add(reports.Turn(i+1, model, reports.Check(t, middleware.FinishToolCalls, "get_weather", arguments)))
		}
	}
	s := f.Summary()
	require.Len(t, s.Examples, 3)
	models := map[string]bool{}
	for _, x := range s.Examples {
		models[x.Model] = true
		require.Equal(t, 20, x.Calls)
		require.Less(t, x.Call.Bytes, 100)
	}
	require.Len(t, models, 3)
	require.Empty(t, reports.Summary(t, report.Options{NoExamples: true}).Examples)
}

func TestSeries(t *testing.T) {
	t.Parallel()
	calls := reports.Check(t, middleware.FinishToolCalls, "get_weather", `{"city":"a"}`, "get_weather", `{"city":"a","days":"3"}`, "get_weather", `{}`, "free", `{}`)
	start := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	var s report.Series
	for _, at := range []time.Duration{0, time.Second, 90 * time.Second, -time.Minute, 24 * time.Hour, -10 * 24 * time.Hour, 3 * time.Millisecond} {
		for i := range calls {
			s.Add(start.Add(at), &calls[i])
		}
		require.LessOrEqual(t, len(s.Buckets), 120)
		require.False(t, s.Start.After(start))
	}
	s.Add(time.Time{}, &calls[0])
	s.Add(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC), &calls[0])
	var sum report.Bucket
	for _, b := range s.Buckets {
		sum.Calls += b.Calls
		sum.Bad += b.Bad
		sum.Unchecked += b.Unchecked
		sum.Repaired += b.Repaired
		sum.Final += b.Final
	}
	require.Equal(t, report.Bucket{Calls: 28, Unchecked: 7, Bad: 14, Repaired: 7, Final: 7}, sum)
	require.Zero(t, (s.Width/time.Second)&(s.Width/time.Second-1), "a power of two")
	s.Add(time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), &calls[0])
	s.Add(time.Date(2200, 12, 31, 0, 0, 0, 0, time.UTC), &calls[0])
	require.LessOrEqual(t, len(s.Buckets), 120)
	require.Nil(t, report.Chart(report.Series{}))
	require.NotEmpty(t, report.Chart(s).Bars)
}

// Steps are added and read at the same time.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	all := reports.Steps(t)
	f := report.NewFigures(report.Options{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, s := range all {
				f.Add(s)
				sum := f.Summary()
				require.Equal(t, sum.Total.Calls, sum.AsSent[report.OK]+sum.Total.Bad()+sum.Total.Unchecked)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 4*13, f.Summary().Total.Calls)
}

// A call that nothing repairs tells more than one that was repaired.
func TestExamplesPreferInvalidCalls(t *testing.T) {
	t.Parallel()
	f := report.NewFigures(report.Options{})
	call := func(arguments string, final report.Verdict) {
		c := report.Call{
			Sent: middleware.ToolCall{Name: "x", Arguments: arguments}, AsSent: report.Invalid, Final: final,
			Issues: []middleware.Issue{{Code: "type", Pointer: "/a"}}, Changes: []middleware.Change{{By: "mend.coerce"}},
		}
		f.Add(&report.Step{Attempts: []report.Attempt{{Calls: []report.Call{c}}}})
	}
	call(`{"a":"1"}`, report.OK)
	call(`{"a":"`+strings.Repeat("x", 2000)+`"}`, report.Invalid)
	call(`{"a":"2"}`, report.OK)
	got := f.Summary().Examples
	require.Len(t, got, 1)
	require.Equal(t, report.Invalid, got[0].Call.Final)
}
