package check

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/ci"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/recordedtest"
	"github.com/toolmend/toolmend/internal/report"
)

func TestFormats(t *testing.T) {
	t.Setenv("GITHUB_STEP_SUMMARY", "")
	dir := clitest.DirWith(t, map[string]string{"log.jsonl": mixed()})
	for _, format := range []string{"github", "junit", "sarif"} {
		for _, flag := range []string{"", "-content"} {
			args := []string{"check", "-format", format, "@/log.jsonl"}
			if flag != "" {
				args = append(args, flag)
			}
			got := exec(t, dir, "", args...)
			require.Equal(t, cli.ExitInvalid, got.Code)
			require.Empty(t, got.ErrOut)
			require.Equal(t, flag != "", strings.Contains(got.Out, `{&#34;x`) || strings.Contains(got.Out, `{\"x`) || strings.Contains(got.Out, `{"x`), "%s %s", format, flag)
			switch format {
			case "junit":
				require.NoError(t, xml.Unmarshal([]byte(got.Out), new(struct{})))
			case "sarif":
				require.True(t, json.Valid([]byte(got.Out)))
			default:
				require.Contains(t, got.Out, "::error file=@/log.jsonl,line=3,title=bad_json call to add::add: syntax")
				require.Contains(t, got.Out, "\n## Tool calls\n")
			}
		}
	}
	asJSON, format := exec(t, dir, "", "check", "-json", "@/log.jsonl"), exec(t, dir, "", "check", "-format", "json", "@/log.jsonl")
	require.Equal(t, asJSON, format)
	require.Equal(t, exec(t, dir, "", "check", "@/log.jsonl"), exec(t, dir, "", "check", "-format", "text", "@/log.jsonl"))
}

// In a GitHub action the summary goes to the file that GitHub names, after what is there.
func TestStepSummary(t *testing.T) {
	dir := clitest.DirWith(t, map[string]string{"log.jsonl": mixed(), "summary.md": "earlier\n", "full.md": strings.Repeat("x", ci.MaxStepSummary-100)})
	t.Setenv("GITHUB_STEP_SUMMARY", filepath.Join(dir, "summary.md"))
	got := exec(t, dir, "", "check", "-format", "github", "@/log.jsonl")
	require.NotContains(t, got.Out, "##")
	require.Contains(t, got.Out, "::error ")
	text, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "earlier\n## Tool calls\n"))

	t.Setenv("GITHUB_STEP_SUMMARY", filepath.Join(dir, "full.md"))
	exec(t, dir, "", "check", "-format", "github", "@/log.jsonl")
	info, err := os.Stat(filepath.Join(dir, "full.md"))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(ci.MaxStepSummary))

	t.Setenv("GITHUB_STEP_SUMMARY", filepath.Join(dir, "missing", "summary.md"))
	got = exec(t, dir, "", "check", "-format", "github", "@/log.jsonl")
	require.Equal(t, cli.ExitFailed, got.Code)
	require.Contains(t, got.ErrOut, "no such file")
}

func TestHTMLFile(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"log.jsonl": mixed()})
	plain := exec(t, dir, "", "check", "@/log.jsonl")
	require.Equal(t, plain, exec(t, dir, "", "check", "-html", "@/report.html", "@/log.jsonl"), "the tables are printed too")
	page := read(t, dir, "report.html")
	require.Contains(t, page, "shows tool calls with their arguments")
	require.Contains(t, page, `<mark class="changed`)
	require.Contains(t, page, "{&#34;x&#34;:1")
	sameNumbers(t, page, exec(t, dir, "", "check", "-json", "@/log.jsonl").Out)

	exec(t, dir, "", "check", "-html", "@/report.html", "-no-content", "@/log.jsonl")
	page = read(t, dir, "report.html")
	require.Contains(t, page, "shows no arguments")
	require.NotContains(t, page, "{&#34;x&#34;:1")

	got := exec(t, dir, "", "check", "-html", "@/missing/report.html", "@/log.jsonl")
	require.Equal(t, cli.ExitFailed, got.Code)
	require.Contains(t, got.ErrOut, "no such file")
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}

// rowOf matches the rows of the first tables: verdicts, codes.
var rowOf = regexp.MustCompile(`<tr><th scope="row">(?:<span class="v [\w-]+">)?(\w+)(?:</span>)?</th><td class="n">([\d,]+)</td><td class="n">([\d,]+)</td></tr>`)

