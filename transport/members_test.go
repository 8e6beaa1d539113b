package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestManyMembers holds that an object with very many members costs a time that is linear
// in their number, wherever in an answer with a call it stands. These took from 8 to 40 s.
func TestManyMembers(t *testing.T) {
	var b strings.Builder
	for n := range 80_000 {
		fmt.Fprintf(&b, `,"k%d":1`, n)
	}
	more := b.String()
	const (
		chatPath = "/v1/chat/completions"
		head     = `{"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":`
		call     = `{"index":0,"id":"c","type":"function","function":{"name":"pay","arguments":"{}"}`
		end      = "data: " + head + `{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
		called   = "data: " + head + `{"tool_calls":[` + call + `}]}}]}` + "\n\n" + end
	)
	chunk := func(delta, choice, root string) string {
		return "data: " + head + "{" + delta + "}" + choice + "}]" + root + "}\n\n"
	}
	whole := func(root, choice, message, element string) string {
		return `{"id":"1","model":"m"` + root + `,"choices":[{"index":0` + choice + `,"finish_reason":"tool_calls","message":{"role":"assistant"` + message +
			`,"content":[{"type":"text","text":"x"` + element + `}],"tool_calls":[` + call + `}]}}]}`
	}
	var turns strings.Builder
	for range 4000 {
		turns.WriteString(chunk(`"reasoning_content":"x"`, "", "") + chunk(`"content":"x"`, "", ""))
	}
	requests := map[string]string{
		chatPath:                           `{"model":"m","stream":true,"messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"pay"}}]}`,
		"/api/chat":                        `{"model":"m","stream":false,"messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"pay"}}]}`,
		"/v1/messages":                     `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"?"}],"tools":[{"name":"pay","input_schema":{"type":"object"}}]}`,
		"/v1/responses":                    `{"model":"m","input":"?","tools":[{"type":"function","name":"pay","parameters":{"type":"object"}}]}`,
		"/v1beta/models/m:generateContent": `{"contents":[{"parts":[{"text":"?"}]}],"tools":[{"functionDeclarations":[{"name":"pay"}]}]}`,
	}
	for name, c := range map[string]struct{ path, body string }{
		"chat, a chunk":                {chatPath, chunk(`"content":"x"`, "", more) + called},
		"chat, a choice of a chunk":    {chatPath, chunk(`"content":"x"`, more, "") + called},
		"chat, a delta":                {chatPath, chunk(`"content":"x"`+more, "", "") + called},
		"chat, an element of a delta":  {chatPath, chunk(`"content":[{"type":"text","text":"x"`+more+`}]`, "", "") + called},
		"chat, a call of a delta":      {chatPath, chunk(`"tool_calls":[`+call+more+`}]`, "", "") + end},
		"chat, whole":                  {chatPath, whole(more, "", "", "")},
		"chat, a choice":               {chatPath, whole("", more, "", "")},
		"chat, a message":              {chatPath, whole("", "", more, "")},
		"chat, an element":             {chatPath, whole("", "", "", more)},
		"chat, from text to reasoning": {chatPath, chunk(`"content":"`+strings.Repeat("x", 4<<20)+`"`, "", "") + turns.String() + called},
		"ollama, a message":            {"/api/chat", `{"model":"m","message":{"role":"assistant","content":"x"` + more + `,"tool_calls":[{"function":{"name":"pay","arguments":{}}}]},"done":true}`},
		"ollama, a call":               {"/api/chat", `{"model":"m","message":{"role":"assistant","content":"x","tool_calls":[{"function":{"name":"pay","arguments":{}}` + more + `}]},"done":true}`},
		"gemini, a part":               {"/v1beta/models/m:generateContent", `{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":{"name":"pay","args":{}}` + more + `}]}}]}`},
		"gemini, a candidate":          {"/v1beta/models/m:generateContent", `{"candidates":[{"index":0` + more + `,"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":{"name":"pay","args":{}}}]}}]}`},
		"anthropic, a block":           {"/v1/messages", `{"id":"1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"pay","input":{}` + more + `}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`},
		"anthropic, a message":         {"/v1/messages", `{"id":"1","type":"message","role":"assistant","model":"m"` + more + `,"content":[{"type":"tool_use","id":"c","name":"pay","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`},
		"responses, an item":           {"/v1/responses", `{"id":"1","object":"response","status":"completed","output":[{"type":"function_call","id":"f","call_id":"c","name":"pay","arguments":"{}"` + more + `}]}`},
		"responses, the response":      {"/v1/responses", `{"id":"1","object":"response","status":"completed"` + more + `,"output":[{"type":"function_call","id":"f","call_id":"c","name":"pay","arguments":"{}"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			kind := "application/json"
			if strings.HasPrefix(c.body, "data:") {
				kind = "text/event-stream"
			}
			req, err := http.NewRequest(http.MethodPost, "http://upstream"+c.path, strings.NewReader(requests[c.path]))
			require.NoError(t, err)
			began := time.Now()
			resp, err := strictTransport().Hook(req, func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: -1, Request: r}, r.Body.Close()
			})
			require.NoError(t, err)
			left, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Contains(t, string(left), "pay")
			require.Less(t, time.Since(began), 5*time.Second)
			t.Log(time.Since(began).Round(time.Millisecond), resp.StatusCode, len(left), resp.Header.Get("X-Toolmend-Status"))
		})
	}
}
