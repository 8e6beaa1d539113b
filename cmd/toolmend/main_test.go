package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const toolsetsFile = `{"ref":"t","source":"s","tools":[
{"name":"add","parameters":{"type":"object","properties":{"x":{"type":"integer"},"note":{"type":"string"}},"required":["x"]}},
{"name":"free","parameters":null},
{"name":"odd","parameters":{"type":"nonsense"}}]}`

// turn is a recorded line. Each call is a name and the arguments' text.
func turn(model, id string, nameArgs ...string) string {
	var calls []string
	for i := 0; i < len(nameArgs); i += 2 {
		calls = append(calls, fmt.Sprintf(`{"id":"c%d","name":%q,"arguments":%q}`, i/2, nameArgs[i], nameArgs[i+1]))
	}
	return fmt.Sprintf(`{"source":"s","model":%q,"id":%q,"tools_ref":"t","tool_calls":[%s]}`+"\n", model, id, strings.Join(calls, ","))
}

// mixed is a log with every kind of line.
func mixed() string {
	return turn("small", "r1", "add", `{"x":1}`, "add", `{"x":"1"}`, "add", `{"note":null,"x":1}`) +
		`{"source":"s","error":"boom"}` + "\n" +
		turn("small", "r2", "add", `{"x":1`, "sub", `{}`, "add", `[1]`) +
		turn("large", "r3", "free", `{"any":[]}`, "odd", `{}`, "add", ``, "add", `{"x":1,"x":2}`) +
		turn("large", "r4", "add", `{"x":3}`) +
		`{"id":"e1","request":{"model":"gpt","tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]},` +
		`"response":"{\"choices\":[{\"finish_reason\":\"length\",\"message\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"add\",\"arguments\":\"{}\"}},` +
		`{\"id\":\"b\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"x\"}}]}}]}"}` + "\n"
}

// dirWith makes a directory of files; toolsets.jsonl is always one of them.
func dirWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	sets := strings.ReplaceAll(toolsetsFile, "\n", "")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "toolsets.jsonl"), []byte(sets), 0o600))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

type outcome struct {
	code        int
	out, errOut string
}

// exec runs the program; @ in args is dir, and dir in the output is @.
func exec(t *testing.T, dir, stdin string, args ...string) outcome {
	t.Helper()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "@", dir)
	}
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &out, &errOut)
	hide := func(b *bytes.Buffer) string { return strings.ReplaceAll(b.String(), dir, "@") }
	return outcome{code, hide(&out), hide(&errOut)}
}

// elsewhere matches words that other packages choose, and test: messages, and
// a note to the end of its line.
var elsewhere = regexp.MustCompile(`("message":)"(?:\\.|[^"\\])*"|(tool odd).*`)

