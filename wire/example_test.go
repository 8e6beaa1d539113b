package wire_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// A recorded answer is edited where it changed, and nowhere else.
func ExampleCodec() {
	body := `{"id": "c1",  "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",
  "content": null, "reasoning_content": "Weather, so…",
  "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"town\":\"Oslo\"}"}}]}}]}`

	resp, err := wire.OpenAIChat().DecodeResponse(&middleware.Request{}, []byte(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Message.ToolCalls[0].Arguments = `{"city":"Oslo"}`
	out, err := wire.OpenAIChat().EncodeResponse(resp)
	fmt.Println(string(out), err)
	// Output:
	// {"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"Weather, so…","tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]} <nil>
}

// A provider without an SDK, under the whole stack.
func ExampleEndpoint() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"model":"m-1","message":{"role":"assistant","content":"",
			"tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Oslo","days":"3"}}}]},
			"done":true,"done_reason":"stop","prompt_eval_count":60,"eval_count":9}`)
	}))
	defer server.Close()

	model := wire.Ollama().Model(wire.Endpoint{URL: server.URL, Model: "m-1"})
	call := argsvalidate.New(argsvalidate.Options{})(model)

	resp, err := call(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("Weather in Oslo, three days?")},
		Tools: []middleware.Tool{{
			Name:       "get_weather",
			Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`),
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range resp.Message.ToolCalls {
		fmt.Println(c.Name, c.Arguments)
	}
	fmt.Println(resp.Report.Status, resp.Usage.InputTokens, resp.Usage.OutputTokens)
	// Output:
	// get_weather {"city":"Oslo","days":3}
	// valid 60 9
}
