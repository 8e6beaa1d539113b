package e2e

// anthropic is Anthropic's Messages API.
var anthropic = format{name: "Messages", path: "/messages", frames: anthropicFrames, whole: anthropicWhole}

func anthropicMessage(id, stop string, content ...any) m {
	var reason any
	if stop != "" {
		reason = stop
	}
	return m{
		"id": "msg_" + id, "type": "message", "role": "assistant", "model": "scripted", "content": content,
		"stop_reason": reason, "stop_sequence": nil, "usage": m{"input_tokens": 10, "output_tokens": 5},
	}
}

func anthropicStop(a answer) string {
	if len(a.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func anthropicWhole(a answer, id string) string {
	content := []any{m{"type": "text", "text": a.text}}
	for i, c := range a.calls {
		content = append(content, m{"type": "tool_use", "id": callID("toolu", id, i), "name": c.name, "input": raw(c.args)})
	}
	return text(anthropicMessage(id, anthropicStop(a), content...))
}

func anthropicFrames(a answer, id string) []frame {
	event := func(kind string, data m) frame {
		data["type"] = kind
		return sse(kind, data)
	}
	start := anthropicMessage(id, "")
	start["content"] = []any{}
	frames := []frame{
		event("message_start", m{"message": start}),
		event("content_block_start", m{"index": 0, "content_block": m{"type": "text", "text": ""}}),
		event("content_block_delta", m{"index": 0, "delta": m{"type": "text_delta", "text": a.text}}),
		event("content_block_stop", m{"index": 0}),
	}
	for i, c := range a.calls {
		frames = append(frames, event("content_block_start", m{"index": 1 + i, "content_block": m{
			"type": "tool_use", "id": callID("toolu", id, i), "name": c.name, "input": m{},
		}}))
		for _, part := range split(c.args) {
			f := event("content_block_delta", m{"index": 1 + i, "delta": m{"type": "input_json_delta", "partial_json": part}})
			f.args = true
			frames = append(frames, f)
		}
		frames = append(frames, event("content_block_stop", m{"index": 1 + i}))
	}
	return append(frames,
		event("message_delta", m{"delta": m{"stop_reason": anthropicStop(a), "stop_sequence": nil}, "usage": m{"output_tokens": 5}}),
		event("message_stop", m{}),
	)
}