func golden(t *testing.T, name, got string) {
	t.Helper()
	got = elsewhere.ReplaceAllString(got, "$1$2…")
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestGolden(t *testing.T) {
	t.Parallel()
	dir := dirWith(t, map[string]string{"log.jsonl": mixed()})
	for name, args := range map[string][]string{
		"table.txt":     {"check", "@/log.jsonl"},
		"example.txt":   {"check", filepath.FromSlash("../../examples/check/calls.jsonl")}, // README's
		"top.txt":       {"check", "-top", "1", "-strip", "off", "@/log.jsonl"},
		"calls.jsonl":   {"check", "-json", "@/log.jsonl"},
		"help.txt":      {"help"},
		"checkhelp.txt": {"check", "-h"},
		"servehelp.txt": {"help", "serve"},
		"envhelp.txt":   {"env", "-h"},
		"runhelp.txt":   {"help", "run"},
		"mcphelp.txt":   {"help", "mcp"},
		"linthelp.txt":  {"help", "lint"},
		"viewhelp.txt":  {"help", "view"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := exec(t, dir, "", args...)
			require.Empty(t, got.errOut)
			golden(t, name, got.out)
		})
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	good, bad := turn("m", "r", "add", `{"x":1}`), turn("m", "r", "add", `{"x":"one"}`)
	dir := dirWith(t, map[string]string{
		"good": good, "bad": bad, "free": turn("m", "r", "free", `{}`), "odd": turn("m", "r", "odd", `{}`),
		"null": turn("m", "r", "add", `{"x":1,"note":null}`), "broken": bad + "{\n" + good, "empty": "", "unknown": turn("m", "r", "sub", `{}`),
		"nosets": "{}", "array": "[\n" + good + ",\n" + bad + "]",
	})
	for _, c := range []struct {
		args string
		code int
		err  string // a part of what stderr says; "": nothing
	}{
		{"check @/good", exitOK, ""},
		{"check @/free", exitOK, ""},
		{"check @/empty", exitOK, "no tool call was found"},
		{"check @/bad", exitInvalid, ""},
		{"check @/odd", exitInvalid, ""},
		{"check @/null", exitInvalid, ""}, // as sent counts, whatever stripping does
		{"check @/unknown", exitInvalid, ""},
		{"check -unknown pass @/unknown", exitOK, ""},
		{"check @/good @/bad", exitInvalid, ""},
		{"check -model other @/bad", exitOK, "no tool call was found"},
		{"check -model M @/bad", exitInvalid, ""},
		{"check -tool sub @/bad", exitOK, "no tool call was found"},
		{"check @/broken", exitFailed, "@/broken:2: not JSON"},
		{"check @/missing @/bad", exitFailed, "toolmend check: open @/missing: no such file"},
		{"check -tools @/missing @/good", exitFailed, "no such file"},
		{"check -tools @/nosets @/good", exitFailed, "@/nosets:1: a toolset without a ref"},
		{"check", exitFailed, "no FILE"},
		{"check @/good -strip some", exitFailed, `-strip: must be one of "all", "off", "optional", "when-invalid", got "some"`},
		{"check -unknown maybe @/good", exitFailed, "-unknown is reject or pass"},
		{"check -gate final @/null", exitOK, ""},
		{"check -gate final @/bad", exitInvalid, ""},
		{"check -gate both @/good", exitFailed, "-gate is sent or final"},
		{"check @/array", exitInvalid, ""},
		{"check -top -1 @/good", exitFailed, "-top is 0 or more"},
		{"check -- @/good @/bad", exitInvalid, ""},
		{"check @/good -- @/good -json", exitFailed, "-json: no such file"},
		{"check -- -strip", exitFailed, "-strip: no such file"},
		{"check -- --", exitFailed, "--: no such file"},
		{"check @/good --", exitOK, ""},
		{"check -model -- @/bad -model m", exitInvalid, ""}, // this one is a value
		{"check -what @/good", exitFailed, "unknown flag --what"},
		{"help", exitOK, ""},
		{"help check", exitOK, ""},
		{"", exitFailed, "usage:"},
		{"mend", exitFailed, `unknown command "mend"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			got := exec(t, dir, "", strings.Fields(c.args)...)
			require.Equal(t, c.code, got.code, got.errOut)
			if c.err == "" {
				require.Empty(t, got.errOut)
			} else {
				require.Contains(t, got.errOut, c.err)
			}
		})
	}
}

// A bad line is named, and those around it count.
func TestBadLines(t *testing.T) {
	t.Parallel()
	dir := dirWith(t, map[string]string{"log": turn("m", "r1", "add", `{"x":1}`) + "\n{\n" + `{"tools_ref":"lost","tool_calls":[{"name":"x"}]}` + "\n" + turn("m", "r2", "add", `{"x":2}`)})
	got := exec(t, dir, "", "check", "@/log")
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, "@/log:3: not JSON: unexpected end of JSON input (at byte 1)\n@/log:4: tools_ref \"lost\" is not in @/toolsets.jsonl\n", got.errOut)
	require.Contains(t, got.out, "2 turns, 2 calls in 1 file: 0 not valid as sent")
	require.Contains(t, got.out, "2 not read")
}

func TestManyBadLines(t *testing.T) {
	t.Parallel()
	got := exec(t, dirWith(t, nil), strings.Repeat("{x\n", 93), "check", "-")
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, 6, strings.Count(got.errOut, "\n"))
	require.Contains(t, got.errOut, "stdin: and 88 more lines that could not be read")
	require.Contains(t, got.out, "93 not read")

	files, args := map[string]string{}, []string{"check"}
	for i := range 20 {
		name := fmt.Sprint("log", i)
		files[name] = strings.Repeat("{x\n", 7)
		args = append(args, "@/"+name)
	}
	got = exec(t, dirWith(t, files), "", args...)
	require.Equal(t, maxComplaints+1, strings.Count(got.errOut, "\n"))
	require.Contains(t, got.errOut, "and 20 more such lines")
}

func TestGzipAndStdin(t *testing.T) {
	t.Parallel()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write([]byte(mixed()))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	dir := dirWith(t, map[string]string{"log": mixed(), "zipped.txt": z.String()})

	from := func(name, out string) string { return strings.ReplaceAll(out, "\n"+name+":", "\n@/log:") }
	plain := exec(t, dir, "", "check", "@/log").out
	require.Equal(t, plain, from("@/zipped.txt", exec(t, dir, "", "check", "@/zipped.txt").out))
	require.Equal(t, plain, from("stdin", exec(t, dir, mixed(), "check", "-tools", "@/toolsets.jsonl", "-").out))
	require.Equal(t, plain, from("stdin", exec(t, dir, z.String(), "check", "-", "-tools", "@/toolsets.jsonl").out))
	require.Contains(t, exec(t, dir, mixed(), "check", "-").errOut, "stdin:1: tools_ref \"t\": no file of toolsets was given or found")
}

// However many goroutines look, what comes out is in the order of the input.
func TestOrder(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 500 {
		log.WriteString(turn("m", fmt.Sprint("r", i), "add", strings.Repeat(" ", i%7*1000)+`{"x":1}`))
	}
	got := exec(t, dirWith(t, nil), log.String(), "check", "-json", "-tools", "@/toolsets.jsonl", "-")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
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
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut.String(), "interrupted")
	require.Contains(t, out.String(), "0 calls")
}

// Names that a model made up cannot write to the terminal.
func TestNamesAreCleaned(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 60)
	line := `{"source":"s","model":"m","tools_ref":"t","tool_calls":[{"name":"\u001b[2J\n","arguments":"{}"},{"name":"","arguments":"{}"},{"name":"` + long + `","arguments":"{}"}]}`
	got := exec(t, dirWith(t, nil), line, "check", "-tools", "@/toolsets.jsonl", "-")
	require.NotContains(t, got.out, "\x1b")
	require.Contains(t, got.out, "\uFFFD[2J\uFFFD")
	require.Contains(t, got.out, "(none)")
	require.Contains(t, got.out, strings.Repeat("é", maxName-1)+"…  ")
}

// An interrupt does not wait for the rest of the input.
func TestInterruptWhileReading(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in, typing := io.Pipe()
	defer typing.Close()
	go func() {
		fmt.Fprint(typing, turn("m", "r", "add", `{"x":1}`))
		cancel()
	}()
	var out, errOut bytes.Buffer
	require.Equal(t, exitFailed, run(ctx, []string{"check", "-"}, in, &out, &errOut))
	require.Contains(t, errOut.String(), "interrupted")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestOutputError(t *testing.T) {
	t.Parallel()
	var errOut bytes.Buffer
	code := run(t.Context(), []string{"check", "-"}, strings.NewReader(""), brokenWriter{}, &errOut)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut.String(), "closed")
}

func TestBar(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[===============               ]  50 %  12 calls", bar(50, 100, 12))
	require.Equal(t, "["+strings.Repeat("=", 30)+"] 100 %  12 calls", bar(101, 100, 12))
	require.Equal(t, "12 calls", bar(50, 0, 12))
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "-version", "--version"} {
		got := exec(t, t.TempDir(), "", arg)
		require.Equal(t, exitOK, got.code)
		require.Regexp(t, `^toolmend \S+ go\S+ \S+/\S+\n$`, got.out)
	}
}
