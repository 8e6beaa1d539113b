package lint_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

const (
	goodTool = `{"name":"add","input_schema":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}`
	badTool  = `{"name":"add","input_schema":{"type":"string"}}`
	oddTool  = `{"name":"add","input_schema":{"type":"object","properties":{"x":{"type":"object"}}}}`
)

// TestLintExitCodes holds that errors are exit code 1, warnings 0, and that what
// cannot be read is 2.
func TestLintExitCodes(t *testing.T) {
	t.Parallel()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write([]byte("[" + badTool + "]"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	dir := clitest.DirWith(t, map[string]string{
		"good": goodTool, "bad": badTool, "odd": oddTool, "broken": goodTool + "\n{", "empty": "", "binary": "\x00\x00", "gz": z.String(), "cut": z.String()[:len(z.String())-9],
		"log": clitest.Turn("m", "r", "add", `{"x":"a"}`) + clitest.Turn("m", "r", "add", `{}`), "badlog": "{\n", "lost": strings.ReplaceAll(clitest.Turn("m", "r", "add", `{}`), `"t"`, `"u"`),
	})
	for _, c := range []struct {
		args string
		code int
		say  string // a part of the output or of stderr
	}{
		{"lint @/good", cli.ExitOK, "1 tool: 0 errors, 0 warnings, 0 notes"},
		{"lint @/odd", cli.ExitOK, "1 tool: 0 errors, 1 warning, 0 notes"},
		{"lint @/bad", cli.ExitInvalid, `@/bad:1: error: tool add: refused by Anthropic: "type" at the top of the schema must be "object", got "string" [root-type] (/input_schema)`},
		{"lint @/gz", cli.ExitInvalid, "root-type"},
		{"lint @/good @/bad", cli.ExitInvalid, "2 tools: 1 error"},
		{"lint -for openai,gemini @/bad", cli.ExitInvalid, "refused by OpenAI and Gemini"},
		{"lint -format json @/bad", cli.ExitInvalid, `{"rule":"root-type","level":"error","file":"@/bad","line":1,`},
		{"lint -format github @/bad", cli.ExitInvalid, "::error file=@/bad,line=1,"},
		{"lint -format sarif @/bad", cli.ExitInvalid, `"version": "2.1.0"`},
		{"lint -format sarif @/good", cli.ExitOK, `"results": []`},
		{"lint -calls @/log @/good", cli.ExitOK, `values-refused`},
		{"lint -calls @/log -tools @/toolsets.jsonl @/good", cli.ExitOK, `2 of 2 recorded calls (100.0%)`},
		{"lint @/broken", cli.ExitFailed, "@/broken:2: cannot be read"},
		{"lint @/broken @/bad", cli.ExitFailed, "root-type"}, // what can be read is checked
		{"lint @/empty", cli.ExitFailed, "@/empty:1: cannot be read"},
		{"lint @/binary", cli.ExitFailed, "binary: is not JSON in UTF-8"},
		{"lint @/cut", cli.ExitFailed, "unexpected EOF"},
		{"lint @/missing @/bad", cli.ExitFailed, "no such file"},
		{"lint -calls @/missing @/good", cli.ExitFailed, "no such file"},
		{"lint -calls @/badlog @/good", cli.ExitFailed, "badlog:1"},
		{"lint -calls @/lost @/good", cli.ExitFailed, `tools_ref "u" is not in`},
		{"lint -calls @/log -tools @/missing @/good", cli.ExitFailed, "no such file"},
		{"lint -tools @/toolsets.jsonl @/good", cli.ExitFailed, "-tools needs -calls"},
		{"lint -for cohere @/good", cli.ExitFailed, `a provider is openai, anthropic or gemini, not "cohere"`},
		{"lint -format html @/good", cli.ExitFailed, "-format is text, json, github or sarif"},
		{"lint -what @/good", cli.ExitFailed, "unknown flag --what"},
		{"lint", cli.ExitFailed, "no TOOLS"},
		{"lint -- @/good", cli.ExitOK, "1 tool"},
		{"lint -h", cli.ExitOK, "usage: toolmend lint"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			got := exec(t, dir, "", strings.Fields(c.args)...)
			require.Equal(t, c.code, got.Code, got.Out+got.ErrOut)
			require.Contains(t, got.Out+got.ErrOut, c.say)
		})
	}
	got := exec(t, dir, badTool, "lint", "-")
	require.Equal(t, cli.ExitInvalid, got.Code)
	require.Contains(t, got.Out, "stdin:1: error")
	got = exec(t, dir, z.String(), "lint", "-")
	require.Equal(t, cli.ExitInvalid, got.Code)
}

// An interrupt ends the reading of a log, and the exit code says so.
func TestLintInterrupt(t *testing.T) {
	t.Parallel()
	dir := clitest.DirWith(t, map[string]string{"good": goodTool, "log": strings.Repeat(clitest.Turn("m", "r", "add", `{}`), 10)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	require.Equal(t, cli.ExitFailed, run(ctx, []string{"lint", "-calls", dir + "/log", dir + "/good"}, strings.NewReader(""), &out, &errOut))
	require.Contains(t, errOut.String(), "canceled")
}

// TestLintOutputError holds the exit code if nothing can be written.
func TestLintOutputError(t *testing.T) {
	t.Parallel()
	var errOut bytes.Buffer
	require.Equal(t, cli.ExitFailed, run(t.Context(), []string{"lint", "-"}, strings.NewReader(badTool), clitest.BrokenWriter{}, &errOut))
	require.Contains(t, errOut.String(), "closed")
}

// TestLintRefusesLargeFiles: a file that is too large is refused before it is read. The test is not
// parallel, as it counts what is allocated.
func TestLintRefusesLargeFiles(t *testing.T) {
	dir := clitest.DirWith(t, map[string]string{"large": goodTool})
	require.NoError(t, os.Truncate(filepath.Join(dir, "large"), 1<<30))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := exec(t, dir, "", "lint", "@/large")
	runtime.ReadMemStats(&after)
	require.Equal(t, cli.ExitFailed, got.Code)
	require.Contains(t, got.ErrOut, "large: more than 268435456 bytes")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
}
