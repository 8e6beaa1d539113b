package strict

import (
	"encoding/json"
	"fmt"
)

// Ollama is Ollama's own chat API, with thinking.
var Ollama = Format{
	Name: "Ollama", Kind: "application/x-ndjson", History: "messages",
	Serves: ends("/api/chat"),
	Streams: func(_ string, body []byte) bool {
		var r struct{ Stream *bool }
		return json.Unmarshal(body, &r) == nil && (r.Stream == nil || *r.Stream)
	},
	Whole: func(a Answer) string {
		message := m{"content": a.Text}
		if !a.Bare {
			message["thinking"] = Thought(a.N)
		}
		if calls := ollamaCalls(a); calls != nil {
			message["tool_calls"] = calls
		}
		return ollamaLine(a, message, true)
	},
	Frames: ollamaFrames, refuse: ollamaRefuse,
	Fail: func(_ int, message string) string { return text(m{"error": message}) },
}

func ollamaLine(a Answer, message m, done bool) string {
	line := m{"model": "scripted", "created_at": "2026-01-01T00:00:00Z", "message": with(message, m{"role": "assistant"}), "done": done}
	if done {
		line = with(line, m{
			"done_reason": "stop", "total_duration": 5, "load_duration": 1, "prompt_eval_count": a.input(), "prompt_eval_duration": 2,
			"eval_count": 5, "eval_duration": 2,
		})
	}
	return text(line)
}

func ollamaCalls(a Answer) []any {
	var calls []any
	for i, c := range a.Calls {
		calls = append(calls, m{"id": ID("call", a.N, i), "function": m{"index": i, "name": c.Name, "arguments": raw(c.Arguments)}})
	}
	return calls
}

func ollamaFrames(a Answer) []Frame {
	line := func(message m, done bool) Frame { return Frame{Text: ollamaLine(a, message, done) + "\n"} }
	var frames []Frame
	if !a.Bare {
		frames = append(frames, line(m{"content": "", "thinking": Thought(a.N)}, false))
	}
	if a.Text != "" {
		frames = append(frames, line(m{"content": a.Text}, false))
	}
	if calls := ollamaCalls(a); calls != nil {
		f := line(m{"content": "", "tool_calls": calls}, false)
		f.Args = true
		frames = append(frames, f)
	}
	return append(frames, line(m{"content": ""}, true))
}

// ollamaRefuse: Ollama's server takes every history whose arguments are objects. The
// templates of its models pair calls and results by their order, so Strictest does too.
func ollamaRefuse(body []byte, r Rules) string {
	var req struct {
		Messages []struct {
			Role, Content string
			ToolName      string `json:"tool_name"`
			ToolCallID    string `json:"tool_call_id"`
			ToolCalls     []struct {
				ID       string
				Function struct {
					Name      string
					Arguments json.RawMessage
				}
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err.Error()
	}
	type call struct{ id, name string }
	var open []call
	for _, msg := range req.Messages {
		if msg.Role == "tool" {
			if r.Strictest && (msg.Content == "" || len(open) == 0 || msg.ToolName != open[0].name || msg.ToolCallID != open[0].id) {
				return fmt.Sprintf("result of %q %q, waiting for %q", msg.ToolName, msg.ToolCallID, open)
			}
			open = open[min(1, len(open)):]
			continue
		}
		if r.Strictest && len(open) > 0 {
			return fmt.Sprintf("no result for %q", open)
		}
		open = nil
		for _, c := range msg.ToolCalls {
			if !isObject(c.Function.Arguments) {
				return "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments"
			}
			open = append(open, call{c.ID, c.Function.Name})
		}
	}
	if r.Strictest && len(open) > 0 {
		return fmt.Sprintf("no result for %q", open)
	}
	return ""
}
