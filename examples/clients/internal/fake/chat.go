package fake

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// Chat is OpenAI Chat Completions, with reasoning_content as DeepSeek sends it
// and wants it back, and refusals as Groq makes them.
var Chat = &Wire{
	Name: "chat", History: "messages", Header: "Authorization", base: "/v1",
	streamed: func(_ string, body []byte) bool { return wants(body) },
	fail: func(_ int, message string) string {
		return j(object{"error": object{"message": message, "type": "invalid_request_error", "code": nil, "param": nil}})
	},
	write: writeChat,
	Mark:  strict.Thought, rules: strict.Chat,
}

func writeChat(n int, a Answer, stream bool) reply {
	if stream {
		return streamChat(n, a)
	}
	if a.Refusal != None {
		return reply{status: http.StatusBadRequest, kind: "application/json", head: j(refuseChat)}
	}
	message := object{"role": "assistant", "content": nil, "refusal": nil, "reasoning_content": strict.Thought(n)}
	if a.Text != "" {
		message["content"] = a.Text
	}
	var calls array
	for _, c := range a.Calls {
		calls = append(calls, chatCall(c))
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return reply{status: http.StatusOK, kind: "application/json", head: j(object{
		"id": fmt.Sprint("chatcmpl-", n), "object": "chat.completion", "created": 1700000000, "model": "fake",
		"choices": array{object{"index": 0, "message": message, "logprobs": nil, "finish_reason": finishChat(a)}},
		"usage":   chatUsage, "service_tier": "default", "system_fingerprint": "fp_1",
	})}
}

func chatCall(c Call) object {
	call := object{"type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}}
	if c.ID != "" {
		call["id"] = c.ID
	}
	return call
}

var (
	chatUsage  = object{"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
	refuseChat = object{"error": object{
		"message": "Failed to call a function.", "type": "invalid_request_error",
		"code": "tool_use_failed", "failed_generation": `get_weather{"town": "Oslo"`, "status_code": 400,
	}}
)

func finishChat(a Answer) string {
	switch {
	case a.Finish != "":
		return a.Finish
	case a.Cut:
		return "length"
	case len(a.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func streamChat(n int, a Answer) reply {
	if a.Refusal == AtOnce {
		return reply{status: http.StatusBadRequest, kind: "application/json", head: j(refuseChat)}
	}
	chunk := func(delta object, finish any) string {
		return event("", object{
			"id": fmt.Sprint("chatcmpl-", n), "object": "chat.completion.chunk", "created": 1700000000, "model": "fake",
			"choices": array{object{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	var head, tail strings.Builder
	head.WriteString(chunk(object{"role": "assistant", "content": ""}, nil))
	head.WriteString(chunk(object{"reasoning_content": strict.Thought(n)}, nil))
	for _, p := range pieces(a.Text) {
		head.WriteString(chunk(object{"content": p}, nil))
	}
	if a.Refusal == Halfway {
		return reply{http.StatusOK, "text/event-stream", head.String(), event("error", refuseChat)}
	}
	for i, c := range a.Calls {
		call := chatCall(Call{c.ID, c.Name, ""})
		call["index"] = i
		tail.WriteString(chunk(object{"tool_calls": array{call}}, nil))
		for _, p := range pieces(c.Arguments) {
			tail.WriteString(chunk(object{"tool_calls": array{object{"index": i, "function": object{"arguments": p}}}}, nil))
		}
	}
	tail.WriteString(chunk(object{}, finishChat(a)))
	tail.WriteString(event("", object{
		"id": fmt.Sprint("chatcmpl-", n), "object": "chat.completion.chunk", "created": 1700000000, "model": "fake",
		"choices": array{}, "usage": chatUsage,
	}))
	tail.WriteString("data: [DONE]\n\n")
	return reply{http.StatusOK, "text/event-stream", head.String(), tail.String()}
}
