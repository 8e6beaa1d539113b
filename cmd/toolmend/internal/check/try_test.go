package check

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// tryDir has a tool in each form, a list of two, and files that have none.
func tryDir(t *testing.T) string {
	t.Helper()
	const schema = `{"type":"object","properties":{"file_path":{"type":"string"},"limit":{"type":"integer"}},"required":["file_path"],"additionalProperties":false}`
	return clitest.DirWith(t, map[string]string{
		"tool.json": "{\n  \"name\": \"read_file\",\n  \"parameters\": " + schema + "\n}\n",
		"openai":    `{"type":"function","function":{"name":"read_file","parameters":` + schema + `}}`,
		"anthropic": `[{"name":"read_file","input_schema":` + schema + `}]`,
		"gemini":    `{"functionDeclarations":[{"name":"read_file","parametersJsonSchema":` + schema + `}]}`,
		"mcp":       `{"tools":[{"name":"read_file","inputSchema":` + schema + `}]}`,
		"two":       `[{"name":"read_file","parameters":` + schema + `},{"name":"stop"}]`,
		"odd":       `{"name":"odd","parameters":{"type":"nonsense"}}`,
		"none":      `{"a":1}`, "empty": "",
	})
}

func runTry(t *testing.T, dir, stdin string, args ...string) clitest.Outcome {
	t.Helper()
	return clitest.Execute(t, Try, dir, stdin, args...)
}

func TestTryGolden(t *testing.T) {
	t.Parallel()
	dir := tryDir(t)
	var out strings.Builder
	for _, call := range []string{
		`{"file_path": "notes.txt"}`, `{"path": "notes.txt"}`, `{"file_path": "notes.txt", "limit": "3"}`, `{"file_path": "notes.txt"`,
		`{"file_path": 7, "limit": null}`, `{"name": "delete", "arguments": {}}`, "{\"\x1b[2J\": 1}",
	} {
		got := runTry(t, dir, "", "-tool", "@/tool.json", "-call", call)
		require.Empty(t, got.ErrOut)
		out.WriteString(got.Out + "\n---\n")
	}
	require.NotContains(t, out.String(), "\x1b")
	clitest.Golden(t, "try.txt", out.String())
	clitest.Golden(t, "try.json", runTry(t, dir, "", "-json", "-tool", "@/tool.json", "-call", `{"path": "notes.txt"}`).Out+
		runTry(t, dir, "", "-json", "-tool", "@/tool.json", "-call", `{"file_path": "notes.txt", "limit": null}`).Out)
}

func TestTryExitCodes(t *testing.T) {
	t.Parallel()
	dir := tryDir(t)
	const good, repaired, bad = `{"file_path":"x"}`, `{"file_path":"x","limit":"3"}`, `{}`
	for _, c := range []struct {
		args string // the value of -call is call
		call string
		code int
		out  string // a part of the output, or of stderr
	}{
		{"-tool @/tool.json", good, cli.ExitOK, "in the end: ok\nruns as: read_file {\"file_path\":\"x\"}"},
		{"-tool @/openai", good, cli.ExitOK, "in the end: ok"},
		{"-tool @/anthropic", good, cli.ExitOK, "in the end: ok"},
		{"-tool @/gemini", good, cli.ExitOK, "in the end: ok"},
		{"-tool @/mcp", good, cli.ExitOK, "in the end: ok"},
		{"-tool @/mcp", bad, cli.ExitInvalid, "in the end: invalid\n\nthe model would get:"},
		{"-tool @/tool.json", repaired, cli.ExitInvalid, "in the end: ok"},
		{"-tool @/tool.json -gate final", repaired, cli.ExitOK, "in the end: ok"},
		{"-tool @/tool.json -gate final -mend off", repaired, cli.ExitInvalid, "in the end: invalid"},
		{"-tool @/tool.json", `{"name":"read_file","arguments":"{\"file_path\":\"x\"}"}`, cli.ExitOK, "as sent: ok"},
		{"-tool @/tool.json", `{"type":"tool_use","id":"t","name":"read_file","input":{"file_path":"x"}}`, cli.ExitOK, "as sent: ok"},
		{"-tool @/tool.json", `{"functionCall":{"name":"read_file","args":{"file_path":"x"}}}`, cli.ExitOK, "as sent: ok"},
		{"-tool @/two", `{"function":{"name":"stop","arguments":"{}"}}`, cli.ExitOK, "as sent: no_schema"},
		{"-tool @/tool.json", `{"name":"gone","arguments":{}}`, cli.ExitInvalid, "as sent: unknown_tool"},
		{"-tool @/tool.json -unknown pass", `{"name":"gone","arguments":{}}`, cli.ExitOK, "as sent: no_schema"},
		{"-tool @/tool.json", ``, cli.ExitInvalid, "required property is missing"},
		{"-tool @/odd", `{}`, cli.ExitInvalid, "note: tool odd"},
		{"-tool @/two", good, cli.ExitFailed, "@/two has 2 tools: the call must name one"},
		{"-tool @/none", good, cli.ExitFailed, "@/none:1: neither tools"},
		{"-tool @/empty", good, cli.ExitFailed, "@/empty has no tool"},
		{"-tool @/missing", good, cli.ExitFailed, "no such file"},
		{"-mend all", good, cli.ExitFailed, "no -tool FILE"},
		{"-tool @/tool.json -mend some", good, cli.ExitFailed, "-mend is off, default or all"},
		{"-tool @/tool.json more", good, cli.ExitFailed, `there is no argument "more"`},
		{"-tool @/tool.json -what", good, cli.ExitFailed, "unknown flag --what"},
	} {
		t.Run(c.args+" "+c.call, func(t *testing.T) {
			t.Parallel()
			got := runTry(t, dir, "", append([]string{"-call", c.call}, strings.Fields(c.args)...)...)
			require.Equal(t, c.code, got.Code, got.ErrOut)
			require.Contains(t, got.Out+got.ErrOut, c.out)
			piped := runTry(t, dir, c.call+"\n", append([]string{"-call", "-"}, strings.Fields(c.args)...)...)
			require.Equal(t, got, piped, "from standard input")
		})
	}
	runTry(t, dir, "", "-tool", "@/tool.json").Require(t, cli.ExitFailed, "no -call JSON")
	var errOut bytes.Buffer
	require.Equal(t, cli.ExitFailed, Try(t.Context(), []string{"-tool", dir + "/tool.json", "-call", good}, nil, clitest.BrokenWriter{}, &errOut))
	require.Contains(t, errOut.String(), "toolmend try: ")
}
