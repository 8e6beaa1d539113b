package e2e

import "encoding/json"

// responses is OpenAI's Responses API.
var responses = format{name: "Responses", path: "/responses", frames: responsesFrames, whole: responsesWhole}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func responsesEnvelope(id, status string, output ...any) m {
	if output == nil {
		output = []any{}
	}
	r := m{
		"id": "resp_" + id, "object": "response", "created_at": 1700000000, "status": status, "model": "scripted",
		"output": output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{}, "error": nil,
		"incomplete_details": nil, "instructions": nil, "metadata": m{}, "temperature": 1, "top_p": 1, "usage": nil,
	}
	if status == "completed" {
		r["usage"] = m{
			"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
			"input_tokens_details": m{"cached_tokens": 0}, "output_tokens_details": m{"reasoning_tokens": 0},
		}
	}
	return r
}

func responsesText(s string) m { return m{"type": "output_text", "text": s, "annotations": []any{}} }

func responsesMessage(id, status string, content ...any) m {
	if content == nil {
		content = []any{}
	}
	return m{"id": "msg_" + id, "type": "message", "status": status, "role": "assistant", "content": content}
}

func responsesCall(id string, i int, status, name, args string) m {
	return m{"id": callID("fc", id, i), "type": "function_call", "status": status, "call_id": callID("call", id, i), "name": name, "arguments": args}
}

func responsesOutput(a answer, id string) []any {
	items := []any{responsesMessage(id, "completed", responsesText(a.text))}
	for i, c := range a.calls {
		items = append(items, responsesCall(id, i, "completed", c.name, c.args))
	}
	return items
}

func responsesWhole(a answer, id string) string {
	return text(responsesEnvelope(id, "completed", responsesOutput(a, id)...))
}

func responsesFrames(a answer, id string) []frame {
	var frames []frame
	event := func(kind string, data m) {
		data["type"] = "response." + kind
		data["sequence_number"] = len(frames)
		frames = append(frames, sse("response."+kind, data))
	}
	items := responsesOutput(a, id)
	event("created", m{"response": responsesEnvelope(id, "in_progress")})
	event("in_progress", m{"response": responsesEnvelope(id, "in_progress")})

	part := m{"item_id": "msg_" + id, "output_index": 0, "content_index": 0}
	with := func(more m) m {
		for k, v := range part {
			more[k] = v
		}
		return more
	}
	event("output_item.added", m{"output_index": 0, "item": responsesMessage(id, "in_progress")})
	event("content_part.added", with(m{"part": responsesText("")}))
	event("output_text.delta", with(m{"delta": a.text, "logprobs": []any{}}))
	event("output_text.done", with(m{"text": a.text, "logprobs": []any{}}))
	event("content_part.done", with(m{"part": responsesText(a.text)}))
	event("output_item.done", m{"output_index": 0, "item": items[0]})

	for i, c := range a.calls {
		event("output_item.added", m{"output_index": 1 + i, "item": responsesCall(id, i, "in_progress", c.name, "")})
		for _, piece := range split(c.args) {
			event("function_call_arguments.delta", m{"item_id": callID("fc", id, i), "output_index": 1 + i, "delta": piece})
			frames[len(frames)-1].args = true
		}
		event("function_call_arguments.done", m{
			"item_id": callID("fc", id, i), "output_index": 1 + i, "name": c.name, "arguments": c.args,
		})
		event("output_item.done", m{"output_index": 1 + i, "item": items[1+i]})
	}
	event("completed", m{"response": responsesEnvelope(id, "completed", items...)})
	return frames
}
