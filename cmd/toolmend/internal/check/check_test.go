package check

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// mixed is a log with every kind of line.
func mixed() string {
	return clitest.Turn("small", "r1", "add", `{"x":1}`, "add", `{"x":"1"}`, "add", `{"note":null,"x":1}`) +
		`{"source":"s","error":"boom"}` + "\n" +
		clitest.Turn("small", "r2", "add", `{"x":1`, "sub", `{}`, "add", `[1]`) +
		clitest.Turn("large", "r3", "free", `{"any":[]}`, "odd", `{}`, "add", ``, "add", `{"x":1,"x":2}`) +
		clitest.Turn("large", "r4", "add", `{"x":3}`) +
		`{"id":"e1","request":{"model":"gpt","tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]},` +
		`"response":"{\"choices\":[{\"finish_reason\":\"length\",\"message\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"add\",\"arguments\":\"{}\"}},` +
		`{\"id\":\"b\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"x\"}}]}}]}"}` + "\n"
}

func TestGolden(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"log.jsonl": mixed()})
	for name, args := range map[string][]string{
		"table.txt":   {"check", "@/log.jsonl"},
		"example.txt": {"check", filepath.FromSlash("../../../../examples/check/calls.jsonl")}, // README's
		"top.txt":     {"check", "-top", "1", "-strip", "off", "@/log.jsonl"},
		"calls.jsonl": {"check", "-json", "@/log.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := exec(t, dir, "", args...)
			require.Empty(t, got.ErrOut)
			clitest.Golden(t, name, got.Out)
		})
	}
}

const (
	bareCall = `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"add","arguments":"{}"}}]}}]}` + "\n"
	bareTool = `{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}` + "\n"
)

