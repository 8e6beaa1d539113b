package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// Anthropic is Anthropic Messages, with signed thinking.
var Anthropic = &Wire{
	Name: "anthropic", History: "messages", Header: "X-Api-Key",
	streamed: func(_ string, body []byte) bool { return wants(body) },
	fail: func(_ int, message string) string {
		return j(object{"type": "error", "error": object{"type": "invalid_request_error", "message": message}})
	},
	write: writeAnthropic,
	Mark:  strict.Mark, rules: strict.Anthropic,
}

func finishAnthropic(a Answer) string {
	switch {
	case a.Finish != "":
		return a.Finish
	case a.Cut:
		return "max_tokens"
	case len(a.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func toolUse(c Call, input json.RawMessage) object {
	return object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": input}
}

func writeAnthropic(n int, a Answer, stream bool) reply {
	if stream {
		return streamAnthropic(n, a)
	}
	content := array{object{"type": "thinking", "thinking": strict.Thought(n), "signature": strict.Mark(n)}}
	if a.Text != "" {
		content = append(content, object{"type": "text", "text": a.Text})
	}
	for _, c := range a.Calls {
		if c.Arguments == "" {
			c.Arguments = "{}" // there is no other way to say it
		}
		content = append(content, toolUse(c, json.RawMessage(c.Arguments)))
	}
	return reply{status: http.StatusOK, kind: "application/json", head: j(object{
		"id": fmt.Sprint("msg_", n), "type": "message", "role": "assistant", "model": "fake", "content": content,
		"stop_reason": finishAnthropic(a), "stop_sequence": nil, "usage": object{"input_tokens": 50, "output_tokens": 10},
	})}
}

func streamAnthropic(n int, a Answer) reply {
	var head, tail strings.Builder
	head.WriteString(event("message_start", object{"type": "message_start", "message": object{
		"id": fmt.Sprint("msg_", n), "type": "message", "role": "assistant", "model": "fake", "content": array{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 50, "output_tokens": 1},
	}}))
	index := 0
	block := func(b *strings.Builder, start object, deltas ...object) {
		b.WriteString(event("content_block_start", object{"type": "content_block_start", "index": index, "content_block": start}))
		for _, d := range deltas {
			b.WriteString(event("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": d}))
		}
		b.WriteString(event("content_block_stop", object{"type": "content_block_stop", "index": index}))
		index++
	}
	block(&head, object{"type": "thinking", "thinking": "", "signature": ""},
		object{"type": "thinking_delta", "thinking": strict.Thought(n)}, object{"type": "signature_delta", "signature": strict.Mark(n)})
	head.WriteString(event("ping", object{"type": "ping"}))
	if a.Text != "" {
		var deltas []object
		for _, p := range pieces(a.Text) {
			deltas = append(deltas, object{"type": "text_delta", "text": p})
		}
		block(&head, object{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range a.Calls {
		deltas := []object{{"type": "input_json_delta", "partial_json": ""}}
		for _, p := range pieces(c.Arguments) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": p})
		}
		block(&tail, toolUse(c, json.RawMessage("{}")), deltas...)
	}
	tail.WriteString(event("message_delta", object{
		"type": "message_delta", "delta": object{"stop_reason": finishAnthropic(a), "stop_sequence": nil},
		"usage": object{"output_tokens": 10},
	}))
	tail.WriteString(event("message_stop", object{"type": "message_stop"}))
	return reply{http.StatusOK, "text/event-stream", head.String(), tail.String()}
}
