package check

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
	"github.com/toolmend/toolmend/internal/report"
)

// hintTools are tools that models get wrong.
const hintTools = `[
{"name":"get","parameters":{"type":"object","properties":{"url":{"type":"string","default":"https://x"},"n":{"type":"integer"}},"required":["url"]}},
{"name":"put","parameters":{"type":"object","properties":{"mode":{"const":"w"},"n":{"type":"integer"}},"required":["mode"]}},
{"name":"read","parameters":{"type":"object","properties":{"file_path":{"type":"string"},"text":{"type":"string"}},"required":["file_path"],"additionalProperties":false}},
{"name":"tags","parameters":{"type":"object","properties":{"list":{"type":"array","items":{"type":"string"}}},"required":["list"]}},
{"name":"odd","parameters":{"type":"nonsense"}}]`

// recordedTurn is a line with these tools. members are further members of the line.
func recordedTurn(model, members string, nameArgs ...string) string {
	line := clitest.Turn(model, "r", nameArgs...)
	return strings.Replace(line, `"tools_ref":"t"`, members+`"tools":`+strings.ReplaceAll(hintTools, "\n", ""), 1)
}

func hintLog() string {
	get, read := `{"n":1}`, `{"path":"a"}`
	return recordedTurn("small", "", "get", get, "get", get, "put", `{}`, "get", `{"url":"u"}`) +
		recordedTurn("small", "", "read", read, "read", read, "read", `{"file_path":"a"}`, "read", `{"x":"a"}`) +
		recordedTurn("large", "", "read", read, "odd", `{}`, "odd", `{}`, "sub", `{}`, "tags", `{"list":"sea"}`) +
		recordedTurn("large", `"finish_reason":"length",`, "get", `{"u`)
}

// TestHintsGolden holds the hints as text and as JSON.
func TestHintsGolden(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"log": hintLog(), "good": recordedTurn("m", "", "get", `{"url":"u"}`)})
	text := exec(t, dir, "", "check", "-hints", "@/log").Out
	clitest.Golden(t, "hints.txt", text[strings.Index(text, "HINTS"):])
	var s struct{ Hints json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(lastLine(exec(t, dir, "", "check", "-json", "-hints", "@/log").Out)), &s))
	clitest.Golden(t, "hints.json", strings.ReplaceAll(string(s.Hints), "},{", "},\n{")+"\n")

	require.Contains(t, exec(t, dir, "", "check", "-hints", "-top", "2", "@/log").Out, "\nand 8 more\n")
	require.Contains(t, exec(t, dir, "", "check", "-hints", "@/good").Out, "HINTS\nnone: no option that is off would help\n")
	require.NotContains(t, exec(t, dir, "", "check", "@/log").Out, "HINTS")
}

// TestHintsAreTried holds that a hint counts exactly the calls that are valid once
// its option is on, with the same flags.
func TestHintsAreTried(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"log": hintLog()})
	for _, c := range []struct {
		args   []string
		option string
		calls  int
	}{
		{[]string{"-mend", "default"}, "fill_defaults", 3},
		{[]string{"-mend", "default"}, "rename_close", 3},
		{[]string{"-mend", "default"}, "wrap", 1},
		{[]string{"-mend", "default"}, "strip all", 0},
		{[]string{"-mend", "off"}, "fill_defaults", 3},
		{[]string{"-mend", "off"}, "the default repairs", 0},
		{[]string{"-mend", "all"}, "fill_defaults", 0},
		{[]string{"-tool", "get"}, "fill_defaults", 2},
		{[]string{"-model", "large"}, "fill_defaults", 0},
	} {
		var s summaryJSON
		out := exec(t, dir, "", append([]string{"check", "-json", "-hints", "@/log"}, c.args...)...).Out
		require.NoError(t, json.Unmarshal([]byte(lastLine(out)), &s))
		calls := 0
		for _, h := range s.Hints {
			if h.Option == c.option && h.Tool != "" {
				calls += h.Calls
			}
		}
		require.Equal(t, c.calls, calls, "%v %s", c.args, c.option)
	}
	// The default repairs and strip modes are hints if they are off.
	out := exec(t, dir, recordedTurn("m", "", "get", `{"url":"u","n":"1"}`, "get", `{"url":"u","n":null}`), "check", "-mend", "off", "-strip", "off", "-hints", "-").Out
	require.Contains(t, out, `1 call  turn on the default repairs for tool get: repairs = ["default"]`)
	require.Contains(t, out, `1 call  turn on strip optional for tool get: strip = "optional"`)
}

