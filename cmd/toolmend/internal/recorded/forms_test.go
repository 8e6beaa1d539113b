package recorded_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/middleware"
)

// examples is the directory of the examples of forms, which docs/reports/forms.md shows.
const examples = "../../../../examples/check/forms"

// form reads an example, with the file of its tools if there is one, and returns the turns of
// all lines.
func form(t *testing.T, name string) []recorded.Turn {
	t.Helper()
	var sets *recorded.Toolsets
	stem, _, _ := strings.Cut(name, ".")
	for _, end := range []string{".tools.json", ".input.jsonl"} {
		if tools := filepath.Join(examples, stem+end); exists(tools) {
			var err error
			sets, err = recorded.OpenToolsets(tools)
			require.NoError(t, err)
		}
	}
	return formWith(t, name, sets)
}

func formWith(t *testing.T, name string, sets *recorded.Toolsets) (out []recorded.Turn) {
	t.Helper()
	f, err := os.Open(filepath.Join(examples, name))
	require.NoError(t, err)
	defer f.Close()
	for line, err := range recorded.NewReader(name, f).All() {
		require.NoError(t, err)
		got, err := line.Turns(sets)
		if _, skipped := err.(recorded.Skipped); !skipped {
			require.NoError(t, err)
		}
		out = append(out, got...)
	}
	return out
}

// withoutSchemas are the examples that do not have the schemas of the tools.
var withoutSchemas = []string{
	"ai-sdk-ui.json", "ai-sdk.json", "atif.json", "autogen.json", "calls.json", "claude-code.jsonl", "cline.json", "copilot-chat.json", "copilot-cli.jsonl",
	"cursor.jsonl", "gemini-cli.json", "google-adk.json", "goose.jsonl", "haystack.json", "kimi.jsonl", "langchain.json", "llamaindex.json",
	"mini-swe-agent.json", "openai-agents.jsonl", "openai-evals.jsonl", "opencode.json", "openhands.json", "otel-tools.jsonl", "pi.jsonl",
	"pydantic-ai.json", "qwen-code.jsonl", "semantic-kernel.json", "swe-agent.traj", "tau-bench.json",
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// In each form the model made the same calls of the tool add: one with "x": 1.0, and in the
// next turn one with "x": "two".
func TestForms(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(examples)
	require.NoError(t, err)
	n := 0
	for _, file := range files {
		name := file.Name()
		if strings.Contains(name, ".tools.") || strings.Contains(name, ".input.") {
			continue
		}
		n++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := form(t, name)
			if slices.Contains(withoutSchemas, name) {
				require.True(t, got[0].NoTools)
				sets, err := recorded.OpenToolsets(filepath.Join(examples, "add.tools.json"))
				require.NoError(t, err)
				got = formWith(t, name, sets)
			}
			require.Len(t, got, 2)
			for i, arguments := range []string{`{"x": 1.0}`, `{"x": "two"}`} {
				require.Len(t, got[i].Calls, 1)
				require.Equal(t, "add", got[i].Calls[0].Name)
				require.Equal(t, arguments, got[i].Calls[0].Arguments)
				require.Equal(t, middleware.KindFunction, got[i].Calls[0].Kind)
				at := len(got[i].Tools) - 1
				require.GreaterOrEqual(t, at, 0, "the tools")
				require.Equal(t, "add", got[i].Tools[at].Name)
				require.JSONEq(t, `{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}`, string(got[i].Tools[at].Parameters))
				require.Nil(t, got[i].Tools[at].Native)
			}
		})
	}
	require.Equal(t, 68, n)
}

func TestMembersOfForms(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]recorded.Turn{
		"batch-openai.jsonl":    {ID: "batch_req_0", Model: "m-1", Finish: middleware.FinishToolCalls},
		"batch-anthropic.jsonl": {ID: "r0", Model: "m-1", Finish: middleware.FinishToolCalls},
		"batch-gemini.jsonl":    {ID: "r0", Model: "m-1", Finish: middleware.FinishToolCalls},
		"litellm.jsonl":         {ID: "chatcmpl-0", Model: "m", Finish: middleware.FinishToolCalls},
		"litellm-spend.jsonl":   {ID: "q0", Model: "openai/m", Finish: middleware.FinishToolCalls},
		"langfuse.jsonl":        {ID: "o0", Model: "m"},
		"langfuse-trace.json":   {ID: "o0", Model: "m"},
		"otel-spans.jsonl":      {Model: "m", Finish: middleware.FinishToolCalls},
		"anthropic.jsonl":       {Model: "m"},
		"chat.jsonl":            {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := form(t, name)[0]
			require.Equal(t, want, recorded.Turn{ID: got.ID, Model: got.Model, Finish: got.Finish})
		})
	}
}

