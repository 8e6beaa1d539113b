package e2e

// chat is OpenAI's Chat Completions API.
var chat = format{name: "Chat", path: "/chat/completions", frames: chatFrames, whole: chatWhole}

func chatStop(a answer) string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func chatEnvelope(id, object string, choices ...any) m {
	if choices == nil {
		choices = []any{}
	}
	return m{"id": "chatcmpl-" + id, "object": object, "created": 1700000000, "model": "scripted", "choices": choices}
}

func chatUsage() m { return m{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15} }

func chatWhole(a answer, id string) string {
	message := m{"role": "assistant", "content": a.text}
	if len(a.calls) > 0 {
		var calls []any
		for i, c := range a.calls {
			calls = append(calls, m{"id": callID("call", id, i), "type": "function", "function": m{"name": c.name, "arguments": c.args}})
		}
		message["tool_calls"] = calls
	}
	whole := chatEnvelope(id, "chat.completion", m{"index": 0, "message": message, "finish_reason": chatStop(a)})
	whole["usage"] = chatUsage()
	return text(whole)
}

func chatFrames(a answer, id string) []frame {
	chunk := func(delta m, finish any) frame {
		return sse("", chatEnvelope(id, "chat.completion.chunk", m{"index": 0, "delta": delta, "finish_reason": finish}))
	}
	frames := []frame{chunk(m{"role": "assistant", "content": ""}, nil), chunk(m{"content": a.text}, nil)}
	for i, c := range a.calls {
		frames = append(frames, chunk(m{"tool_calls": []any{m{
			"index": i, "id": callID("call", id, i), "type": "function", "function": m{"name": c.name, "arguments": ""},
		}}}, nil))
		for _, part := range split(c.args) {
			f := chunk(m{"tool_calls": []any{m{"index": i, "function": m{"arguments": part}}}}, nil)
			f.args = true
			frames = append(frames, f)
		}
	}
	usage := chatEnvelope(id, "chat.completion.chunk")
	usage["usage"] = chatUsage()
	return append(frames, chunk(m{}, chatStop(a)), sse("", usage), frame{text: "data: [DONE]\n\n"})
}
