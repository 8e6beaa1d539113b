package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// Writer writes figures in one format.
type Writer func(io.Writer, report.Summary, report.Layout) error

// Written returns what the Writer writes.
func (write Writer) Written(t require.TestingT, s report.Summary, l report.Layout) string {
	var b bytes.Buffer
	require.NoError(t, write(&b, s, l))
	return b.String()
}

// Laws tests a Writer: its golden files report.NAME and report.values.NAME, the errors
// of its output, that it shows values only if it is asked to, and with names and values
// that try to leave their place. read fails if a text cannot be read by the rules of the
// format, or has markup or a command that is not the Writer's own.
func Laws(t *testing.T, name string, write Writer, read func(*rapid.T, string)) {
	t.Run("golden", func(t *testing.T) {
		t.Parallel()
		s := Summary(t, report.Options{Content: true})
		sections := []report.Section{{Title: "Hints", Text: []string{"What would help most."}, Caption: "By tool", Columns: []string{"Tool", "Calls"}, Numbers: []int{1}, Rows: [][]string{{"plan", "3"}}}}
		for suffix, l := range map[string]report.Layout{
			"":        {Sections: sections},
			".values": {Sections: sections, Values: true, Title: "Yesterday", Final: true},
		} {
			Golden(t, "report"+suffix+"."+name, strings.ReplaceAll(write.Written(t, s, l), report.Style(), "…style…"))
		}
	})
	t.Run("errors of the output", func(t *testing.T) {
		t.Parallel()
		s := Summary(t, report.Options{})
		for _, n := range []int{0, 10, len(write.Written(t, s, report.Layout{})) / 2} {
			require.ErrorIs(t, write(&failing{n}, s, report.Layout{}), errFull)
		}
	})
	t.Run("no values", func(t *testing.T) {
		t.Parallel()
		s := Summary(t, report.Options{Content: true})
		with, without := write.Written(t, s, report.Layout{Values: true}), write.Written(t, s, report.Layout{})
		kept := write.Written(t, Summary(t, report.Options{NoExamples: true}), report.Layout{Values: true})
		for _, value := range []string{"Oslo", "kelvin"} {
			require.Contains(t, with, value)
			require.NotContains(t, without, value)
			require.NotContains(t, kept, value, "without Options.Content there are no values to show")
		}
	})
	t.Run("hostile", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			s := drawHostile(t)
			text := hostileText()
			got := write.Written(t, s, report.Layout{
				Title: text.Draw(t, "title"), Values: rapid.Bool().Draw(t, "values"),
				Sections: []report.Section{{Title: text.Draw(t, "section"), Text: []string{text.Draw(t, "text")}, Caption: text.Draw(t, "caption"), Columns: []string{text.Draw(t, "column")}, Rows: [][]string{{text.Draw(t, "cell")}}}},
			})
			require.True(t, utf8.ValidString(got))
			for _, r := range got {
				if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
					t.Fatalf("holds %U", r)
				}
			}
			read(t, got)
		})
	})
}

// hostile are names and values that end what is around them in one format or another.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</pre></code><h1>`, `]]>`, `<!--`, `&lt;&#60;`,
	"a\n::error file=x::y", "a\r\n::stop-commands::x", "%0A::error::x", "a:b,c%d", "| a | b |", "`x` **b** [l](http://evil.example) @team #1",
	"\u202egnp.exe", "\u2066\u2069\u200b\ufeff", "\x00\x01\x1b[2J\x7f", "\xff\xfe", "\ufffe\uffff", "\U000e0001", "{{.}}", `\[x\](y)`, "~1~0/..", "",
	strings.Repeat("long ", 3000), strings.Repeat("é", 700),
}

func hostileText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(hostile), rapid.String(), rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom(hostile).Draw(t, "a") + rapid.SampledFrom(hostile).Draw(t, "b")
	}))
}

// drawHostile draws the summary of calls whose every name and value is hostile.
func drawHostile(t *rapid.T) report.Summary {
	text := hostileText()
	checker := report.NewChecker(argsvalidate.Options{})
	f := report.NewFigures(report.Options{Content: true})
	for i := range rapid.IntRange(1, 5).Draw(t, "steps") {
		declared := []middleware.Tool{{Name: text.Draw(t, "tool"), Parameters: []byte(`{"type":"object","properties":{"x":{"type":"integer","description":"</script>"}},"additionalProperties":false}`)}}
		call := middleware.ToolCall{ID: text.Draw(t, "id"), Name: declared[0].Name, Arguments: text.Draw(t, "arguments")}
		if rapid.Bool().Draw(t, "unknown") {
			call.Name = text.Draw(t, "name")
		}
		if rapid.Bool().Draw(t, "JSON") {
			b, _ := json.Marshal(map[string]string{text.Draw(t, "key"): text.Draw(t, "value"), "x": text.Draw(t, "x")})
			call.Arguments = string(b)
		}
		calls, err := checker.Check(t.Context(), declared, middleware.FinishToolCalls, call)
		require.NoError(t, err)
		if len(calls[0].Issues) > 0 && rapid.Bool().Draw(t, "rule") {
			calls[0].Issues[0].Code, calls[0].Issues[0].Message = text.Draw(t, "code"), text.Draw(t, "message")
		}
		if rapid.Bool().Draw(t, "noted") {
			calls[0].AsSent, calls[0].Final, calls[0].Note, calls[0].Issues, calls[0].FinalIssues = report.BadSchema, report.BadSchema, text.Draw(t, "note"), nil, nil
		}
		f.Add(&report.Step{
			ID: text.Draw(t, "step"), File: text.Draw(t, "file"), Line: i + 1, Model: text.Draw(t, "model"), Tools: declared,
			Attempts: []report.Attempt{{Calls: calls}},
		})
	}
	s := f.Summary()
	s.Reading.Skipped = map[string]int{text.Draw(t, "skipped"): 1}
	return s
}

// failing is a writer that fails after n bytes.
type failing struct{ n int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}