// TestDocumentedForms runs each command of the tables of forms in docs/reports/forms.md and docs/logs.md.
func TestDocumentedForms(t *testing.T) {
	root := filepath.FromSlash("../../../..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "reports", "forms.md"))
	require.NoError(t, err)
	more, err := os.ReadFile(filepath.Join(root, "docs", "logs.md"))
	require.NoError(t, err)
	page = append(page, more...)
	t.Chdir(root)
	n := 0
	for _, row := range regexp.MustCompile("\\| `toolmend (check [^`]*examples/check/forms/[^`]*)` \\|").FindAllSubmatch(page, -1) {
		n++
		args := strings.Fields(string(row[1]))
		got := clitest.Execute(t, run, t.TempDir(), "", args...)
		require.Equal(t, cli.ExitInvalid, got.Code, "%v: %s", args, got.ErrOut)
		require.Empty(t, got.ErrOut)
		files := 1 + strings.Count(got.Out, "otel-console.json")
		require.Contains(t, got.Out, fmt.Sprintf("%d turns, %[1]d calls in %d file", 2*files, files))
		require.Contains(t, got.Out, fmt.Sprintf("%d not valid as sent", files))
	}
	require.Equal(t, 64, n)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	good, bad := clitest.Turn("m", "r", "add", `{"x":1}`), clitest.Turn("m", "r", "add", `{"x":"one"}`)
	dir := clitest.DirWith(t, map[string]string{
		"good": good, "bad": bad, "free": clitest.Turn("m", "r", "free", `{}`), "odd": clitest.Turn("m", "r", "odd", `{}`),
		"null": clitest.Turn("m", "r", "add", `{"x":1,"note":null}`), "broken": bad + "{\n" + good, "empty": "", "unknown": clitest.Turn("m", "r", "sub", `{}`),
		"nosets": "{}", "texts": `{"request":{},"response":{"choices":[{"message":{"content":"hi"}}]}}`, "other": `{"prompt":"a","completion":"b"}` + "\n",
		"bare": bareCall, "tools.json": "[" + bareTool + "]", "badtools": `["add"]`, "mixed": bad + bareCall + `{"messages":[{"role":"user","content":"hi"}]}` + "\n",
		"array": "[\n" + good + ",\n" + bad + "]",
	})
	sets, err := os.ReadFile(filepath.Join(dir, "toolsets.jsonl"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "both"), append(append(sets, '\n'), bareTool...), 0o600))
	for _, c := range []struct {
		args string
		code int
		err  string // a part of what stderr says; "": nothing
	}{
		{"check @/good", cli.ExitOK, ""},
		{"check @/free", cli.ExitOK, ""},
		{"check @/empty", cli.ExitOK, "no tool call was found"},
		{"check @/bad", cli.ExitInvalid, ""},
		{"check @/odd", cli.ExitInvalid, ""},
		{"check @/null", cli.ExitInvalid, ""}, // as sent counts, whatever stripping does
		{"check @/unknown", cli.ExitInvalid, ""},
		{"check -unknown pass @/unknown", cli.ExitOK, ""},
		{"check @/good @/bad", cli.ExitInvalid, ""},
		{"check -model other @/bad", cli.ExitOK, "no tool call was found"},
		{"check -model M @/bad", cli.ExitInvalid, ""},
		{"check -tool sub @/bad", cli.ExitOK, "no tool call was found"},
		{"check @/other", cli.ExitFailed, "@/other: not a form that is read, so nothing of it was checked: the first such record has the members prompt, completion"},
		{"check -json @/other", cli.ExitFailed, "not a form that is read"},
		{"check @/texts", cli.ExitFailed, "no line has a tool call"},
		{"check @/texts @/good", cli.ExitOK, ""},
		{"check @/bare", cli.ExitFailed, "1 call not validated: the log does not have the schemas of the tools. Name them with -tools: a file"},
		{"check -tools @/tools.json @/bare", cli.ExitOK, ""},
		{"check -tools @/badtools @/bare", cli.ExitFailed, "@/badtools:1: not a JSON object, but a string"},
		{"check -tools @/both @/mixed", cli.ExitInvalid, ""},
		{"check -write-baseline @/no/where @/good", cli.ExitFailed, "no such file"},
		{"check -write-baseline @/w1 @/odd", cli.ExitFailed, "-write-baseline: no turn was validated"},
		{"check @/broken", cli.ExitFailed, "@/broken:2: not JSON"},
		{"check @/missing @/bad", cli.ExitFailed, "toolmend check: open @/missing: no such file"},
		{"check -tools @/missing @/good", cli.ExitFailed, "no such file"},
		{"check -tools @/nosets @/good", cli.ExitFailed, "@/nosets:1: neither tools nor a toolset with a ref, nor a request with tools"},
		{"check", cli.ExitFailed, "no FILE"},
		{"check @/good -strip some", cli.ExitFailed, `-strip: must be one of "all", "off", "optional", "when-invalid", got "some"`},
		{"check -unknown maybe @/good", cli.ExitFailed, "-unknown is reject or pass"},
		{"check -gate final @/null", cli.ExitOK, ""},
		{"check -gate final @/bad", cli.ExitInvalid, ""},
		{"check -gate both @/good", cli.ExitFailed, "-gate is sent or final"},
		{"check @/array", cli.ExitInvalid, ""},
		{"check -top -1 @/good", cli.ExitFailed, "-top is 0 or more"},
		{"check -- @/good @/bad", cli.ExitInvalid, ""},
		{"check @/good -- @/good -json", cli.ExitFailed, "-json: no such file"},
		{"check -- -strip", cli.ExitFailed, "-strip: no such file"},
		{"check -- --", cli.ExitFailed, "--: no such file"},
		{"check @/good --", cli.ExitOK, ""},
		{"check -model -- @/bad -model m", cli.ExitInvalid, ""}, // this one is a value
		{"check -what @/good", cli.ExitFailed, "unknown flag --what"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			exec(t, dir, "", strings.Fields(c.args)...).Require(t, c.code, c.err)
		})
	}
}

// A bad line is named, and those around it count.
func TestBadLines(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"log": clitest.Turn("m", "r1", "add", `{"x":1}`) + "\n{\n" + `{"tools_ref":"lost","tool_calls":[{"name":"x"}]}` + "\n" + clitest.Turn("m", "r2", "add", `{"x":2}`)})
	got := exec(t, dir, "", "check", "@/log")
	require.Equal(t, cli.ExitFailed, got.Code)
	require.Equal(t, "@/log:3: not JSON: the text ends where a property name in double quotes should be at offset 1\n@/log:4: tools_ref \"lost\" is not in @/toolsets.jsonl\n", got.ErrOut)
	require.Contains(t, got.Out, "2 turns, 2 calls in 1 file: 0 not valid as sent")
	require.Contains(t, got.Out, "2 not read")
}

