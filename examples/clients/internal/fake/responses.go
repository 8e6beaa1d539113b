package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Responses is OpenAI Responses, unary, with encrypted reasoning.
var Responses = &Wire{
	Name: "responses", History: "input", Header: "Authorization", base: "/v1",
	streamed: func(string, []byte) bool { return false },
	fail:     Chat.fail,
	write:    writeResponses,
	check:    checkResponses,
}

func writeResponses(n int, a Answer, _ bool) reply {
	output := array{object{
		"id": fmt.Sprint("rs_", n), "type": "reasoning", "summary": array{}, "encrypted_content": Mark(n),
	}}
	if a.Text != "" {
		output = append(output, object{
			"id": fmt.Sprint("msg_", n), "type": "message", "status": "completed", "role": "assistant",
			"content": array{object{"type": "output_text", "annotations": array{}, "logprobs": array{}, "text": a.Text}},
		})
	}
	for i, c := range a.Calls {
		item := object{
			"id": fmt.Sprintf("fc_%d_%d", n, i), "type": "function_call", "status": "completed",
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

func checkResponses(body []byte) error {
	var r struct{ Input json.RawMessage }
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	items, err := turns(r.Input)
	if err != nil {
		return err
	}
	var open pending
	reasoned := false // the item before is reasoning, which must not stand alone
	for _, raw := range items {
		var item struct {
			Type, Role, Name, Arguments string
			CallID                      string `json:"call_id"`
			Output                      json.RawMessage
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		switch {
		case item.Type == "function_call":
			err = errors.Join(open.call(item.CallID), isObject(item.Arguments))
		case item.Type == "function_call_output" && (reasoned || len(item.Output) == 0):
			err = errors.New("reasoning without its item, or an empty result")
		case item.Type == "function_call_output":
			err = open.answer(item.CallID)
		case item.Type == "reasoning" || item.Role != "":
			err = open.none()
		default:
			err = fmt.Errorf("item of type %q", item.Type)
		}
		if err != nil {
			return err
		}
		reasoned = item.Type == "reasoning"
	}
	return open.none()
}
