package argsvalidate_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// trip is a tool whose schema has room for every kind of mistake.
var trip = tool("book_trip", `{"type": "object", "properties": {
	"city": {"type": "string", "minLength": 2},
	"days": {"type": "integer", "minimum": 1, "maximum": 14},
	"unit": {"enum": ["celsius", "fahrenheit"]},
	"start": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"},
	"guests": {"type": "array", "minItems": 1, "items": {"type": "object",
		"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"], "additionalProperties": false}},
	"budget": {"anyOf": [{"type": "number"}, {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}]}},
	"required": ["city", "days"], "additionalProperties": false}`)

// One golden file for each kind of mistake: read them before changing one.
func TestDefaultFeedback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name, args string
		attempt    int
		repeated   bool
		truncated  bool
	}{
		"missing_and_misspelled": {args: `{"cityname": "Oslo", "dayz": 2}`},
		"wrong_types":            {args: `{"city": 5, "days": "two", "guests": "Ann"}`},
		"null_for_required":      {args: `{"city": null, "days": 2}`},
		"bounds":                 {args: `{"city": "O", "days": 99, "guests": []}`},
		"enum":                   {args: `{"city": "Oslo", "days": 2, "unit": "Celsius"}`},
		"pattern":                {args: `{"city": "Oslo", "days": 2, "start": "tomorrow"}`},
		"nested":                 {args: `{"city": "Oslo", "days": 2, "guests": [{"name": "Ann"}, {"nam": "Bob", "age": 1.5}]}`},
		"any_of":                 {args: `{"city": "Oslo", "days": 2, "budget": "much"}`},
		"syntax":                 {args: `{"city": "Oslo", "days": 2,, }`},
		"trailing_data":          {args: `{"city": "Oslo", "days": 2} {"city": "Rome"}`},
		"not_object":             {args: `["Oslo", 2]`},
		"duplicate_key":          {args: `{"city": "Oslo", "city": "Rome", "days": 2}`},
		"depth":                  {args: `{"city": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`},
		"truncated":              {args: `{"city": "Os`, truncated: true},
		"unknown_tool":           {name: "book_trips", args: `{}`},
		"rule":                   {args: `{"city": "Atlantis", "days": 2}`},
		"second_attempt":         {args: `{"city": "Oslo", "days": 99}`, attempt: 2},
		"repeated":               {args: `{"city": "Oslo", "days": 99}`, attempt: 2, repeated: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.name == "" {
				c.name = trip.Name
			}
			turn := answer(call("1", c.name, c.args))
			if c.truncated {
				turn = truncated(call("1", c.name, c.args))
			}
			o := argsvalidate.Options{OnExhausted: argsvalidate.Raise, MaxAttempts: 1, Rules: []argsvalidate.Rule{argsvalidate.FieldRule[string]{
				Path: "/city", Message: "no such city: {value}", Valid: func(s string) bool { return s != "Atlantis" },
			}}}
			verdict := failure(t, run(t, o, request(trip, note), turn).err).Verdicts[0]
			in := argsvalidate.FeedbackInput{Verdict: verdict, Available: []string{trip.Name, note.Name}, Attempt: max(c.attempt, 1), Repeated: c.repeated}
			if c.name == trip.Name {
				in.Tool, in.Declared = trip, true
			}
			got := argsvalidate.DefaultFeedback(in) + "\n"
			file := filepath.Join("testdata", "feedback", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

// The hint is right for the kind of mistake: a missing required property is
// never told to be left out alone.
func TestHintFitsTheMistake(t *testing.T) {
	t.Parallel()
	text := func(args string) string {
		return failure(t, run(t, argsvalidate.Options{MaxAttempts: 1, OnExhausted: argsvalidate.Raise}, request(), middlewaretest.Calls("weather", args)).err).Replies[0].Text()
	}
	missing := text(`{}`)
	require.Contains(t, missing, "Missing: city.")
	require.Contains(t, missing, "Give every required property a real value")
	require.Contains(t, missing, "If an optional property is not needed, omit it entirely")
	require.NotContains(t, text(`{"city`), "omit it entirely")
	require.Contains(t, text(`{"city": "a", "day": 1}`), "day (did you mean days?)")
}

// Whatever is sent, what the model is told stays short and takes no time.
func TestFeedbackIsBounded(t *testing.T) {
	t.Parallel()
	props := make([]string, 2000)
	for i := range props {
		props[i] = fmt.Sprintf(`"property_%d": {"type": "integer"}`, i)
	}
	wide := tool("wide", `{"properties": {`+strings.Join(props, ",")+`}, "additionalProperties": false}`)
	list := tool("list", `{"properties": {"l": {"items": {"type": "integer", "enum": [1, 2, 3]}}}}`)
	pairs := func(n int, key, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%s%d": %s`, key, i, value)
		}
		return "{" + b.String()[1:] + "}"
	}
	for name, c := range map[string]struct {
		tool middleware.Tool
		call string
		args string
	}{
		"10,000 issues":           {list, "list", `{"l": [` + strings.Repeat(`"x",`, 9999) + `"x"]}`},
		"10,000 unknown keys":     {wide, "wide", pairs(10_000, "propertie_", "1")},
		"2,000 wrong values":      {wide, "wide", pairs(2000, "property_", `"x"`)},
		"1 MB of one string":      {wide, "wide", `{"property_1": "` + strings.Repeat("x", 1_000_000) + `"}`},
		"1 MB of one key":         {wide, "wide", `{"` + strings.Repeat("x", 1_000_000) + `": 1}`},
		"1 MB that is not JSON":   {wide, "wide", strings.Repeat("ä", 500_000)},
		"1 MB for a name":         {wide, strings.Repeat("x", 1_000_000), "{}"},
		"1 MB for a passed name":  {wide, strings.Repeat("x", 1_000_000), "[]"},
		"long keys in each other": {list, "list", `{"l": [` + strings.Repeat(`{"`+strings.Repeat("k", 300)+`": 1},`, 3000) + `1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := argsvalidate.Options{}
			if strings.Contains(name, "passed") {
				o.UnknownTools = argsvalidate.PassUnknown
			}
			v := argsvalidate.NewValidator(unmended(o))
			start := time.Now()
			tools := []middleware.Tool{c.tool}
			for n := range 5000 {
				tools = append(tools, tool(fmt.Sprintf("tool_%d", n), ""))
			}
			_, err := v.Validate(t.Context(), tools, call("1", c.call, c.args))
			e := failure(t, err)
			in := argsvalidate.FeedbackInput{Verdict: e.Verdicts[0], Tool: c.tool, Declared: true, Attempt: 2, Repeated: true}
			require.Less(t, len(e.Replies[0].Text()), 8000)
			require.Less(t, len(argsvalidate.DefaultFeedback(in)), 8000)
			require.Less(t, len(err.Error()), 500)
			require.Less(t, time.Since(start), 20*time.Second, "bounded, on a slow machine with -race")
			t.Log(len(e.Replies[0].Text()), time.Since(start))
		})
	}
}

func TestOwnFeedback(t *testing.T) {
	t.Parallel()
	var seen []argsvalidate.FeedbackInput
	o := argsvalidate.Options{Feedback: func(in argsvalidate.FeedbackInput) string {
		seen = append(seen, in)
		return "mine for " + in.Verdict.Call.Name
	}}
	turn := middlewaretest.Calls("note", goodNote, "weather", badWeather, "nosuch", "{}")
	out := run(t, o, request(), turn, turn, middlewaretest.Text("no"))
	require.Equal(t, "mine for weather", out.told(2)[2].Text())
	require.Equal(t, "mine for nosuch", out.told(2)[3].Text())
	require.Len(t, seen, 4)
	require.Equal(t, weather, seen[0].Tool)
	require.True(t, seen[0].Declared)
	require.Equal(t, []string{"weather", "note"}, seen[0].Available)
	require.Equal(t, 1, seen[0].Attempt)
	require.False(t, seen[0].Repeated)
	require.False(t, seen[1].Declared)
	require.Empty(t, seen[1].Tool)
	require.Equal(t, 2, seen[3].Attempt)
	require.True(t, seen[3].Repeated)
}

func TestPanickingFeedbackIsReplaced(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Feedback: func(argsvalidate.FeedbackInput) string { panic("hunter2") }}
	out := run(t, o, request(), middlewaretest.Calls("weather", badWeather), middlewaretest.Calls("weather", goodWeather))
	require.Contains(t, out.told(2)[1].Text(), "Tool 'weather' argument validation failed.")
	require.Equal(t, []string{"the built-in text was sent: Options.Feedback: panic: string"}, out.report.Notes)

	o.MaxAttempts, o.OnExhausted = 1, argsvalidate.Raise
	out = run(t, o, request(), middlewaretest.Calls("weather", badWeather))
	require.Contains(t, failure(t, out.err).Replies[0].Text(), "Tool 'weather' argument validation failed.")
	require.Len(t, out.report.Notes, 1)
}

func TestLine(t *testing.T) {
	t.Parallel()
	issue := middleware.Issue{Pointer: "/config/thresholds/1", Message: "threshold must be positive"}
	require.Equal(t, "Tool 't' argument 'config.thresholds[1]': threshold must be positive", argsvalidate.Line("t", issue))
}
