package transport_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// serverTools is a format whose provider runs tools of its own.
type serverTools struct {
	path, request         string
	called, result        string // what the provider runs, and what it got; of one item, the running and the finished item
	bad, good             string // calls of the client
	whole                 func(blocks ...string) string
	stream                func(blocks ...string) string
	streamed              string // the member that asks for a stream
	contained, contained2 string // what shows called and result in an answer or a request
}

// anthropicStream writes blocks as the events of a stream.
func anthropicStream(blocks ...string) string {
	var b strings.Builder
	event := func(kind, rest string) { fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest) }
	event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`)
	for i, block := range blocks {
		start, deltas := block, ""
		if before, input, ok := strings.Cut(block, `"input":`); ok {
			input = strings.TrimSuffix(input, "}")
			start, deltas = before+`"input":{}}`, fmt.Sprintf(`,"index":%d,"delta":{"type":"input_json_delta","partial_json":%q}`, i, input)
		}
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, i, start))
		if deltas != "" {
			event("content_block_delta", deltas)
		}
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
	}
	event("message_delta", `,"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5}`)
	event("message_stop", "")
	return b.String()
}

// responsesStream writes items as the events of a stream.
func responsesStream(items ...string) string {
	var b strings.Builder
	n := 0
	event := func(kind, rest string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d%s}\n\n", kind, kind, n, rest)
		n++
	}
	event("response.created", `,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}`)
	for i, item := range items {
		event("response.output_item.added", fmt.Sprintf(`,"output_index":%d,"item":%s`, i, item))
		event("response.output_item.done", fmt.Sprintf(`,"output_index":%d,"item":%s`, i, item))
	}
	event("response.completed", `,"response":`+responsesWhole(items...))
	return b.String()
}

func responsesWhole(items ...string) string {
	return `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[` + strings.Join(items, ",") + `],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
}

func geminiWhole(parts ...string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`
}

func formatsWithServerTools() map[string]serverTools {
	return map[string]serverTools{
		"anthropic": {
			path:    "/v1/messages",
			request: `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Go."}],"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"add","input_schema":` + schema + `}]}`,
			called:  `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`,
			result:  `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`,
			bad:     `{"type":"tool_use","id":"toolu_1","name":"add","input":{"m":"x"}}`, good: `{"type":"tool_use","id":"toolu_2","name":"add","input":{"n":1}}`,
			whole: func(blocks ...string) string {
				return `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + strings.Join(blocks, ",") + `],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
			},
			stream: anthropicStream, streamed: `"stream":true,`,
			contained: `"type":"server_tool_use"`, contained2: `"type":"web_search_tool_result"`,
		},
		"responses": {
			path:    "/v1/responses",
			request: `{"model":"m","input":"Go.","tools":[{"type":"web_search"},{"type":"function","name":"add","parameters":` + schema + `}]}`,
			called:  `{"id":"ws_1","type":"web_search_call","status":"in_progress","action":{"type":"search","query":"x"}}`,
			result:  `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}`,
			bad:     `{"id":"fc_1","type":"function_call","call_id":"c1","name":"add","arguments":"{\"m\":\"x\"}","status":"completed"}`,
			good:    `{"id":"fc_2","type":"function_call","call_id":"c2","name":"add","arguments":"{\"n\":1}","status":"completed"}`,
			whole:   responsesWhole, stream: responsesStream, streamed: `"stream":true,`,
			contained: `"status":"in_progress","action"`, contained2: `"status":"completed","action"`,
		},
		"gemini": {
			path:    "/v1beta/models/m:generateContent",
			request: `{"contents":[{"role":"user","parts":[{"text":"Go."}]}],"tools":[{"codeExecution":{}},{"functionDeclarations":[{"name":"add","parametersJsonSchema":` + schema + `}]}]}`,
			called:  `{"executableCode":{"language":"PYTHON","code":"1"}}`, result: `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`,
			bad: `{"functionCall":{"name":"add","args":{"m":"x"}}}`, good: `{"functionCall":{"name":"add","args":{"n":1}}}`,
			whole:     geminiWhole,
			stream:    func(parts ...string) string { return "data: " + geminiWhole(parts...) + "\n\n" },
			contained: `executableCode`, contained2: `codeExecutionResult`,
		},
	}
}

// A client's history holds no result of a server tool without its call, and no call without
// its result: an answer with only one half of such a pair is not re-asked. Both halves in one
// answer go together.
func TestServerToolsAcrossAnswers(t *testing.T) {
	t.Parallel()
	for name, f := range formatsWithServerTools() {
		both := []string{f.called, f.result, f.bad}
		if name == "responses" { // one item
			both = []string{f.result, f.bad}
		}
		cases := map[string]struct {
			answer  []string
			reasked bool
		}{
			"pending in front of the call": {[]string{f.called, f.bad}, false},
			"pending behind the call":      {[]string{f.bad, f.called}, false},
			"both halves":                  {both, true},
			"no server tool":               {[]string{f.bad}, true},
		}
		if name != "responses" {
			cases["the result of an earlier call"] = struct {
				answer  []string
				reasked bool
			}{[]string{f.result, f.bad}, false}
		}
		for what, c := range cases {
			for _, form := range []string{"whole", "stream", "hold"} {
				t.Run(name+"/"+what+"/"+form, func(t *testing.T) {
					t.Parallel()
					body, path, write, kind := f.request, f.path, f.whole, "application/json"
					if form != "whole" {
						body, write, kind = strings.Replace(body, "{", "{"+f.streamed, 1), f.stream, "text/event-stream"
						path = strings.Replace(path, "generateContent", "streamGenerateContent?alt=sse", 1)
					}
					var sent []string
					tr := transport.New(transport.Options{Hold: form == "hold"}, argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass}))
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid"+path, strings.NewReader(body))
					require.NoError(t, err)
					resp, err := tr.Hook(req, func(req *http.Request) (*http.Response, error) {
						b, err := io.ReadAll(req.Body)
						require.NoError(t, err)
						sent = append(sent, string(b))
						out := write(c.answer...)
						if len(sent) > 1 {
							out = write(f.good)
						}
						return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1, Request: req, Body: io.NopCloser(&piecewise{pieces: eventsOf(out)})}, nil
					})
					require.NoError(t, err)
					got := read(t, resp)
					require.Equal(t, http.StatusOK, resp.StatusCode, got)
					if !c.reasked {
						require.Len(t, sent, 1)
						for _, block := range c.answer {
							require.Contains(t, got, firstID(block))
						}
						return
					}
					require.Len(t, sent, 2)
					require.Equal(t, slices.Contains(c.answer, f.called), strings.Contains(sent[1], f.contained), sent[1])
					require.Equal(t, slices.Contains(c.answer, f.result), strings.Contains(sent[1], f.contained2), sent[1])
					require.Equal(t, strings.Contains(got, f.contained), slices.Contains(both, f.called) && strings.Contains(got, f.contained2), got)
				})
			}
		}
	}
}

// firstID returns the first value of a block that is an id, or its whole text.
func firstID(block string) string {
	var v map[string]any
	if json.Unmarshal([]byte(block), &v) == nil {
		for _, key := range []string{"id", "tool_use_id"} {
			if id, ok := v[key].(string); ok {
				return id
			}
		}
	}
	return block[2:strings.Index(block, `":`)]
}
