package strict

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Responses is OpenAI's Responses API, with encrypted reasoning.
var Responses = Format{
	Name: "Responses", Kind: "text/event-stream", History: "input",
	Serves: ends("/responses"), Streams: wants,
	Whole: responsesWhole, Frames: responsesFrames, refuse: responsesRefuse, Fail: openAIFail,
}

func responsesEnvelope(a Answer, status string, output ...any) m {
	if output == nil {
		output = []any{}
	}
	r := m{
		"id": ID("resp", a.N, 0), "object": "response", "created_at": 1700000000, "status": status, "model": "scripted",
		"output": output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{}, "error": nil,
		"incomplete_details": nil, "instructions": nil, "metadata": m{}, "temperature": 1, "top_p": 1, "usage": nil,
	}
	if a.Conversation != "" {
		r["conversation"] = m{"id": a.Conversation}
	}
	if status == "completed" {
		r["usage"] = m{
			"input_tokens": a.input(), "output_tokens": 5, "total_tokens": a.input() + 5,
			"input_tokens_details": m{"cached_tokens": 2}, "output_tokens_details": m{"reasoning_tokens": 3},
		}
	}
	return r
}

func responsesReasoning(a Answer) m {
	return m{
		"id": ID("rs", a.N, 0), "type": "reasoning", "summary": []any{m{"type": "summary_text", "text": Thought(a.N)}},
		"encrypted_content": Mark(a.N),
	}
}

func responsesText(s string) m {
	return m{"type": "output_text", "text": s, "annotations": []any{}, "logprobs": []any{}}
}

func responsesMessage(a Answer, status string, content ...any) m {
	if content == nil {
		content = []any{}
	}
	return m{"id": ID("msg", a.N, 0), "type": "message", "status": status, "role": "assistant", "content": content}
}

func responsesCall(a Answer, i int, status, arguments string) m {
	call := m{
		"id": ID("fc", a.N, i), "type": "function_call", "status": status, "call_id": ID("call", a.N, i),
		"name": a.Calls[i].Name, "arguments": arguments,
	}
	if n := a.Calls[i].Namespace; n != "" {
		call["namespace"] = n
	}
	return call
}

func responsesOutput(a Answer) []any {
	items := []any{}
	if !a.Bare {
		items = append(items, responsesReasoning(a))
	}
	if a.Text != "" {
		items = append(items, responsesMessage(a, "completed", responsesText(a.Text)))
	}
	for i, c := range a.Calls {
		items = append(items, responsesCall(a, i, "completed", c.Arguments))
	}
	return items
}

func responsesWhole(a Answer) string {
	return text(responsesEnvelope(a, "completed", responsesOutput(a)...))
}

func responsesFrames(a Answer) []Frame {
	var frames []Frame
	event := func(kind string, data m) {
		frames = append(frames, sse("response."+kind, with(data, m{"type": "response." + kind, "sequence_number": len(frames)})))
	}
	index := 0
	item := func(began, done any, place m, write func(event func(kind string, data m))) {
		event("output_item.added", m{"output_index": index, "item": began})
		write(func(kind string, data m) { event(kind, with(with(place, data), m{"output_index": index})) })
		event("output_item.done", m{"output_index": index, "item": done})
		index++
	}
	event("created", m{"response": responsesEnvelope(a, "in_progress")})
	event("in_progress", m{"response": responsesEnvelope(a, "in_progress")})
	if !a.Bare {
		item(with(responsesReasoning(a), m{"summary": []any{}, "encrypted_content": ""}), responsesReasoning(a),
			m{"item_id": ID("rs", a.N, 0), "summary_index": 0}, func(event func(string, m)) {
				event("reasoning_summary_part.added", m{"part": m{"type": "summary_text", "text": ""}})
				event("reasoning_summary_text.delta", m{"delta": Thought(a.N)})
				event("reasoning_summary_text.done", m{"text": Thought(a.N)})
				event("reasoning_summary_part.done", m{"part": m{"type": "summary_text", "text": Thought(a.N)}})
			})
	}
	if a.Text != "" {
		item(responsesMessage(a, "in_progress"), responsesMessage(a, "completed", responsesText(a.Text)),
			m{"item_id": ID("msg", a.N, 0), "content_index": 0}, func(event func(string, m)) {
				event("content_part.added", m{"part": responsesText("")})
				event("output_text.delta", m{"delta": a.Text, "logprobs": []any{}})
				event("output_text.done", m{"text": a.Text, "logprobs": []any{}})
				event("content_part.done", m{"part": responsesText(a.Text)})
			})
	}
	for i, c := range a.Calls {
		item(responsesCall(a, i, "in_progress", ""), responsesCall(a, i, "completed", c.Arguments),
			m{"item_id": ID("fc", a.N, i)}, func(event func(string, m)) {
				for _, piece := range split(c.Arguments) {
					event("function_call_arguments.delta", m{"delta": piece})
					frames[len(frames)-1].Args = true
				}
				event("function_call_arguments.done", m{"name": c.Name, "arguments": c.Arguments})
			})
	}
	event("completed", m{"response": responsesEnvelope(a, "completed", responsesOutput(a)...)})
	return frames
}

