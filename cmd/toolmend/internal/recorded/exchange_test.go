package recorded_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/middleware"
)

const chatRequest = `{"model":"m","tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}},{"type":"web_search"},{"type":"custom","custom":{"name":"sh"}}]}`

// exchange makes a line in which either side may be a string.
func exchange(t *testing.T, request, response string, asText bool) string {
	t.Helper()
	pair := map[string]any{"id": "e1", "request": json.RawMessage(request), "response": json.RawMessage(response)}
	if asText {
		pair["request"], pair["response"] = request, response
	}
	b, err := json.Marshal(pair)
	require.NoError(t, err)
	return string(b)
}

func TestExchange(t *testing.T) {
	t.Parallel()
	const response = `{"model":"m-1","choices":[{"finish_reason":"length","message":{"tool_calls":[
		{"id":"a","type":"function","function":{"name":"add","arguments":"{\"x\":1}"}},
		{"id":"b","type":"custom","custom":{"name":"sh","input":"ls"}}]}}]}`
	for _, asText := range []bool{false, true} {
		got := one(t, exchange(t, chatRequest, response, asText))
		require.Equal(t, "m", got.Model, "as it was asked for")
		require.Equal(t, "e1", got.ID)
		require.Equal(t, middleware.FinishLength, got.Finish)
		require.Equal(t, []middleware.ToolCall{
			{ID: "a", Name: "add", Arguments: `{"x":1}`},
			{ID: "b", Name: "sh", Arguments: "ls", Kind: middleware.KindCustom},
		}, got.Calls)
		require.Equal(t, []middleware.Tool{
			{Name: "add", Parameters: []byte(`{"type":"object"}`)},
			{Name: "web_search", Kind: middleware.KindHosted},
			{Name: "sh", Kind: middleware.KindCustom},
		}, got.Tools)
	}
}

// An exchange with one more member that other forms are recognised by is read as an exchange.
func TestExchangeWithMembersOfOtherForms(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]`
	const pair = `"request":{"model":"m","messages":[],` + tools + `},"response":` + chatAnswer
	for _, more := range []string{
		`"record_type":"x"`, `"source":"a","action":"run"`, `"source":"a","observation":"run"`, `"source":"a","kind":"MyEvent"`, `"$set":{}`, `"kind":"x","parts":[]`,
		`"role":"assistant","content":"x"`, `"lc":1,"kwargs":{}`, `"simulations":[]`, `"conversations":[]`, `"eval":"x","samples":[]`, `"sessionID":"s","part":{}`,
		`"task_id":1,"traj":[]`, `"run_type":"llm","trace_id":"t","outputs":{}`, `"trace_id":"t","outputs":{}`, `"session":"s","items":[]`, `"mlflow.spanType":"LLM"`, `"id":"i","object":"trace"`,
		`"generations":[]`, `"answers":[],"tools":[]`, `"sample":{"output":[]}`, `"type":"response_item","payload":{}`, `"name":"x","args":{}`,
		`"gen_ai.tool.name":"x","gen_ai.tool.call.arguments":"{}"`, `"provider":{"id":"p"}`,
	} {
		t.Run(more, func(t *testing.T) {
			t.Parallel()
			for _, line := range []string{"{" + pair + "," + more + "}", "{" + more + "," + strings.Replace(pair, `"request":`, `"request":{"body":`, 1) + "}"} {
				if strings.Contains(line, `"body"`) {
					line = strings.Replace(line, `,"response"`, `},"response"`, 1)
				}
				calls, skipped, errs := read(t, recorded.NewLog(), "f", line)
				require.Equal(t, []string{`add {} {"type":"object"}`}, calls)
				require.Empty(t, skipped)
				require.Empty(t, errs)
			}
		})
	}
}

func TestLegacyFunctionCall(t *testing.T) {
	t.Parallel()
	got := one(t, exchange(t, `{"model":"m","functions":[{"name":"f","parameters":{}}]}`,
		`{"choices":[{"message":{"function_call":{"name":"f","arguments":"{}"}}}]}`, false))
	require.Equal(t, []middleware.ToolCall{{Name: "f", Arguments: "{}"}}, got.Calls)
	require.Equal(t, "f", got.Tools[0].Name)
}

func TestChoicesAreTurns(t *testing.T) {
	t.Parallel()
	asked := `{"n":3,` + strings.TrimPrefix(chatRequest, "{")
	got, err := turns(t, exchange(t, asked, `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"add"}}]}},
		{"message":{"content":"no"}},{"message":{"tool_calls":[{"id":"b","function":{"name":"add"}}]}}]}`, false))
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "b", got[1].Calls[0].ID)
}

func TestStream(t *testing.T) {
	t.Parallel()
	delta := func(s string) string { return `data: {"model":"m-1","choices":[{"index":0,"delta":` + s + "}]}\n\n" }
	calls := func(s string) string { return delta(`{"tool_calls":[` + s + `]}`) }
	for name, c := range map[string]struct {
		body string
		want []middleware.ToolCall
	}{
		"pieces of two calls": {
			": comment\n\nevent: chunk\n" + calls(`{"index":0,"id":"a","function":{"name":"add","arguments":""}}`) +
				calls(`{"index":0,"function":{"arguments":"{\"x\""}}`) + calls(`{"index":0,"function":{"arguments":":1}"}}`) +
				calls(`{"index":1,"id":"b","function":{"name":"add","arguments":"{}"}}`) + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n",
			[]middleware.ToolCall{{ID: "a", Name: "add", Arguments: `{"x":1}`}, {ID: "b", Name: "add", Arguments: `{}`}},
		},
		"every call numbered 0": {
			calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{}"}}`) + calls(`{"index":0,"id":"b","function":{"name":"add","arguments":"{}"}}`),
			[]middleware.ToolCall{{ID: "a", Name: "add", Arguments: "{}"}, {ID: "b", Name: "add", Arguments: "{}"}},
		},
		"no index": {
			calls(`{"id":"a","function":{"name":"add","arguments":"{"}}`) + calls(`{"function":{"arguments":"}"}}`),
			[]middleware.ToolCall{{ID: "a", Name: "add", Arguments: "{}"}},
		},
		"id on every piece": {
			calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"{"}}`) + calls(`{"index":0,"id":"a","function":{"name":"add","arguments":"}"}}`),
			[]middleware.ToolCall{{ID: "a", Name: "add", Arguments: "{}"}},
		},
		"function_call": {
			delta(`{"function_call":{"name":"f","arguments":""}}`) + delta(`{"function_call":{"arguments":"{}"}}`),
			[]middleware.ToolCall{{Name: "f", Arguments: "{}"}},
		},
		"CRLF and no last blank line": {
			"data:{\"choices\":[{\"delta\":{\"tool_calls\":[\r\ndata:{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}",
			[]middleware.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, one(t, exchange(t, chatRequest, c.body, true)).Calls)
		})
	}
}