// What a form lacks is an error or has a name; a log is never passed over in silence.
func TestFormsThatLackSomething(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, err string }{
		"unreadable conversation":   {`{"messages":[{"role":"assistant","tool_calls":"x"}],"tools":[]}`, "tool_calls is of kind string"},
		"unreadable answer":         {`{"type":"GENERATION","input":[],"output":{"generations":[]}}`, "in a format that is read"},
		"no calls: conversation":    {`{"messages":[{"role":"user","content":"tool_calls?"},{"role":"tool","tool_call_id":"c","content":"1"}],"tools":[]}`, "no tool calls"},
		"no calls: text":            {`{"type":"GENERATION","input":[],"output":"Hello."}`, "no tool calls"},
		"no calls: message":         {`{"type":"GENERATION","input":[],"output":{"role":"assistant","content":"Hello."}}`, "no tool calls"},
		"no calls: OpenTelemetry":   {`{"attributes":[{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"parts\":[{\"type\":\"text\"}]}]"}}]}`, "no tool calls"},
		"no answer: Langfuse":       {`{"type":"GENERATION","input":[],"output":null}`, "in no form that is read"},
		"no answer: batch":          {`{"custom_id":"r","response":null,"error":{}}`, "an error response"},
		"failed: batch":             {`{"custom_id":"r","response":{"status_code":500,"body":{}}}`, "an error response"},
		"failed: LiteLLM":           {`{"model_parameters":{},"response":{},"status":"failure"}`, "an error response"},
		"failed: Anthropic":         {`{"custom_id":"r","result":{"type":"expired"}}`, "an error response"},
		"no form: span":             {`{"type":"SPAN","input":{},"output":{}}`, "in no form that is read"},
		"no form: number":           {`{"data":[1,{"a":2}]}`, "in no form that is read"},
		"no form: input of a batch": {`{"custom_id":"r","method":"POST","url":"/v1/chat/completions","body":{"messages":[]}}`, "in no form that is read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := turns(t, c.text)
			require.Empty(t, got)
			require.ErrorContains(t, err, c.err)
		})
	}
}

// Calls of a log without the tools that the model had have the names of their tools alone.
func TestNoTools(t *testing.T) {
	t.Parallel()
	const call = `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"x","arguments":"{}"}}]}`
	for name, text := range map[string]string{
		"conversation":    `{"messages":[` + call + `]}`,
		"empty list":      `{"messages":[` + call + `],"tools":[]}`,
		"response":        `{"choices":[{"message":` + call + `}]}`,
		"batch":           `{"custom_id":"r9","response":{"status_code":200,"body":{"choices":[{"message":` + call + `}]}}}`,
		"Langfuse":        `{"type":"GENERATION","input":[],"output":` + call + `}`,
		"OpenTelemetry":   `{"attributes":{"gen_ai.output.messages":[{"parts":[{"type":"tool_call","name":"x"}]}]}}`,
		"recorded turn":   `{"tool_calls":[{"name":"x"}]}`,
		"logged response": `{"response":{"choices":[{"message":{"tool_calls":[{"function":{"name":"x"}}]}}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := one(t, text)
			require.True(t, got.NoTools)
			require.Equal(t, []middleware.Tool{{Name: "x"}}, got.Tools)
			require.Equal(t, "x", got.Calls[0].Name)
		})
	}
}

// Of a line with several records, those that can be read count.
func TestRecordsBesideABrokenOne(t *testing.T) {
	t.Parallel()
	const generation = `{"id":"%","type":"GENERATION","input":{"tools":[{"type":"function","function":{"name":"x","parameters":{}}}]},"output":{"role":"assistant","tool_calls":[{"function":{"name":"x"}}]}}`
	got, err := turns(t, `{"data":[`+strings.Replace(generation, "%", "1", 1)+`,{"type":"GENERATION","input":[],"output":{"odd":1}},{"type":"SPAN"},`+strings.Replace(generation, "%", "2", 1)+`]}`)
	require.ErrorContains(t, err, "f:7: response: neither")
	require.Len(t, got, 2)
	require.Equal(t, "2", got[1].ID)
}

// A conversation with images in it makes a long line.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	image := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 30<<20) + `"}}]}`
	got := one(t, `{"messages":[`+image+`,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"x","arguments":"{}"}}]}],"functions":[{"name":"x"}]}`)
	require.Equal(t, []middleware.ToolCall{{ID: "c", Name: "x", Arguments: "{}"}}, got.Calls)
}

// The tools of a record have priority over the tools of the file.
func TestToolsOfAFile(t *testing.T) {
	t.Parallel()
	sets, err := recorded.ReadToolsets("f", strings.NewReader(`[{"name":"x","parameters":{"type":"object"}},{"name":"x","parameters":{}},{"functions":[{"name":"y","parameters":{}}]}]`))
	require.NoError(t, err)
	of := func(line string) (names []string) {
		got, err := recorded.Line{Text: []byte(line)}.Turns(sets)
		require.NoError(t, err)
		for _, tool := range got[0].Tools {
			names = append(names, tool.Name+string(tool.Parameters))
		}
		return names
	}
	const calls = `"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"x"}}]}]`
	require.Equal(t, []string{`x{"type":"object"}`, "y{}"}, of(`{`+calls+`}`))
	require.Equal(t, []string{`x{"type":"object"}`, "y{}"}, of(`{"tool_calls":[{"name":"x"}]}`))
	require.Equal(t, []string{"z{}"}, of(`{"request":{"tools":[{"name":"z","parameters":{}}]},"response":{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"x"}}]}}`))
	require.Empty(t, of(`{"request":{"messages":[]},"response":{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"x"}}]}}]}}`), "a request without tools had none")
	require.Equal(t, []string{"z{}"}, of(`{`+calls+`,"tools":[{"name":"z","parameters":{}}]}`))
}

// A recording of the gateway has the tools of its requests. Some requests have none.
func TestToolsOfRecording(t *testing.T) {
	t.Parallel()
	sets, err := recorded.ReadToolsets("f", strings.NewReader(`{"tool_calls":[],"tools":[]}
{"tool_calls":[{"name":"x","arguments":"{}"}],"tools":[{"name":"x","parameters":{"type":"object"}},{"name":"y"}]}`))
	require.NoError(t, err)
	require.Equal(t, []middleware.Tool{{Name: "x", Parameters: []byte(`{"type":"object"}`)}, {Name: "y"}}, sets.Tools())
}
