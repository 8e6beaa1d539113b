package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	dir := dirWith(t, map[string]string{
		"good": goodTool, "bad": badTool, "odd": oddTool, "broken": goodTool + "\n{", "empty": "", "gz": z.String(), "cut": z.String()[:len(z.String())-9],
		"log": turn("m", "r", "add", `{"x":"a"}`) + turn("m", "r", "add", `{}`), "badlog": "{\n", "lost": strings.ReplaceAll(turn("m", "r", "add", `{}`), `"t"`, `"u"`),
	})
	for _, c := range []struct {
		args string
		code int
		say  string // a part of the output or of stderr
	}{
		{"lint @/good", exitOK, "1 tool: 0 errors, 0 warnings, 0 notes"},
		{"lint @/odd", exitOK, "1 tool: 0 errors, 1 warning, 0 notes"},
		{"lint @/bad", exitInvalid, `@/bad:1: error: tool add: refused by Anthropic: "type" at the top of the schema must be "object", got "string" [root-type] (/input_schema)`},
		{"lint @/gz", exitInvalid, "root-type"},
		{"lint @/good @/bad", exitInvalid, "2 tools: 1 error"},
		{"lint -for openai,gemini @/bad", exitInvalid, "refused by OpenAI and Gemini"},
		{"lint -format json @/bad", exitInvalid, `{"rule":"root-type","level":"error","file":"@/bad","line":1,`},
		{"lint -format github @/bad", exitInvalid, "::error file=@/bad,line=1,"},
		{"lint -format sarif @/bad", exitInvalid, `"version": "2.1.0"`},
		{"lint -format sarif @/good", exitOK, `"results": []`},
		{"lint -calls @/log @/good", exitOK, `values-refused`},
		{"lint -calls @/log -tools @/toolsets.jsonl @/good", exitOK, `2 of 2 recorded calls (100.0 %)`},
		{"lint @/broken", exitFailed, "@/broken:2: cannot be read"},
		{"lint @/broken @/bad", exitFailed, "root-type"}, // what can be read is checked
		{"lint @/empty", exitFailed, "@/empty:1: cannot be read"},
		{"lint @/cut", exitFailed, "unexpected EOF"},
		{"lint @/missing @/bad", exitFailed, "no such file"},
		{"lint -calls @/missing @/good", exitFailed, "no such file"},
		{"lint -calls @/badlog @/good", exitFailed, "badlog:1"},
		{"lint -calls @/lost @/good", exitFailed, `tools_ref "u" is not in`},
		{"lint -calls @/log -tools @/missing @/good", exitFailed, "no such file"},
		{"lint -tools @/toolsets.jsonl @/good", exitFailed, "-tools needs -calls"},
		{"lint -for cohere @/good", exitFailed, `a provider is openai, anthropic or gemini, not "cohere"`},
		{"lint -format html @/good", exitFailed, "-format is text, json, github or sarif"},
		{"lint -what @/good", exitFailed, "unknown flag --what"},
		{"lint", exitFailed, "no TOOLS"},
		{"lint -- @/good", exitOK, "1 tool"},
		{"lint -h", exitOK, "usage: toolmend lint"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			got := exec(t, dir, "", strings.Fields(c.args)...)
			require.Equal(t, c.code, got.code, got.out+got.errOut)
			require.Contains(t, got.out+got.errOut, c.say)
		})
	}
	got := exec(t, dir, badTool, "lint", "-")
	require.Equal(t, exitInvalid, got.code)
	require.Contains(t, got.out, "stdin:1: error")
	got = exec(t, dir, z.String(), "lint", "-")
	require.Equal(t, exitInvalid, got.code)
}

// An interrupt ends the reading of a log, and the exit code says so.
func TestLintInterrupt(t *testing.T) {
	t.Parallel()
	dir := dirWith(t, map[string]string{"good": goodTool, "log": strings.Repeat(turn("m", "r", "add", `{}`), 10)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	require.Equal(t, exitFailed, run(ctx, []string{"lint", "-calls", dir + "/log", dir + "/good"}, strings.NewReader(""), &out, &errOut))
	require.Contains(t, errOut.String(), "canceled")
}

// TestLintOutputError holds the exit code if nothing can be written.
func TestLintOutputError(t *testing.T) {
	t.Parallel()
	var errOut bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"lint", "-"}, strings.NewReader(badTool), brokenWriter{}, &errOut))
	require.Contains(t, errOut.String(), "closed")
}
