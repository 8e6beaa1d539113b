package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
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

// TestHostile: whatever models write, each format can be read by its own rules, holds no
// character that cannot be seen, and nothing in it is markup or a command.
func TestHostile(t *testing.T) {
	t.Parallel()
	reads := map[string]func(*rapid.T, string){
		"html": readHTML, "annotations": readAnnotations, "junit.xml": readXML, "sarif": readSARIF, "md": readMarkdown,
	}
	rapid.Check(t, func(t *rapid.T) {
		s := drawHostile(t)
		text := hostileText()
		l := report.Layout{
			Title: text.Draw(t, "title"), Values: rapid.Bool().Draw(t, "values"),
			Sections: []report.Section{{Title: text.Draw(t, "section"), Text: []string{text.Draw(t, "text")}, Caption: text.Draw(t, "caption"), Columns: []string{text.Draw(t, "column")}, Rows: [][]string{{text.Draw(t, "cell")}}}},
		}
		for format, read := range reads {
			var b bytes.Buffer
			require.NoError(t, writers[format](&b, s, l))
			got := b.String()
			require.True(t, utf8.ValidString(got), format)
			for _, r := range got {
				if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
					t.Fatalf("%s: holds %U", format, r)
				}
			}
			read(t, got)
		}
	})
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