// sameNumbers compares a page with the last line of check -json.
func sameNumbers(t *testing.T, page, lines string) {
	t.Helper()
	all := strings.Split(strings.TrimSpace(lines), "\n")
	var s summaryJSON
	require.NoError(t, json.Unmarshal([]byte(all[len(all)-1]), &s))
	_, tables, _ := strings.Cut(page, `<section id="verdicts">`)
	tables, _, _ = strings.Cut(tables, "</section>")
	asSent, final, issues := map[report.Verdict]int{}, map[report.Verdict]int{}, map[string]int{}
	for _, m := range rowOf.FindAllStringSubmatch(tables, -1) {
		sent, end := atoi(t, m[2]), atoi(t, m[3])
		if _, verdict := s.AsSent[report.Verdict(m[1])]; verdict && issues[m[1]] == 0 && asSent[report.Verdict(m[1])] == 0 {
			asSent[report.Verdict(m[1])] = sent
			if end > 0 {
				final[report.Verdict(m[1])] = end
			}
		} else {
			issues[m[1]] = sent
		}
	}
	require.Equal(t, s.AsSent, asSent)
	require.Equal(t, s.Final, final)
	require.Equal(t, s.Issues, issues)
	first := regexp.MustCompile(`<p>([\d,]+) turns, ([\d,]+) calls in ([\d,]+) files?`).FindStringSubmatch(page)
	require.NotNil(t, first)
	require.Equal(t, []int{s.Turns, s.Calls, s.Files}, []int{atoi(t, first[1]), atoi(t, first[2]), atoi(t, first[3])})
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
	require.NoError(t, err)
	return n
}

func TestOutputFlags(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"good": clitest.Turn("m", "r", "add", `{"x":1}`)})
	for args, want := range map[string]string{
		"-format xml":                            `-format is text, json, github, junit or sarif, not "xml"`,
		"-json -format junit":                    "-json is -format json, and -format is junit",
		"-content":                               "-content needs -html, or -format json, github, junit or sarif",
		"-content -json":                         "",
		"-no-content":                            "-no-content needs -html",
		"-json -content -no-content -html @/out": "-content and -no-content contradict each other",
		"-json -format json":                     "",
		"-content -format sarif":                 "",
	} {
		got := exec(t, dir, "", strings.Fields("check @/good "+args)...)
		if want == "" {
			require.Equal(t, cli.ExitOK, got.Code, args)
		} else {
			require.Equal(t, cli.ExitFailed, got.Code, args)
			require.Contains(t, got.ErrOut, want, args)
		}
	}
}

// With -top, all findings are kept that the text shows.
func TestKeptFindings(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{"": 0, "-top 0": report.AllFindings, "-top 6000": 6000, "-top 6000 -json": 0} {
		s, err := parse(append(strings.Fields(args), "-"))
		require.NoError(t, err)
		require.Equal(t, want, s.figures().Findings, args)
	}
}

// served is what the gateway records of one exchange: an attempt that failed, one that
// was re-asked and one that the client got.
func served() string {
	const tools = `"tools":[{"name":"add","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}]}` + "\n"
	return `{"id":"17-1/1","time":"2026-11-22T09:00:00Z","source":"u","model":"m","format":"anthropic","path":"/v1/messages","client":"c","mode":"enforce","attempt":1,"attempts":3,"final":false,"status":"valid","error":"503","duration_ms":10,"usage":{},"tool_calls":[],` + tools +
		`{"id":"17-1/2","time":"2026-11-22T09:00:00Z","source":"u","model":"m","format":"anthropic","path":"/v1/messages","client":"c","mode":"enforce","attempt":2,"attempts":3,"final":false,"status":"valid","finish_reason":"tool_calls","duration_ms":20,"usage":{"input":10,"output":5},"tool_calls":[{"id":"a","name":"add","arguments":"{}"}],"replies":[{"role":"tool","tool_call_id":"a","parts":[{"text":"x is missing"}]}],` + tools +
		`{"id":"17-1/3","time":"2026-11-22T09:00:00Z","source":"u","model":"m","attempt":3,"attempts":3,"final":true,"status":"valid","finish_reason":"tool_calls","duration_ms":30,"usage":{"input":12,"output":5},"tool_calls":[{"id":"a","name":"add","arguments":"{\"x\":1}"}],` + tools
}

// The attempts of an exchange that the gateway recorded are one step, so that the page
// says what the re-ask cost. The lines of JSON stay one for each call.
func TestServedAttempts(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"log": served()})
	got := exec(t, dir, "", "check", "-html", "@/report.html", "-json", "@/log")
	require.Equal(t, cli.ExitInvalid, got.Code)
	require.Contains(t, got.Out, `"line":2,"id":"17-1/2"`)
	require.Contains(t, got.Out, `"line":3,"id":"17-1/3"`)
	require.Contains(t, got.Out, `"turns":2,"calls":2`)
	page := read(t, dir, "report.html")
	require.Contains(t, page, "<b>1</b>re-asks in 1 step: 12 tokens in, 5 out, 30 ms")
	require.Contains(t, page, `<th scope="col" class="n">Re-asked</th>`)
}

// The file that is made of all recorded calls has at most 1 MB, and the numbers of -json.
func TestHTMLOfRecordedCalls(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	args := append([]string{"check", "-json", "-html", filepath.Join(out, "report.html")}, recordedtest.Files(t)...)
	got := exec(t, out, "", args...)
	page := read(t, out, "report.html")
	require.LessOrEqual(t, len(page), 1_000_000)
	require.Contains(t, page, "80,057 calls")
	sameNumbers(t, page, got.Out)

	// What docs/reports/ci.md says of them.
	var s summaryJSON
	require.NoError(t, json.Unmarshal([]byte(lastLine(got.Out)), &s))
	var published strings.Builder
	s.Measures.Total.write(&published)
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "reports", "ci.md"))
	require.NoError(t, err)
	require.Contains(t, string(doc), "```text"+published.String()+"```")
}
