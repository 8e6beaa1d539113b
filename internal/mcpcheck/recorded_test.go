package mcpcheck_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/middleware"
)

// recordings is beside the clone.
const recordings = "../../../shared/data/recorded"

// eachLine decodes the lines of a recording.
func eachLine[T any](t *testing.T, name string, use func(T)) {
	t.Helper()
	f, err := os.Open(filepath.Join(recordings, name))
	if err != nil {
		t.Skip("no recordings: ", err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var v T
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		use(v)
	}
	require.NoError(t, lines.Err())
}

// A recorded call of an MCP tool that is valid goes on as it was sent.
func TestRecordedCalls(t *testing.T) {
	t.Parallel()
	sets := map[string][]mcpcheck.Tool{}
	eachLine(t, "toolsets.jsonl.gz", func(v struct {
		Ref   string
		Tools []struct {
			Name       string
			Parameters json.RawMessage
		}
	}) {
		for _, tool := range v.Tools {
			sets[v.Ref] = append(sets[v.Ref], mcpcheck.Tool{Def: middleware.Tool{Name: tool.Name, Parameters: tool.Parameters, Destructive: true}})
		}
	})
	c := mcpcheck.New(mcpcheck.Options{PassUnread: true})
	count := map[mcpcheck.Action]int{}
	eachLine(t, "livemcpbench.jsonl.gz", func(v struct {
		ToolsRef  string                             `json:"tools_ref"`
		ToolCalls []struct{ Name, Arguments string } `json:"tool_calls"`
	}) {
		for _, call := range v.ToolCalls {
			sent := middleware.ToolCall{Name: call.Name, Arguments: call.Arguments}
			out, err := c.Call(t.Context(), sets[v.ToolsRef], sent)
			require.NoError(t, err)
			count[out.Action]++
			switch out.Action {
			case mcpcheck.Pass:
				require.Equal(t, sent, out.Call)
			case mcpcheck.Change:
				require.NotEmpty(t, out.Verdict.Changes)
				t.Logf("%s: %v", call.Name, out.Verdict.Changes)
			case mcpcheck.Refuse:
				t.Logf("%s: %v", call.Name, out.Verdict.Issues[0])
			}
		}
	})
	t.Logf("%d calls pass, %d are repaired, %d are refused", count[mcpcheck.Pass], count[mcpcheck.Change], count[mcpcheck.Refuse])
	require.Positive(t, count[mcpcheck.Pass])
}

// sample returns a value of a schema, as far as its type says.
func sample(s map[string]any) any {
	if all, ok := s["enum"].([]any); ok && len(all) > 0 {
		return all[0]
	}
	switch s["type"] {
	case "string":
		return "two words"
	case "integer":
		return 5
	case "number":
		return 2.5
	case "boolean":
		return true
	case "array":
		items, _ := s["items"].(map[string]any)
		return []any{sample(items)}
	case "object":
		out := map[string]any{}
		props, _ := s["properties"].(map[string]any)
		for k, p := range props {
			if p, ok := p.(map[string]any); ok {
				out[k] = sample(p)
			}
		}
		return out
	}
	return "?"
}

// asText returns v as a model writes it that sends arrays and numbers as text.
func asText(v any) any {
	switch v := v.(type) {
	case string, bool:
		return v
	default:
		b, _ := json.Marshal(v)
		return string(b)
	}
}

// upper changes the letter case and the separators of a name: owner_name becomes
// OwnerName.
func upper(name string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// The usual mistakes in calls of real tools become the call that was meant, or are
// refused. None becomes another call.
func TestMistakesInCallsOfRealTools(t *testing.T) {
	t.Parallel()
	c := mcpcheck.New(mcpcheck.Options{PassUnread: true})
	tried, repaired, refused := 0, 0, 0
	eachLine(t, "mcp_schemas.jsonl.gz", func(raw json.RawMessage) {
		tool, ok := mcpcheck.Read(string(raw))
		require.True(t, ok)
		var schema map[string]any
		require.NoError(t, json.Unmarshal(tool.Def.Parameters, &schema))
		good, isObject := sample(schema).(map[string]any)
		if !isObject {
			return
		}
		try := func(args map[string]any) mcpcheck.Outcome {
			b, err := json.Marshal(args)
			require.NoError(t, err)
			out, err := c.Call(t.Context(), []mcpcheck.Tool{tool}, middleware.ToolCall{Name: tool.Def.Name, Arguments: string(b)})
			require.NoError(t, err)
			return out
		}
		out := try(good)
		require.False(t, out.Verdict.Unchecked, "a real tool has a schema that can be used: %s", tool.Def.Name)
		if out.Action != mcpcheck.Pass {
			return // a pattern or a reference that sample does not know
		}
		want, err := json.Marshal(good)
		require.NoError(t, err)
		for key, value := range good {
			renamed, retyped := map[string]any{}, map[string]any{}
			for k, v := range good {
				renamed[k], retyped[k] = v, v
			}
			delete(renamed, key)
			renamed[upper(key)] = value
			retyped[key] = asText(value)
			for _, args := range []map[string]any{renamed, retyped} {
				out := try(args)
				switch out.Action {
				case mcpcheck.Pass: // the mistake is allowed by the schema
					continue
				case mcpcheck.Refuse:
					refused++
					require.Contains(t, out.Text, fmt.Sprintf("Tool '%s' argument validation failed", tool.Def.Name))
				case mcpcheck.Change:
					repaired++
					require.JSONEq(t, string(want), out.Call.Arguments)
				}
				tried++
			}
		}
	})
	t.Logf("%d mistakes: %d repaired, %d refused", tried, repaired, refused)
	require.Greater(t, repaired, tried*9/10)
}

func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"name":"a"}`: true, `{"name":"a","annotations":{"readOnlyHint":true}}`: false, `{"name":"a","annotations":{"destructiveHint":false}}`: false,
		`{"name":"a","annotations":{"destructiveHint":true}}`: true, `{"name":"a","annotations":{"readOnlyHint":true,"destructiveHint":true}}`: false,
		`{"name":"a","annotations":"x"}`: true,
	} {
		tool, ok := mcpcheck.Read(text)
		require.True(t, ok)
		require.Equal(t, want, tool.Def.Destructive, text)
	}
	for _, text := range []string{"", "[]", `{"name":1}`, `{"name":""}`, `{"name":"a"`} {
		_, ok := mcpcheck.Read(text)
		require.False(t, ok, text)
	}
}

// What cannot be validated to the end is refused, or passes with PassUnread.
func TestUnread(t *testing.T) {
	t.Parallel()
	tool := mcpcheck.Tool{Def: middleware.Tool{Name: "a", Parameters: json.RawMessage(`{"type":"object"}`)}}
	call := middleware.ToolCall{Name: "a", Arguments: strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)}
	out, err := mcpcheck.New(mcpcheck.Options{}).Call(t.Context(), []mcpcheck.Tool{tool}, call)
	require.NoError(t, err)
	require.Equal(t, mcpcheck.Refuse, out.Action)
	out, err = mcpcheck.New(mcpcheck.Options{PassUnread: true}).Call(t.Context(), []mcpcheck.Tool{tool}, call)
	require.NoError(t, err)
	require.Equal(t, mcpcheck.Outcome{Call: call, Tool: tool, Verdict: middleware.Verdict{Call: call, Unchecked: true}}, out)
}

func TestOutput(t *testing.T) {
	t.Parallel()
	c := mcpcheck.New(mcpcheck.Options{})
	tool := func(output string) mcpcheck.Tool {
		return mcpcheck.Tool{Def: middleware.Tool{Name: "t"}, Output: json.RawMessage(output)}
	}
	const schema = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`
	require.Nil(t, c.Notes(tool(schema), `{"a":1}`))
	require.Nil(t, c.Notes(tool(""), `{}`))
	require.Nil(t, c.Notes(tool(`{"type":"nonsense"}`), `{}`))
	require.Nil(t, c.Notes(tool(schema), `{`))
	require.Equal(t, []string{"tool t: the result violates its outputSchema in 1 places: /a (type)"}, c.Notes(tool(schema), `{"a":"1"}`))
}
