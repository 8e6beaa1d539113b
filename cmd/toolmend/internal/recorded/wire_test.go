package recorded_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/recordedtest"
	"github.com/toolmend/toolmend/middleware"
)

// schema is what each of the formats below says of the tool add.
const schema = `{"type":"object","properties":{"x":{"type":"number"}}}`

// sse makes a stream of events; one that says its type goes by that name.
func sse(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(d), &e)
		if e.Type != "" {
			b.WriteString("event: " + e.Type + "\n")
		}
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// dialects has the same exchange in every format: a call to add, cut off or not.
var dialects = map[string]struct {
	path, request, whole, streamed string
	id                             string // of the call; "": the format has none
	model                          string
}{
	"OpenAI chat": {
		path:    "/v1/chat/completions",
		request: `{"model":"m","messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"add","parameters":` + schema + `}}]}`,
		whole: `{"model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"x\": 1.0}"}}]}}]}`,
		streamed: sse(`{"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":"{\"x\":"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" 1.0}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]"),
		id: "c1", model: "m",
	},
	"OpenAI responses": {
		path:    "/v1/responses",
		request: `{"model":"m","input":"?","tools":[{"type":"function","name":"add","parameters":` + schema + `}]}`,
		whole: `{"id":"r","object":"response","model":"m-1","status":"completed","output":[
			{"type":"function_call","id":"fc","call_id":"c1","name":"add","arguments":"{\"x\": 1.0}","status":"completed"}]}`,
		streamed: sse(`{"type":"response.created","response":{"id":"r","object":"response","model":"m-1","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c1","name":"add","arguments":"","status":"in_progress"}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc","delta":"{\"x\": 1.0}"}`,
			`{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc","arguments":"{\"x\": 1.0}"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c1","name":"add","arguments":"{\"x\": 1.0}","status":"completed"}}`,
			`{"type":"response.completed","response":{"id":"r","object":"response","model":"m-1","status":"completed","output":[{"type":"function_call","id":"fc","call_id":"c1","name":"add","arguments":"{\"x\": 1.0}","status":"completed"}]}}`),
		id: "c1", model: "m",
	},
	"Anthropic": {
		path:    "/v1/messages",
		request: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"?"}],"tools":[{"name":"add","input_schema":` + schema + `}]}`,
		whole: `{"id":"g","type":"message","role":"assistant","model":"m-1","stop_reason":"tool_use","content":[
			{"type":"text","text":"so"},{"type":"tool_use","id":"c1","name":"add","input":{"x": 1.0}}]}`,
		streamed: sse(`{"type":"message_start","message":{"id":"g","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"add","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}`, `{"type":"ping"}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":" 1.0}"}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`),
		id: "c1", model: "m",
	},
	"Gemini": {
		path: "/v1beta/models/m:streamGenerateContent",
		request: `{"contents":[{"role":"user","parts":[{"text":"?"}]}],"tools":[{"functionDeclarations":[
			{"name":"add","parametersJsonSchema":` + schema + `}]}]}`,
		whole: `{"modelVersion":"m-1","candidates":[{"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":{"name":"add","args":{"x": 1.0}}}]}}]}`,
		streamed: sse(`{"modelVersion":"m-1","candidates":[{"content":{"role":"model","parts":[{"text":"so"}]}}]}`,
			`{"candidates":[{"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":{"name":"add","args":{"x": 1.0}}}]}}]}`),
		model: "m-1", // the request has none in its body
	},
	"Ollama": {
		path:    "/api/chat",
		request: `{"model":"m","messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"add","parameters":` + schema + `}}]}`,
		whole:   `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"add","arguments":{"x": 1.0}}}]},"done":true,"done_reason":"stop"}`,
		streamed: `{"model":"m","message":{"role":"assistant","content":"so"},"done":false}
			{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"add","arguments":{"x": 1.0}}}]},"done":false}
			{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}`,
		model: "m",
	},
}

// Whatever the format, how it was framed and how it is told: the same turn.
func TestDialects(t *testing.T) {
	t.Parallel()
	for name, d := range dialects {
		want := recorded.Turn{
			ID: "e1", Model: d.model, Finish: middleware.FinishToolCalls,
			Tools:    []middleware.Tool{{Name: "add", Parameters: []byte(schema)}},
			Calls:    []middleware.ToolCall{{ID: d.id, Name: "add", Arguments: `{"x": 1.0}`}},
			Outcomes: []recorded.Outcome{""},
		}
		for framing, body := range map[string]string{"whole": d.whole, "streamed": d.streamed, "streamed with CRLF": strings.ReplaceAll(d.streamed, "\n", "\r\n")} {
			for _, path := range []string{"", d.path, "/gateway" + d.path + "?key=x", "/elsewhere"} {
				t.Run(name+" "+framing+" "+path, func(t *testing.T) {
					t.Parallel()
					require.Equal(t, want, one(t, at(t, path, d.request, body)))
				})
			}
		}
		t.Run(name+" as an object", func(t *testing.T) {
			t.Parallel()
			got := one(t, `{"request":`+d.request+`,"response":`+d.whole+`}`)
			require.Equal(t, want.Tools, got.Tools)
			require.Equal(t, want.Calls, got.Calls)
		})
	}
}

// at makes the line of an exchange whose sides are strings.
func at(t *testing.T, path, request, response string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{"id": "e1", "path": path, "request": request, "response": response})
	require.NoError(t, err)
	return string(b)
}

// A request without its history, or with one that no codec reads, still says
// what the tools were.
func TestThinRequests(t *testing.T) {
	t.Parallel()
	for name, d := range dialects {
		var request map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(d.request), &request))
		for _, key := range []string{"messages", "input", "contents"} {
			if request[key] != nil {
				request[key] = json.RawMessage(`"…"`)
			}
		}
		odd, err := json.Marshal(request)
		require.NoError(t, err)
		for _, key := range []string{"messages", "input", "contents"} {
			delete(request, key)
		}
		none, err := json.Marshal(request)
		require.NoError(t, err)
		for _, body := range []string{string(odd), string(none)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				got := one(t, at(t, "", body, d.whole))
				require.Equal(t, []middleware.Tool{{Name: "add", Parameters: []byte(schema)}}, got.Tools)
				require.Equal(t, d.model, got.Model)
			})
		}
	}
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for name, word := range map[string][2]string{
		"OpenAI chat":      {`"finish_reason":"stop"`, `"finish_reason":"length"`},
		"OpenAI responses": {`"status":"completed","output"`, `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output"`},
		"Anthropic":        {`"stop_reason":"tool_use"`, `"stop_reason":"max_tokens"`},
		"Gemini":           {`"finishReason":"STOP"`, `"finishReason":"MAX_TOKENS"`},
		"Ollama":           {`"done_reason":"stop"`, `"done_reason":"length"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dialects[name]
			cut := strings.Replace(d.whole, word[0], word[1], 1)
			require.NotEqual(t, d.whole, cut)
			require.Equal(t, middleware.FinishLength, one(t, at(t, "", d.request, cut)).Finish)
		})
	}
}

// An answer that ends early is not read, and not passed over; in chat
// completions, where servers leave the end out, it is read as far as it goes.
func TestNoEnd(t *testing.T) {
	t.Parallel()
	for name, d := range dialects {
		for _, path := range []string{"", d.path} {
			t.Run(name+" "+path, func(t *testing.T) {
				t.Parallel()
				events := strings.SplitAfter(strings.TrimSpace(d.streamed), "\n")
				early := strings.Join(events[:len(events)-1], "") // the last data line is gone
				if name == "OpenAI chat" {
					early, _, _ = strings.Cut(d.streamed, `data: {"choices":[{"index":0,"delta":{},`)
					got := one(t, at(t, path, d.request, early))
					require.Equal(t, `{"x": 1.0}`, got.Calls[0].Arguments)
					return
				}
				_, err := turns(t, at(t, path, d.request, early))
				require.ErrorContains(t, err, "whole")
			})
		}
	}
}

// callsIn is how many calls the recorded exchanges of a format have.
var callsIn = map[string]int{
	"openai-chat": 415, "openai-responses": 222, "anthropic-messages": 190, "anthropic-elsewhere": 5, "gemini-generate": 199, "ollama-chat": 12,
}

// spelledOut are answers that say function_call and mean none.
var spelledOut = []string{"test_snowflake_native_output.yaml#0", "test_snowflake_thinking.yaml#1"}

// Every recorded exchange whose answer has calls gives them, the same without
// the path of the request, and the others give none.
func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	for name, want := range callsIn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(recordedtest.Path(t, "wire", name+".jsonl.gz"))
			require.NoError(t, err)
			defer f.Close()
			calls := 0
			for l, err := range recorded.NewReader(name, f).All() {
				require.NoError(t, err)
				calls += look(t, l)
			}
			require.Equal(t, want, calls)
		})
	}
}

// look counts the calls of a recorded exchange.
func look(t *testing.T, l recorded.Line) int {
	t.Helper()
	var x struct {
		ID, Format string
		Features   []string
	}
	require.NoError(t, json.Unmarshal(l.Text, &x))
	if x.Format == "eventstream" { // binary frames are no format of ours
		return 0
	}
	got, err := l.Turns(nil)
	if !slices.Contains(x.Features, "calls") || slices.Contains(spelledOut, filepath.Base(x.ID)) {
		var skipped recorded.Skipped
		require.True(t, errors.As(err, &skipped), "%s: %v", x.ID, err)
		return 0
	}
	require.NoError(t, err, x.ID)
	l.Text = bytes.Replace(l.Text, []byte(`"path": "`), []byte(`"was": "`), 1)
	again, err := l.Turns(nil)
	require.NoError(t, err, x.ID)
	require.Equal(t, got, again, x.ID)
	calls := 0
	for _, turn := range got {
		calls += len(turn.Calls)
		for _, c := range turn.Calls {
			require.NotEmpty(t, c.Name, x.ID)
			require.NotContains(t, c.ID, "toolmend", "an id that the log does not have")
			require.Nil(t, c.Native)
		}
	}
	return calls
}
