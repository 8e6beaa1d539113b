package fake

import (
	"fmt"
	"net/http"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// Responses is OpenAI Responses, unary, with encrypted reasoning.
var Responses = &Wire{
	Name: "responses", History: "input", Header: "Authorization", base: "/v1",
	streamed: func(string, []byte) bool { return false },
	fail:     Chat.fail,
	write:    writeResponses,
	Mark:     strict.Mark, rules: strict.Responses,
}

func writeResponses(n int, a Answer, _ bool) reply {
	output := array{object{
		"id": strict.ID("rs", n, 0), "type": "reasoning", "summary": array{}, "encrypted_content": strict.Mark(n),
	}}
	if a.Text != "" {
		output = append(output, object{
			"id": strict.ID("msg", n, 0), "type": "message", "status": "completed", "role": "assistant",
			"content": array{object{"type": "output_text", "annotations": array{}, "logprobs": array{}, "text": a.Text}},
		})
	}
	for i, c := range a.Calls {
		item := object{
			"id": strict.ID("fc", n, i), "type": "function_call", "status": "completed",
			"name": c.Name, "arguments": c.Arguments,
		}
		if c.ID != "" {
			item["call_id"] = c.ID
		}
		output = append(output, item)
	}
	body := object{
		"id": fmt.Sprint("resp_", n), "object": "response", "created_at": 1700000000, "status": "completed",
		"error": nil, "incomplete_details": nil, "model": "fake", "output": output, "store": true,
		"usage": object{
			"input_tokens": 50, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": 10, "output_tokens_details": object{"reasoning_tokens": 3}, "total_tokens": 60,
		},
	}
	if a.Cut {
		body["status"], body["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	}
	return reply{status: http.StatusOK, kind: "application/json", head: j(body)}
}
