package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Chat is OpenAI's Chat Completions API, with reasoning_content as DeepSeek and others
// send it.
var Chat = Format{
	Name: "Chat", Kind: "text/event-stream", History: "messages",
	Serves: ends("/chat/completions"), Streams: wants,
	Whole: chatWhole, Frames: func(a Answer) []Frame { return chatFrames(a, true) }, refuse: chatRefuse, Fail: openAIFail,
}

// Mistral is Chat as Mistral streams it, each call in one piece, since its SDKs read no
// other; and with its rules about roles. Sources: datapizza-labs/datapizza-ai#98,
// huggingface/smolagents#757, OpenHands/OpenHands#8685.
var Mistral = func() Format {
	f := Chat.Refusing(func(body []byte) string {
		var req struct {
			Messages []struct {
				Role      string
				Content   json.RawMessage
				ToolCalls []json.RawMessage `json:"tool_calls"`
			}
		}
		if json.Unmarshal(body, &req) != nil {
			return ""
		}
		last := ""
		for _, msg := range req.Messages {
			if msg.Role == "user" && last == "tool" {
				return "Unexpected role 'user' after role 'tool'"
			}
			if msg.Role == "assistant" && isEmpty(msg.Content) && len(msg.ToolCalls) == 0 {
				return "Assistant message must have either content or tool_calls, but not none."
			}
			last = msg.Role
		}
		if last == "assistant" {
			return "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
		}
		return ""
	})
	f.Frames = func(a Answer) []Frame { return chatFrames(a, false) }
	return f
}()

// Alternating is Chat as a server with a chat template refuses it whose roles must alternate,
// such as Gemma's. Sources: google/adk-python#1373, microsoft/autogen#1037.
var Alternating = Chat.Refusing(func(body []byte) string {
	var req struct{ Messages []struct{ Role string } }
	if json.Unmarshal(body, &req) != nil {
		return ""
	}
	last := ""
	for _, msg := range req.Messages {
		if msg.Role == last && (last == "user" || last == "assistant") {
			return "Conversation roles must alternate user/assistant/user/assistant/..."
		}
		last = msg.Role
	}
	return ""
})

func openAIFail(status int, message string) string {
	kind, code := "invalid_request_error", any(nil)
	if status == 429 {
		kind, code = "requests", "rate_limit_exceeded"
	}
	return text(m{"error": m{"message": message, "type": kind, "param": nil, "code": code}})
}

