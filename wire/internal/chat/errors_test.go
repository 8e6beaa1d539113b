package chat_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestDecodeError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, code, text, output string }{
		"openai":                 {`{"error":{"message":"Bad key","type":"invalid_request_error","code":"invalid_api_key"}}`, "invalid_api_key", "Bad key", ""},
		"no code":                {`{"error":{"message":"Busy","type":"overloaded","code":null}}`, "overloaded", "Busy", ""},
		"number":                 {`{"error":{"message":"Slow","code":429,"metadata":{"error_type":"rate_limit"}}}`, "rate_limit", "Slow", ""},
		"only text":              {`{"error":"No credit"}`, "", "No credit", ""},
		"flat":                   {`{"object":"error","message":"Wrong","type":"invalid","code":"3051"}`, "3051", "Wrong", ""},
		"detail":                 {`{"detail":"Unauthorized"}`, "", "Unauthorized", ""},
		"details":                {`{"detail":[{"loc":["body","tools",0],"msg":"extra"},{"msg":"bad"}]}`, "", "extra body tools 0; bad", ""},
		"list":                   {`[{"error":{"message":"No model","status":"NOT_FOUND"}}]`, "NOT_FOUND", "No model", ""},
		"html":                   {`<html>`, "", "HTML", ""},
		"other json":             {`{"a":1}`, "", "JSON of another form", ""},
		"groq":                   {`{"error":{"message":"Failed","type":"x","code":"tool_use_failed","failed_generation":"<f>{\"a\":"}}`, "tool_use_failed", "refused", `<f>{"a":`},
		"groq, without the call": {`{"error":{"message":"a: expected b","code":"tool_use_failed"}}`, "tool_use_failed", "refused", "a: expected b"},
		"ollama":                 {`{"error":{"message":"error parsing tool call: raw='{', err=x","type":"api_error"}}`, "api_error", "refused", "{"},
		"ollama, as text":        {`{"error":"error parsing tool call: raw='{'"}`, "", "refused", "{"},
		"behind openrouter": {`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"code\":\"tool_use_failed\",\"failed_generation\":\"{\"}}"}}}`,
			"tool_use_failed", "refused", "{"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := chat.Format{}.DecodeError(400, http.Header{"Retry-After": {"2"}}, []byte(c.body))
			require.Equal(t, 400, e.StatusCode)
			require.Equal(t, 2*time.Second, e.RetryAfter)
			require.Equal(t, c.code, e.Code)
			require.Contains(t, e.Error(), c.text)
			require.Equal(t, c.output, e.Output)
			if c.output != "" {
				require.ErrorIs(t, e, middleware.ErrInvalidToolCall)
				require.NotContains(t, e.Error(), c.output)
			}
		})
	}
}

