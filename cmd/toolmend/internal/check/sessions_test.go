package check

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// sessionLines returns the lines of a session of Claude Code in which a call fails twice, a
// person rejects another one, and the session is still being written.
func sessionLines() string {
	var b strings.Builder
	for n, result := range []string{"no", "no", "The user doesn't want to proceed with this tool use."} {
		id := string(rune('1' + n))
		b.WriteString(`{"type":"assistant","uuid":"u","sessionId":"s","message":{"id":"m` + id + `","role":"assistant","model":"c","content":[{"type":"tool_use","id":"t` + id + `","name":"Bash","input":{"command":"secret"}}]}}` + "\n")
		b.WriteString(`{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t` + id + `","is_error":true,"content":"` + result + `"}]}}` + "\n")
	}
	return b.String() + `{"type":"progress","sessionId":"s"}` + "\n" + `{"type":"assis`
}

func TestSessions(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"schema.json": `{"type":"object","properties":{"command":{"type":"number"}}}`})
	sub := filepath.Join(dir, "projects", "p")
	require.NoError(t, os.MkdirAll(sub, 0o700))
	for name, text := range map[string]string{"a.jsonl": sessionLines(), "resumed.jsonl": sessionLines(), "notes.md": "# x", "index.json": `{"version":1}`} {
		require.NoError(t, os.WriteFile(filepath.Join(sub, name), []byte(text), 0o600))
	}
	got := exec(t, dir, "", "check", "-html", "@/out.html", "@/projects")
	got.Require(t, cli.ExitFailed, "3 calls not validated: the log does not have the schemas of the tools. Name them with -tools: a file")
	require.Regexp(t, `(?m)^Bash +3 +2 +66.67% +1 +1$`, got.Out)
	require.Contains(t, got.Out, "3 lines skipped: repeats a call that was read before")
	require.Contains(t, got.Out, "2 lines skipped: of type progress")
	require.Contains(t, got.Out, "2 lines skipped: cut off, at the end of the file")
	require.NotContains(t, got.Out, "secret")
	page, err := os.ReadFile(filepath.Join(dir, "out.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "What became of the calls")
	require.NotContains(t, string(page), "secret")

	got = exec(t, dir, "", "check", "-html", "@/out.html", "-content", "-tools", "@/schema.json", "@/projects/p/a.jsonl")
	got.Require(t, cli.ExitInvalid, "")
	page, err = os.ReadFile(filepath.Join(dir, "out.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "secret")
	require.Contains(t, string(page), "The tool that fails most")
}

// A report has the tools of a session with the most errors.
func TestManyToolsOfASession(t *testing.T) {
	t.Parallel()
	var s sessions
	for n := range 60 {
		s.add(tally{tool: string(rune('A' + n)), outcome: recorded.OutcomeError})
	}
	section := s.section()
	require.Len(t, section.Rows, 50)
	require.Equal(t, []string{"10 more tools are left out."}, section.Text)
	require.Equal(t, []string{"A", "1", "1", "100.00%", ".", "."}, section.Rows[0])
}

// A file of which a part is in no form that is read is never validated in silence.
func TestUnreadRecords(t *testing.T) {
	t.Parallel()
	good := clitest.Turn("m", "r", "add", `{"x":1}`)
	dir := clitest.DirWith(t, map[string]string{
		"some":  good + `{"step":1,"llm":{"tool_calls":[{"name":"x"}]}}` + "\n",
		"notes": good + `{"step":1,"note":"x"}` + "\n",
		"bare":  good + bareCall,
		"partly": `{"timestamp":"T","type":"session_meta","payload":{"dynamic_tools":[{"name":"note","inputSchema":{"type":"object"}}]}}
{"timestamp":"T","type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{}","call_id":"c1"}}
{"timestamp":"T","type":"response_item","payload":{"type":"function_call","name":"note","arguments":"{}","call_id":"c2"}}`,
		"near":     `{"run_kind":"x","dotted_order":"1","trace_id":"t","inputs":{},"results":{}}`,
		"nameless": `{"messages":[{"role":"assistant","tool_calls":[{"id":"c","arguments":{}}]}],"tools":[]}`,
	})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "none"), 0o700))
	exec(t, dir, "", "check", "@/some").Require(t, cli.ExitFailed, "@/some: 1 record left out that may have calls, in no form that is read: the first such record has the members step, llm")
	exec(t, dir, "", "check", "@/bare").Require(t, cli.ExitFailed, "1 call not validated")
	exec(t, dir, "", "check", "@/partly").Require(t, cli.ExitFailed, "1 call not validated")
	exec(t, dir, "", "check", "-tool", "exec", "@/partly").Require(t, cli.ExitFailed, "1 call not validated")
	exec(t, dir, "", "check", "-tool", "note", "@/partly").Require(t, cli.ExitOK, "")
	exec(t, dir, "", "check", "-model", "other", "@/partly").Require(t, cli.ExitOK, "no tool call was found")
	exec(t, dir, "", "check", "@/notes").Require(t, cli.ExitOK, "")
	exec(t, dir, "", "check", "@/near").Require(t, cli.ExitFailed, "the members run_kind, dotted_order, trace_id, inputs, results")
	exec(t, dir, "", "check", "@/nameless").Require(t, cli.ExitFailed, "@/nameless:1: a tool call without a name")
	exec(t, dir, "", "check", "@/none").Require(t, cli.ExitFailed, "the directory has no file with an end that logs have")
}

// A directory is read with its links to files, and also by a link to it. A part that cannot be
// read is named, and the others are read.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"log": `{"tool_calls":[{"name":"add","arguments":"{}"}],"tools":[{"name":"add","parameters":{"type":"object"}}]}`})
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	require.NoError(t, os.MkdirAll(in("logs/closed"), 0o700))
	require.NoError(t, os.MkdirAll(in("unread"), 0o700))
	require.NoError(t, os.WriteFile(in("unread/a.json"), []byte(`{"step":1,"llm":{"tool_calls":[{"name":"x"}]}}`), 0o600))
	if err := errors.Join(os.Symlink(in("log"), in("logs/a.jsonl")), os.Symlink(in("logs"), in("link"))); err != nil {
		t.Skip("links cannot be made here: ", err)
	}
	for _, name := range []string{"@/logs", "@/link"} {
		got := exec(t, dir, "", "check", name)
		got.Require(t, cli.ExitOK, "")
		require.Contains(t, got.Out, "1 call in 1 file")
	}
	exec(t, dir, "", "check", "@/unread").Require(t, cli.ExitFailed, "1 record left out that may have calls")
	t.Run("closed", func(t *testing.T) {
		require.NoError(t, os.Chmod(in("logs/closed"), 0))
		t.Cleanup(func() { _ = os.Chmod(in("logs/closed"), 0o700) })
		if _, err := os.ReadDir(in("logs/closed")); err == nil {
			t.Skip("directories cannot be closed here")
		}
		got := exec(t, dir, "", "check", "@/logs")
		got.Require(t, cli.ExitFailed, "closed: permission denied")
		require.Contains(t, got.Out, "1 call in 1 file")
	})
}