func chatStop(a Answer) string {
	if a.Finish != "" {
		return a.Finish
	}
	if len(a.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func chatEnvelope(a Answer, object string, choices ...any) m {
	if choices == nil {
		choices = []any{}
	}
	return m{"id": ID("chatcmpl", a.N, 0), "object": object, "created": 1700000000, "model": "scripted", "choices": choices}
}

func chatUsage(a Answer) m {
	return m{"usage": m{
		"prompt_tokens": a.input(), "completion_tokens": 5, "total_tokens": a.input() + 5,
		"prompt_tokens_details": m{"cached_tokens": 2}, "completion_tokens_details": m{"reasoning_tokens": 3},
	}}
}

func chatCall(a Answer, i int, arguments string) m {
	return m{"id": ID("call", a.N, i), "type": "function", "function": m{"name": a.Calls[i].Name, "arguments": arguments}}
}

func chatWhole(a Answer) string {
	message := m{"role": "assistant", "content": nil}
	if !a.Bare {
		message["reasoning_content"] = Thought(a.N)
	}
	if a.Text != "" {
		message["content"] = a.Text
	}
	var calls []any
	for i, c := range a.Calls {
		calls = append(calls, chatCall(a, i, c.Arguments))
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return text(with(chatEnvelope(a, "chat.completion", m{"index": 0, "message": message, "finish_reason": chatStop(a)}), chatUsage(a)))
}

// chatFrames streams the arguments of a call in deltas of their own, or the call in one.
func chatFrames(a Answer, deltas bool) []Frame {
	chunk := func(delta m, finish any) Frame {
		return sse("", chatEnvelope(a, "chat.completion.chunk", m{"index": 0, "delta": delta, "finish_reason": finish}))
	}
	frames := []Frame{chunk(m{"role": "assistant", "content": ""}, nil)}
	if !a.Bare {
		frames = append(frames, chunk(m{"reasoning_content": Thought(a.N)}, nil))
	}
	if a.Text != "" {
		frames = append(frames, chunk(m{"content": a.Text}, nil))
	}
	for i, c := range a.Calls {
		if !deltas {
			f := chunk(m{"tool_calls": []any{with(chatCall(a, i, c.Arguments), m{"index": i})}}, nil)
			f.Args = true
			frames = append(frames, f)
			continue
		}
		frames = append(frames, chunk(m{"tool_calls": []any{with(chatCall(a, i, ""), m{"index": i})}}, nil))
		for _, part := range split(c.Arguments) {
			f := chunk(m{"tool_calls": []any{m{"index": i, "function": m{"arguments": part}}}}, nil)
			f.Args = true
			frames = append(frames, f)
		}
	}
	return append(frames, chunk(m{}, chatStop(a)), sse("", with(chatEnvelope(a, "chat.completion.chunk"), chatUsage(a))), Frame{Text: "data: [DONE]\n\n"})
}

func chatRefuse(body []byte, r Rules) string {
	var req struct {
		Messages []struct {
			Role             string
			Content          json.RawMessage
			ReasoningContent string `json:"reasoning_content"`
			ToolCallID       string `json:"tool_call_id"`
			ToolCalls        []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err.Error()
	}
	if len(req.Messages) == 0 {
		return "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
	}
	var open []string
	missing := func() string {
		return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: " + strings.Join(open, ", ")
	}
	for i, msg := range req.Messages {
		if msg.Role == "tool" {
			at := slices.Index(open, msg.ToolCallID)
			switch {
			case at < 0:
				return "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
			case r.Strictest && (at > 0 || isEmpty(msg.Content)):
				return fmt.Sprintf("messages[%d]: an empty result, or one out of order", i)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		switch content := string(bytes.TrimSpace(msg.Content)); {
		case len(open) > 0:
			return missing()
		case msg.Role == "assistant" && len(msg.ToolCalls) == 0 && (content == "" || content == "null"):
			return fmt.Sprintf("Invalid value for 'content': expected a string, got null. (messages[%d])", i)
		}
		thought := strings.TrimSpace(msg.ReasoningContent) // a blank stands for reasoning that was lost
		for j, c := range msg.ToolCalls {
			n := from(c.ID)
			switch {
			case msg.Role != "assistant":
				return fmt.Sprintf("Additional properties are not allowed ('tool_calls' was unexpected) - 'messages.%d'", i)
			case c.ID == "":
				return fmt.Sprintf("Invalid 'messages[%d].tool_calls[%d].id': empty string. Expected a string with minimum length 1, but got an empty string instead.", i, j)
			case slices.Contains(open, c.ID):
				return fmt.Sprintf("Duplicate value for 'tool_call_id' of '%s'", c.ID)
			case c.Function.Name == "":
				return fmt.Sprintf("Missing required parameter: 'messages[%d].tool_calls[%d].function.name'.", i, j)
			case r.Strictest && !isObject(json.RawMessage(c.Function.Arguments)):
				return fmt.Sprintf("messages[%d].tool_calls[%d]: function.arguments is not a JSON object", i, j)
			case r.Strictest && thought == "":
				return fmt.Sprintf("thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", i)
			// Shown text keeps the reasoning in front of it, also if the call is of a later answer.
			case thought != "" && thoughtFrom(thought) >= r.Answers, thought != "" && thoughtFrom(thought) < 0, n >= 0 && thought != "" && isEmpty(msg.Content) && thought != Thought(n):
				return "The `reasoning_content` in the thinking mode must be passed back to the API."
			}
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return missing()
	}
	return ""
}
