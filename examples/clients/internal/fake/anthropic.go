package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Anthropic is Anthropic Messages, with signed thinking.
var Anthropic = &Wire{
	Name: "anthropic", History: "messages", Header: "X-Api-Key",
	streamed: func(_ string, body []byte) bool { return wants(body) },
	fail: func(_ int, message string) string {
		return j(object{"type": "error", "error": object{"type": "invalid_request_error", "message": message}})
	},
	write: writeAnthropic,
	check: checkAnthropic,
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
	content := array{object{"type": "thinking", "thinking": "Hm.", "signature": Mark(n)}}
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
		object{"type": "thinking_delta", "thinking": "Hm."}, object{"type": "signature_delta", "signature": Mark(n)})
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

type anthropicBlock struct {
	Type, Text, ID, Signature string
	ToolUseID                 string `json:"tool_use_id"`
	Input, Content            json.RawMessage
}

func checkAnthropic(body []byte) error {
	var r struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	var open pending
	role := ""
	for _, m := range r.Messages {
		var blocks []anthropicBlock
		if m.Content[0] != '"' {
			if err := json.Unmarshal(m.Content, &blocks); err != nil {
				return err
			}
		}
		// A user may follow a user: the service joins them.
		if m.Role == "assistant" && role != "user" {
			return errors.New("an assistant message out of turn")
		}
		role = m.Role
		for _, b := range blocks {
			if err := checkBlock(&open, role, b); err != nil {
				return err
			}
		}
		if role == "user" {
			if err := open.none(); err != nil {
				return err
			}
		}
	}
	return open.none()
}

func checkBlock(open *pending, role string, b anthropicBlock) error {
	switch {
	case b.Type == "tool_use" && role == "assistant":
		return errors.Join(open.call(b.ID), isObject(string(b.Input)))
	case b.Type == "tool_result" && role == "user" && len(b.Content) > len(`""`):
		return open.answer(b.ToolUseID)
	case b.Type == "text" && b.Text != "":
		if role == "user" {
			return open.none() // results come first
		}
		return nil
	case b.Type == "thinking" && b.Signature != "":
		return nil
	}
	return fmt.Errorf("a block of type %q that cannot stand there", b.Type)
}