func TestManyBadLines(t *testing.T) {
	t.Parallel()
	got := exec(t, clitest.DirWith(t, nil), strings.Repeat("{x\n", 93), "check", "-")
	require.Equal(t, cli.ExitFailed, got.Code)
	require.Equal(t, 6, strings.Count(got.ErrOut, "\n"))
	require.Contains(t, got.ErrOut, "stdin: and 88 more lines that could not be read")
	require.Contains(t, got.Out, "93 not read")

	files, args := map[string]string{}, []string{"check"}
	for i := range 20 {
		name := fmt.Sprint("log", i)
		files[name] = strings.Repeat("{x\n", 7)
		args = append(args, "@/"+name)
	}
	got = exec(t, clitest.DirWith(t, files), "", args...)
	require.Equal(t, maxComplaints+1, strings.Count(got.ErrOut, "\n"))
	require.Contains(t, got.ErrOut, "and 20 more such lines")
}

func TestGzipAndStdin(t *testing.T) {
	t.Parallel()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write([]byte(mixed()))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	dir := clitest.DirWith(t, map[string]string{"log": mixed(), "zipped.txt": z.String()})

	from := func(name, out string) string { return strings.ReplaceAll(out, "\n"+name+":", "\n@/log:") }
	plain := exec(t, dir, "", "check", "@/log").Out
	require.Equal(t, plain, from("@/zipped.txt", exec(t, dir, "", "check", "@/zipped.txt").Out))
	require.Equal(t, plain, from("stdin", exec(t, dir, mixed(), "check", "-tools", "@/toolsets.jsonl", "-").Out))
	require.Equal(t, plain, from("stdin", exec(t, dir, z.String(), "check", "-", "-tools", "@/toolsets.jsonl").Out))
	require.Contains(t, exec(t, dir, mixed(), "check", "-").ErrOut, "stdin:1: tools_ref \"t\": no file of toolsets was given or found")
}

// However many goroutines look, what comes out is in the order of the input.
func TestOrder(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 500 {
		log.WriteString(clitest.Turn("m", fmt.Sprint("r", i), "add", strings.Repeat(" ", i%7*1000)+`{"x":1}`))
	}
	got := exec(t, clitest.DirWith(t, nil), log.String(), "check", "-json", "-tools", "@/toolsets.jsonl", "-")
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	require.Len(t, lines, 501)
	for i, line := range lines[:500] {
		require.Contains(t, line, fmt.Sprintf(`"line":%d,"id":"r%d",`, i+1, i))
	}
}

// What was read before an interrupt is reported, and the exit code says that
// it is not all.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	code := run(ctx, []string{"check", "-"}, strings.NewReader(mixed()), &out, &errOut)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errOut.String(), "interrupted")
	require.Contains(t, out.String(), "0 calls")
}

// Names that a model made up cannot write to the terminal.
func TestNamesAreCleaned(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 60)
	line := `{"source":"s","model":"m","tools_ref":"t","tool_calls":[{"name":"\u001b[2J\n","arguments":"{}"},{"name":"","arguments":"{}"},{"name":"` + long + `","arguments":"{}"}]}`
	got := exec(t, clitest.DirWith(t, nil), line, "check", "-tools", "@/toolsets.jsonl", "-")
	require.NotContains(t, got.Out, "\x1b")
	require.Contains(t, got.Out, `\u001b[2J\n`)
	require.Contains(t, got.Out, "(none)")
	require.Contains(t, got.Out, strings.Repeat("é", maxName-1)+"…  ")
}

// An interrupt does not wait for the rest of the input.
func TestInterruptWhileReading(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in, typing := io.Pipe()
	defer typing.Close()
	go func() {
		fmt.Fprint(typing, clitest.Turn("m", "r", "add", `{"x":1}`))
		cancel()
	}()
	var out, errOut bytes.Buffer
	require.Equal(t, cli.ExitFailed, run(ctx, []string{"check", "-"}, in, &out, &errOut))
	require.Contains(t, errOut.String(), "interrupted")
}

func TestOutputError(t *testing.T) {
	t.Parallel()
	var errOut bytes.Buffer
	code := run(t.Context(), []string{"check", "-"}, strings.NewReader(""), clitest.BrokenWriter{}, &errOut)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errOut.String(), "closed")
}

func TestBar(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[===============               ]  50%  12 calls", bar(50, 100, 12))
	require.Equal(t, "["+strings.Repeat("=", 30)+"] 100%  12 calls", bar(101, 100, 12))
	require.Equal(t, "12 calls", bar(50, 0, 12))
}
