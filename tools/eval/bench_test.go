package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBench: calls that are right, in part right, missed, and made where there is
// none.
func TestBench(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const tools = `[{"name": "stay", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}, {"name": "go"}]`
	for id, c := range map[string]struct{ text, tag, gold string }{
		"right":    {`{"name": "stay", "arguments": {"city": "Rome"}}`, "json_in_content", `{"type": "tool_call", "name": "stay", "arguments": {"city": "Rome"}}`},
		"other":    {`{"name": "stay", "arguments": {"city": "Oslo"}}`, "json_in_content", `{"type": "tool_call", "name": "stay", "arguments": {"city": "Rome"}}`},
		"wrong":    {`{"name": "go", "arguments": {}}`, "json_in_content", `{"type": "tool_call", "name": "stay", "arguments": {"city": "Rome"}}`},
		"missed":   {`I stay in Rome.`, "json_in_content", `{"type": "tool_call", "name": "stay", "arguments": {"city": "Rome"}}`},
		"invalid":  {`{"name": "stay", "arguments": {}}`, "missing_required_args", `{"type": "no_tool"}`},
		"re-asked": {`{"name": "stay", "arguments": {"city": ""}}`, "missing_required_args", `{"type": "no_tool"}`},
		"guessed":  {`{"name": "go", "arguments": {}}`, "ambiguous_tool_choice", `{"type": "no_tool"}`},
		"invented": {`{"name": "go", "arguments": {}}`, "plain_answer", `{"type": "no_tool"}`},
	} {
		text := fmt.Sprintf(`{"id": %q, "request_tools": %s, "raw_output": %q, "taxonomy": [%q], "gold": %s}`, id, tools, c.text, c.tag, c.gold)
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(text), 0o600))
	}
	var out bytes.Buffer
	require.NoError(t, run([]string{"-bench", dir, "-wrong"}, &out))
	require.Contains(t, out.String(), "| 8 | 1 | 0.400 | 0.500 | 25.0% | 2 of 4 |\n")
	for _, id := range []string{"other", "wrong", "missed", "guessed", "invented"} {
		require.Contains(t, out.String(), id+", [")
	}
	require.NotContains(t, out.String(), "right, [")
	require.ErrorContains(t, run([]string{"-bench", t.TempDir()}, &out), "no cases")
}