// Undeclared tools are one hint, and calls without a name another.
func TestHintsOfUndeclaredTools(t *testing.T) {
	t.Parallel()
	log := recordedTurn("m", "", "a", `{}`, "b", `{}`, "b", `{}`, "", `{}`, "c", `{}`, "d", `{}`, "e", `{}`, "f", `{}`)
	out := exec(t, t.TempDir(), log, "check", "-hints", "-").Out
	require.Contains(t, out, "7 calls  6 tools are called and not declared, most often b (2), a (1), c (1), d (1), e (1): declare them")
	require.Contains(t, out, " 1 call  these calls have no name")
}

// Two properties that may each stand for the missing one are no hint.
func TestHintsAmbiguousAlias(t *testing.T) {
	t.Parallel()
	one, both := recordedTurn("m", "", "get", `{"a":"u"}`), recordedTurn("m", "", "get", `{"a":"u","b":"v"}`)
	require.Contains(t, exec(t, t.TempDir(), one+one, "check", "-hints", "-").Out, `m sends "a" for "url" in 100%`)
	require.NotContains(t, exec(t, t.TempDir(), both+both, "check", "-hints", "-").Out, "sends")
}

// TestHintSettings holds that every setting that a hint names is one of the gateway.
func TestHintSettings(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-"}, {"-mend", "off", "-strip", "off", "-"}} {
		s, err := parse(args)
		require.NoError(t, err)
		h := newHinter(s)
		require.NotEmpty(t, h.trials)
		for _, trial := range h.trials {
			file := filepath.Join(t.TempDir(), "toolmend.toml")
			text := "[[upstream]]\nurl = \"http://127.0.0.1:1\"\n[[upstream.tool]]\nname = \"get\"\n" + trial.hint.Setting + "\n"
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			got := exec(t, t.TempDir(), "", "serve", "--config", file, "--check-config")
			require.Equal(t, cli.ExitOK, got.Code, text+got.ErrOut)
		}
	}
}

// TestHintsOfRecording holds what re-asks cost, from the attempts that serve --record
// writes.
func TestHintsOfRecording(t *testing.T) {
	t.Parallel()
	attempt := func(n int, args string) string {
		line := recordedTurn("m", `"attempt":`+string(rune('0'+n))+`,"attempts":2,"duration_ms":1500,"usage":{"input":100,"output":20},`, "get", args)
		return strings.Replace(line, `"id":"r"`, `"id":"7-1/`+string(rune('0'+n))+`"`, 1)
	}
	got := exec(t, clitest.DirWith(t, map[string]string{"log": attempt(1, `{"n":1}`) + attempt(2, `{"url":"u"}`)}), "", "check", "-hints", "@/log")
	require.Contains(t, got.Out, "Invalid calls cost 1 further model call in 1 step: 100 tokens read and 20 written, 1.5 s.\n")
}

// TestSections holds that the HTML report has the hints, the measures and the
// comparison.
func TestSections(t *testing.T) {
	t.Parallel()
	dir := baselineDir(t)
	got := exec(t, dir, "", "check", "-hints", "-baseline", "@/base", "-html", "@/out.html", "@/worse")
	require.Equal(t, cli.ExitInvalid, got.Code, got.ErrOut)
	page, err := os.ReadFile(filepath.Join(dir, "out.html"))
	require.NoError(t, err)
	for _, part := range []string{"Compared with a baseline", "RISEN: by 8.00 points", "Hints", "Published measures", "OpenRouter tool call error rate"} {
		require.Contains(t, string(page), part)
	}
	got = exec(t, dir, "", "check", "-hints", "-format", "github", "@/worse")
	require.Contains(t, got.Out, "Published measures")
	got = exec(t, dir, "", "check", "-baseline", "@/base", "-format", "github", "@/worse")
	require.Equal(t, cli.ExitInvalid, got.Code)
	require.True(t, strings.HasPrefix(got.Out, "::error title=toolmend check -baseline::RISEN: by 8.00 points"), got.Out[:200])
}

func TestToolHints(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"enum": "chooses none", "const": "chooses none", "required": "not in the call under this name", "unknown_tool": "Declare the tool",
		"truncated": "Raise the limit", "pattern": "no single correction",
	} {
		s := toolHints(nil, "t", []report.FaultRow{{Code: "type", Pointer: "/n", Sent: 9}, {Code: code, Final: 2}})
		require.Contains(t, s.Text[0], want)
		require.Contains(t, s.Text[0], "(2 calls)")
	}
	require.Equal(t, []string{"No call to it stays invalid."}, toolHints(nil, "t", nil).Text)
	missing := []report.FaultRow{{Code: "required", Pointer: "/file_path", Final: 3}, {Code: "additionalProperties", Pointer: "/path", Final: 2}}
	require.Contains(t, toolHints(nil, "t", missing).Text[1], "not declared: /path.")
	require.Len(t, toolHints(nil, "t", missing[:1]).Text, 1)
}