type responsesItem struct {
	Type, Role, ID, Name, Arguments string
	CallID                          string `json:"call_id"`
	EncryptedContent                string `json:"encrypted_content"`
	Output                          json.RawMessage
}

// answer returns the number of the answer that an item belongs to, -1 if it says none.
func (i responsesItem) answer() int {
	n := max(from(i.ID), marked(i.EncryptedContent))
	if n < 0 && i.Type == "function_call" {
		n = from(i.CallID)
	}
	return n
}

func responsesRefuse(body []byte, r Rules) string {
	var req struct {
		Store    *bool
		Input    json.RawMessage
		Previous string `json:"previous_response_id"` // whose items stand in front of the input
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err.Error()
	}
	items, _, err := readList[responsesItem](req.Input)
	if err != nil {
		return "Invalid type for 'input': expected one of an array of objects or string."
	}
	stored := req.Store == nil || *req.Store
	if from(req.Previous) >= r.Answers {
		return fmt.Sprintf("Previous response with id '%s' not found.", req.Previous)
	}
	ids := map[string]bool{}
	var open []string
	thought := -1 // the answer whose items go on
	for i, it := range items {
		if it.Type == "item_reference" { // stands for the item; a call's call_id has the same number
			kind := map[string]string{"rs": "reasoning", "msg": "message", "fc": "function_call"}
			prefix, number, _ := strings.Cut(it.ID, "_")
			if !stored || from(it.ID) >= r.Answers {
				return fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", it.ID)
			}
			it = responsesItem{ID: it.ID, Type: kind[prefix], CallID: "call_" + number, EncryptedContent: Mark(from(it.ID)), Arguments: "{}"}
		}
		if it.ID != "" && ids[it.ID] {
			return fmt.Sprintf("Duplicate item found with id %s. Remove duplicate items from your input and try again.", it.ID)
		}
		ids[it.ID] = true
		n := it.answer()
		prefix := map[string]string{"reasoning": "rs", "message": "msg", "function_call": "fc"}[it.Type]
		if prefix != "" && it.ID != "" && it.Role != "user" && !strings.HasPrefix(it.ID, prefix) {
			return fmt.Sprintf("Invalid 'input[%d].id': '%s'. Expected an ID that begins with '%s'.", i, it.ID, prefix)
		}
		// An item without its id cannot be looked up.
		if lacks := n >= 0 && it.ID != "" && thought != n; lacks && (it.Type == "message" || it.Type == "function_call") {
			return fmt.Sprintf("Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", it.ID, it.Type, ID("rs", n, 0))
		}
		switch it.Type {
		case "reasoning":
			if why := responsesThought(items, i, it, stored, r); why != "" {
				return why
			}
			thought = n
		case "function_call":
			switch {
			case it.CallID == "":
				return fmt.Sprintf("Missing required parameter: 'input[%d].call_id'.", i)
			case slices.Contains(open, it.CallID):
				return fmt.Sprintf("Duplicate function call with call_id %s.", it.CallID)
			case r.Strictest && !isObject(json.RawMessage(it.Arguments)):
				return fmt.Sprintf("input[%d]: arguments are not a JSON object", i)
			}
			open = append(open, it.CallID)
		case "function_call_output":
			at := slices.Index(open, it.CallID)
			switch {
			case at < 0 && from(it.CallID) >= 0 && from(it.CallID) == from(req.Previous):
				continue
			case at < 0:
				return fmt.Sprintf("No tool call found for function call output with call_id %s.", it.CallID)
			case r.Strictest && (at > 0 || isEmpty(it.Output)):
				return fmt.Sprintf("input[%d]: an empty output, or one out of order", i)
			}
			open = slices.Delete(open, at, at+1)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("No tool output found for function call %s.", open[0])
	}
	return ""
}

// responsesThought checks the reasoning item at i, and that an item of its answer is
// behind it.
func responsesThought(items []responsesItem, i int, it responsesItem, stored bool, r Rules) string {
	n := marked(it.EncryptedContent)
	switch {
	case it.EncryptedContent == "" && !stored:
		return fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", it.ID)
	case it.EncryptedContent != "" && (n < 0 || n >= r.Answers):
		return fmt.Sprintf("The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", it.ID)
	case it.EncryptedContent != "" && it.ID != "" && from(it.ID) != n:
		return fmt.Sprintf("The encrypted content for item %s could not be verified. Reason: Encrypted content item_id did not match the target item id.", it.ID)
	}
	orphan := fmt.Sprintf("Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
	if i+1 == len(items) {
		return orphan
	}
	next := items[i+1]
	of := next.answer()
	if next.Type == "reasoning" || next.Type == "function_call_output" || next.Role == "user" || of >= 0 && of != it.answer() {
		return orphan
	}
	return ""
}