func TestEncodeError(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"error":{"message":"a \"b\"","type":"invalid_request_error","param":null,"code":"c"}}`,
		string(chat.Format{}.EncodeError(422, "c", `a "b"`)))
	require.JSONEq(t, `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`, string(chat.Format{}.EncodeError(502, "", "m")))
	require.JSONEq(t, `{"error":{"message":"m","type":"rate_limit_error","param":null,"code":null}}`, string(chat.Format{}.EncodeError(429, "", "m")))
}

// An error in an answer whose status is good.
func TestErrorInAnswer(t *testing.T) {
	t.Parallel()
	shown := eventStream(`{"id":"r","choices":[{"index":0,"delta":{"content":"Hm"}}]}`)
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
		output string
		input  int64 // tokens
		shows  int
	}{
		"json":           {body: `  {"error":{"message":"x","code":502}}`, status: 502, code: "502"},
		"json, a choice": {body: `{"choices":[{"error":{"message":"x","code":"bad"},"message":{"role":"assistant","content":""}}]}`, code: "bad"},
		"chunk":          {body: shown + eventStream(`{"choices":[],"error":{"message":"x","code":400,"metadata":{"error_type":"y"}}}`), status: 400, code: "y", shows: len(shown)},
		"usage beside it": {body: shown + eventStream(`{"choices":[{"delta":{"content":""}}],"error":{"message":"x","code":"z"},"usage":{"prompt_tokens":4}}`, "[DONE]"),
			code: "z", input: 4, shows: len(shown)},
		"groq": {body: shown + "event: error\ndata: {\"error\":{\"message\":\"m\",\"code\":\"tool_use_failed\",\"failed_generation\":\"{\",\"status_code\":400}}\n\n",
			status: 400, code: "tool_use_failed", output: "{", shows: len(shown)},
		"groq, a word":       {body: shown + eventStream(`{"choices":[],"x_groq":{"error":"over_capacity"}}`), shows: len(shown)},
		"named, flat":        {body: shown + "event: error\ndata: {\"message\":\"x\",\"code\":\"w\",\"status\":503}\n\n", status: 503, code: "w", shows: len(shown)},
		"named, a text":      {body: shown + "event: error\ndata: overloaded\n\n", shows: len(shown)},
		"named, a refusal":   {body: shown + "event: error\ndata: error parsing tool call: raw='{\n\n", output: "{", shows: len(shown)},
		"without a field":    {body: shown + "{\"error\":{\"message\":\"x\",\"code\":\"w\"}}\n\n", code: "w", shows: len(shown)},
		"an object of error": {body: shown + eventStream(`{"object":"error","message":"x","code":500}`), status: 500, code: "500", shows: len(shown)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := chat.Format{}.NewStream(nil, nil)
			_, err := s.Write([]byte(c.body))
			require.NoError(t, err)
			require.Equal(t, c.shows, s.Safe())
			_, err = s.Close()
			var e *middleware.ModelError
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.status, e.StatusCode)
			require.Equal(t, c.code, e.Code)
			require.Equal(t, c.output, e.Output)
			require.Equal(t, c.output != "", e.Err == middleware.ErrInvalidToolCall)
			require.Equal(t, c.input, middleware.ReportOf(nil, err).Usage().InputTokens)
		})
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	chunk := func(choice string) string { return eventStream(`{"choices":[` + choice + `]}`) }
	for name, body := range map[string]string{
		"html":           "<html>",
		"number":         "1",
		"array":          `[{"choices":[{"message":{},"finish_reason":"stop"}]}]`,
		"no choices":     `{"id":"x"}`,
		"empty choices":  `{"choices":[]}`,
		"choices":        `{"choices":{}}`,
		"no message":     `{"choices":[{"finish_reason":"stop"}]}`,
		"completion":     `{"choices":[{"text":"x","finish_reason":"stop"}]}`,
		"calls":          `{"choices":[{"message":{"tool_calls":{"0":{}}}}]}`,
		"call":           `{"choices":[{"message":{"tool_calls":[1]}}]}`,
		"function":       `{"choices":[{"message":{"tool_calls":[{"function":[]}]}}]}`,
		"name":           `{"choices":[{"message":{"tool_calls":[{"function":{"name":1}}]}}]}`,
		"message in it":  `{"choices":[{"message":{"content":[{"role":"user"}]},"finish_reason":"stop"}]}`,
		"other stream":   eventStream(`{"type":"message_start"}`),
		"chunk, no JSON": eventStream(`{"choices":`),
		"chunk, choices": eventStream(`{"choices":1}`),
		"chunk, choice":  chunk(`1`),
		"chunk, huge":    chunk(`{"index":99999999}`),
		"chunk, delta":   chunk(`{"delta":[]}`),
		"chunk, call":    chunk(`{"delta":{"tool_calls":[[]]}}`),
		"chunk, name":    chunk(`{"delta":{"tool_calls":[{"index":0,"function":{"name":"` + strings.Repeat("x", 5000) + `"}}]}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := codec.Decode(chat.Format{}.NewStream(nil, nil), []byte(body))
			require.ErrorIs(t, err, codec.ErrShape)
		})
	}
	for name, body := range map[string]string{
		"no JSON": `{`, "array": `[]`, "no messages": `{}`, "messages": `{"messages":{}}`, "message": `{"messages":[1]}`,
		"role": `{"messages":[{}]}`, "model": `{"messages":[],"model":1}`, "stop": `{"messages":[],"stop":[1]}`,
		"tools": `{"messages":[],"tools":{}}`, "tool": `{"messages":[],"tools":[1]}`, "tool name": `{"messages":[],"tools":[{"function":{"name":1}}]}`,
	} {
		t.Run("request, "+name, func(t *testing.T) {
			t.Parallel()
			_, err := chat.Format{}.DecodeRequest([]byte(body))
			require.ErrorIs(t, err, codec.ErrShape)
		})
	}
}

func TestIncomplete(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":        ": comment\n\n",
		"no end":         eventStream(`{"choices":[{"delta":{"content":"x"}}]}`),
		"cut in a chunk": eventStream(`{"choices":[{"delta":{"content":"x"}}]}`) + `data: {"choices":[{"del`,
		"cut JSON":       `{"choices":[{"message":{"content":"x`,
		"a choice":       eventStream(`{"choices":[{"index":0,"finish_reason":"stop"},{"index":1,"delta":{"content":"x"}}]}`),
		"only the end":   "data: [DONE]\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := codec.Decode(chat.Format{}.NewStream(nil, nil), []byte(body))
			require.ErrorIs(t, err, codec.ErrIncomplete)
		})
	}
	for name, end := range map[string]string{"finish": `{"choices":[{"finish_reason":"stop"}]}`, "done": "[DONE]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.TrimSpace(eventStream(`{"choices":[{"delta":{"content":"x"}}]}`, end)) // the last event needs no empty line
			resp, err := codec.Decode(chat.Format{}.NewStream(nil, nil), []byte(body))
			require.NoError(t, err)
			require.Equal(t, "x", resp.Message.Text())
		})
	}
}
