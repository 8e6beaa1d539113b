package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/strip"
)

const (
	liveTools = `{"ref":"t","source":"made-up","tools":[
{"name":"stay","description":"book a room","parameters":{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer"},"note":{"type":"string"}},"required":["city","nights"]}},
{"name":"open","parameters":{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer"}}}},
{"name":"unknown_form","parameters":{"type":"object","properties":{"city":{"type":["string","null"]}},"required":["city"]}}]}`
	liveTurns = `
{"context":"right","tool_calls":[{"name":"stay","arguments":"{\"city\": \"Rome\", \"nights\": 2, \"note\": \"a quiet room, if there is any left\"}"}],"expected":{"stay":{"city":["Rome"],"nights":[2],"note":["a quiet room, if there is any left",""]}}}
{"context":"broken","tool_calls":[{"name":"stay","arguments":"{\"city\": \"Rome\", \"nights\": 1 + 1}"}],"expected":{"stay":{"city":["Rome"],"nights":[2],"note":[""]}}}
{"context":"refused","tool_calls":[{"name":"stay","arguments":"{\"city\": \"Rome\", \"nights\": \"two\"}"}],"expected":{"stay":{"city":["Rome"],"nights":[2],"note":[""]}}}
{"context":"refused","tool_calls":[{"name":"stay","arguments":"{\"city\": \"Rome\", \"nights\": \"2 nights\"}"}],"expected":{"stay":{"city":["Rome"],"nights":[2],"note":[""]}}}
{"context":"repaired","tool_calls":[{"name":"stay","arguments":"{\"city\": \"Rome\", \"nights\": 2,}"}],"expected":{"stay":{"city":["Rome"],"nights":[2],"note":[""]}}}
{"context":"nothing whole","tool_calls":[{"name":"stay","arguments":"{\"city\": \"Rome"}],"expected":{"stay":{"city":["Rome"],"nights":[2],"note":[""]}}}
{"context":"long […20 more]","tool_calls":[{"name":"stay","arguments":"{\"city\": \"Rome\", \"nights\": \"two\"}"}],"expected":{"stay":{"city":["Rome"],"nights":[2],"note":[""]}}}
{"context":"no truth","tool_calls":[{"name":"stay","arguments":"{\"city\": \"Rome\", \"nights\": \"two\"}"}]}
{"context":"{} is valid","tool_calls":[{"name":"open","arguments":"{\"city\": \"Rome\", \"nights\": \"two\"}"}],"expected":{"open":{"city":["Rome"],"nights":[2]}}}
`
)

func liveData(t *testing.T) string {
	dir := t.TempDir()
	sets := strings.ReplaceAll(liveTools, "\n", "")
	turns := strings.ReplaceAll(liveTurns, `{"context"`, `{"source":"made-up","model":"m","tools_ref":"t","context"`)
	// The third tool cannot be written in a line; a tool set of its own keeps it apart.
	sets = strings.Replace(sets, `,{"name":"unknown_form"`, `]}`+"\n"+`{"ref":"u","source":"made-up","tools":[{"name":"unknown_form"`, 1)
	turns += `{"source":"made-up","model":"m","tools_ref":"u","context":"no line","tool_calls":[{"name":"unknown_form","arguments":"{\"city\": 1}"}],"expected":{"unknown_form":{"city":["Rome"]}}}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "toolsets.jsonl"), []byte(sets), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "made-up.jsonl"), []byte(turns), 0o600))
	return dir
}

func TestLiveCases(t *testing.T) {
	t.Parallel()
	dir := liveData(t)
	j, standard := newChecker(), newSetup("", strip.Optional, mend.Default())
	cases, err := liveCases(j, standard, dir, 10)
	require.NoError(t, err)
	var got []string
	for _, c := range cases {
		got = append(got, kindNames[c.kind]+": "+c.question)
	}
	require.Equal(t, []string{
		"recorded, broken: broken", "recorded, cut here: right", "the model's own, broken or cut: right", "recorded, refused by the schema: refused",
	}, got, "one for each question; nothing that is repaired, that cannot be compared, or whose forms are the same")
	require.True(t, strings.HasPrefix(cases[2].call.Arguments, cases[1].call.Arguments))
	require.Less(t, len(cases[1].call.Arguments), len(cases[2].call.Arguments))
}

// A model that copies the echo, and completes it if it has the city.
func TestCompareLive(t *testing.T) {
	t.Parallel()
	const right = `stay", "arguments": {"city": "Rome", "nights": 2}}`
	var prompts []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/props" {
			_, _ = io.WriteString(w, `{"model_path": "/models/made-up.gguf"}`)
			return
		}
		var asked struct{ Prompt string }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		_, asked.Prompt, _ = strings.Cut(asked.Prompt, shots)
		prompts = append(prompts, asked.Prompt)
		answer := map[string]any{"content": `stay", "arguments": {}}`}
		switch {
		case !strings.Contains(asked.Prompt, "<tool_response>"):
			answer = map[string]any{"content": `stay", "arguments": {"city": "Rome", "nights": `, "tokens_predicted": maxAnswer}
		case strings.Contains(asked.Prompt, "try again"):
			answer = map[string]any{"content": `stay", "arguments": {"city": "Rome", "nights": "two"}}`}
		case strings.Contains(asked.Prompt, `"arguments": {"city": "Rome"`):
			answer = map[string]any{"content": right}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()

	var out bytes.Buffer
	require.NoError(t, run([]string{"-data", liveData(t), "-live", server.URL + "/", "-cases", "10"}, &out))
	require.Contains(t, out.String(), "made-up.gguf, 1 first answers")
	for _, kind := range []string{"recorded, broken", "recorded, cut here", "the model's own, broken or cut", "recorded, refused by the schema"} {
		require.Contains(t, out.String(), "| "+kind+" | 1 | 1, 0 | 1 : 0 | 1 | 1, 0 | 1 : 0 | 1 |")
	}
	require.Contains(t, out.String(), "| **all three** | 3 | 3, 0 | 3 : 0 | 0.25 | 3, 0 | 3 : 0 | 0.25 | 1, 3 |", "two members of the cut call are enough")
	require.Contains(t, out.String(), "| of these, the members alone are valid | 1 |")
	require.Len(t, prompts, 9)
	all := strings.Join(prompts, "")
	require.Contains(t, all, "stay: book a room\n- city (string, required): \n- nights (integer, required): \n- note (string): \n")
	require.Contains(t, all, "the answer reached its length limit", "both cut calls are said to be cut")

	server.Close()
	require.ErrorContains(t, run([]string{"-data", liveData(t), "-live", server.URL}, &out), "start one: llama-server")
}

func TestWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		`f", "arguments": {"a": 1}}` + "\n":  {"f", `{"a": 1}`},
		`f", "arguments": {'a': 1}}`:         {"f", `{'a': 1}`},
		`f", "arguments": {"a": 1}, "b": 2}`: {"f", `{"a": 1}`},
		`f", "arguments": {"a": "Ro`:         {"f", `{"a": "Ro`},
		`f`:                                  {"f", ""},
	} {
		c := written(text)
		require.Equal(t, want, [2]string{c.Name, c.Arguments}, text)
	}
}

func TestSignTest(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 0.00390625, signTest(9, 0), 1e-9)
	require.InDelta(t, 0.109375, signTest(2, 8), 1e-9)
	require.InDelta(t, 1, signTest(3, 3), 1e-9)
	require.InDelta(t, 1, signTest(0, 0), 1e-9)
}
