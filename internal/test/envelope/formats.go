package envelope

import (
	"fmt"
	"strings"
)

// The tools that a request offers: one whose arguments are easy to get wrong, and one
// that takes none.
const (
	payTool  = `{"name":"pay","parameters":` + Schema + `}`
	pingTool = `{"name":"ping","parameters":` + Empty + `}`
	nested   = `"tools":[{"type":"function","function":` + payTool + `},{"type":"function","function":` + pingTool + `}]`
)

// each joins what write says of each call.
func each(calls []said, write func(i int, c said) string) string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = write(i, c)
	}
	return strings.Join(out, ",")
}

// object returns the arguments where only an object can stand.
func (c said) object() string {
	if c.Arguments == "" {
		return "{}"
	}
	return c.Arguments
}

// chat is the format of OpenAI Chat Completions. A call begins with its name and no
// arguments, as OpenAI sends it.
var chat = Format{
	Name: "chat", path: "/v1/chat/completions",
	request: `{"model":"m","stream":%t,"messages":[{"role":"user","content":"?"}],` + nested + `}`,
	holders: map[string]byte{"choices": '[', "message": '{', "delta": '{', "tool_calls": '[', "function": '{', "function_call": '{'},
	fits:    fits[chatBody],
	whole: func(calls []said) string {
		return `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"one","tool_calls":[` +
			each(calls, func(i int, c said) string {
				return fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":%q,"arguments":%s}}`, i+1, c.Name, quote(c.Arguments))
			}) + `]},"finish_reason":"tool_calls"}]}`
	},
	events: func(calls []said) []event {
		chunk := func(choice string) event {
			return event{"", `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,` + choice + `}]}`}
		}
		out := []event{chunk(`"delta":{"role":"assistant","content":"one"}`)}
		for i, c := range calls {
			out = append(out, chunk(fmt.Sprintf(`"delta":{"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":%q,"arguments":""}}]}`, i, i+1, c.Name)))
			for _, p := range c.pieces {
				out = append(out, chunk(fmt.Sprintf(`"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(p))))
			}
		}
		return append(out, chunk(`"delta":{},"finish_reason":"tool_calls"`), event{"", "[DONE]"})
	},
}

// anthropic is the format of Anthropic Messages. A text comes before the calls, so that
// a block and its call have different indexes.
var anthropic = Format{
	Name: "anthropic", path: "/v1/messages",
	request: `{"model":"m","max_tokens":9,"stream":%t,"messages":[{"role":"user","content":"?"}],"tools":[{"name":"pay","input_schema":` + Schema +
		`},{"name":"ping","input_schema":` + Empty + `}]}`,
	holders: map[string]byte{"message": '{', "content": '[', "content_block": '{', "delta": '{'},
	fits:    fits[anthropicEvent],
	whole: func(calls []said) string {
		return `{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"one"},` +
			each(calls, func(i int, c said) string {
				return fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":%q,"input":%s}`, i+1, c.Name, c.object())
			}) + `],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
	},
	events: func(calls []said) []event {
		ev := func(kind, rest string) event { return event{kind, `{"type":"` + kind + `"` + rest + `}`} }
		out := []event{
			ev("message_start", `,"message":{"id":"x","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}`),
			ev("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
			ev("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"one"}`),
			ev("content_block_stop", `,"index":0`),
		}
		for i, c := range calls {
			out = append(out, ev("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":{"type":"tool_use","id":"c%d","name":%q,"input":{}}`, i+1, i+1, c.Name)))
			for _, p := range c.pieces {
				out = append(out, ev("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i+1, quote(p))))
			}
			out = append(out, ev("content_block_stop", fmt.Sprintf(`,"index":%d`, i+1)))
		}
		return append(out, ev("message_delta", `,"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}`), ev("message_stop", ""))
	},
}

// responses is the format of OpenAI Responses, with all copies of a call: in the item as
// it is added and done, in deltas, in the finished arguments, and in the last response.
var responses = Format{
	Name: "responses", path: "/v1/responses",
	request: `{"model":"m","stream":%t,"store":false,"input":[{"role":"user","content":"?"}],"tools":[{"type":"function",` + payTool[1:] + `,{"type":"function",` + pingTool[1:] + `]}`,
	holders: map[string]byte{"response": '{', "output": '[', "item": '{'},
	fits:    fits[responsesEvent],
	whole:   responsesWhole,
	events: func(calls []said) []event {
		var out []event
		ev := func(kind, rest string, args ...any) {
			out = append(out, event{kind, fmt.Sprintf(`{"type":%q,"sequence_number":%d,%s}`, kind, len(out), fmt.Sprintf(rest, args...))})
		}
		ev("response.created", `"response":{"id":"x","object":"response","status":"in_progress","model":"m","output":[]}`)
		for i, c := range calls {
			ev("response.output_item.added", `"output_index":%d,"item":{"id":"fc%d","type":"function_call","status":"in_progress","call_id":"c%d","name":%q,"arguments":""}`, i, i+1, i+1, c.Name)
			for _, p := range c.pieces {
				ev("response.function_call_arguments.delta", `"item_id":"fc%d","output_index":%d,"delta":%s`, i+1, i, quote(p))
			}
			ev("response.function_call_arguments.done", `"item_id":"fc%d","output_index":%d,"arguments":%s`, i+1, i, quote(c.Arguments))
			ev("response.output_item.done", `"output_index":%d,"item":%s`, i, responsesItem(i, c))
		}
		ev("response.completed", `"response":%s`, responsesWhole(calls))
		return out
	},
}

// responsesItem returns a call as a finished item.
func responsesItem(i int, c said) string {
	return fmt.Sprintf(`{"id":"fc%d","type":"function_call","status":"completed","call_id":"c%d","name":%q,"arguments":%s}`, i+1, i+1, c.Name, quote(c.Arguments))
}

// responsesWhole returns a finished response object.
func responsesWhole(calls []said) string {
	return `{"id":"x","object":"response","status":"completed","model":"m","output":[` + each(calls, responsesItem) +
		`],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
}

// gemini is the format of Gemini, on the Developer API. Calls come whole.
var gemini = Format{
	Name: "gemini", path: "/v1beta/models/m:generateContent /v1beta/models/m:streamGenerateContent?alt=sse",
	request: `{"contents":[{"role":"user","parts":[{"text":"?"}]}],"tools":[{"functionDeclarations":[{"name":"pay","parametersJsonSchema":` + Schema +
		`},{"name":"ping","parametersJsonSchema":` + Empty + `}]}]}`,
	holders: map[string]byte{"candidates": '[', "content": '{', "parts": '[', "functionCall": '{'},
	fits:    fits[geminiBody],
	whole:   func(calls []said) string { return geminiChunk(`{"text":"one"},` + each(calls, geminiPart)) },
	events: func(calls []said) []event {
		return []event{
			{"", `{"candidates":[{"content":{"role":"model","parts":[{"text":"one"}]},"index":0}],"modelVersion":"m"}`},
			{"", geminiChunk(each(calls, geminiPart))},
		}
	},
}

// geminiPart returns a call as a part. %q writes names as JSON, since ours are ASCII.
func geminiPart(_ int, c said) string {
	return fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, c.Name, c.object())
}

// geminiChunk returns a chunk that ends the answer.
func geminiChunk(parts string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"STOP","index":0}],"modelVersion":"m"}`
}

// ollama is the format of Ollama chat. Its arguments are objects.
var ollama = Format{
	Name: "ollama", path: "/api/chat", lines: true,
	request: `{"model":"m","stream":%t,"messages":[{"role":"user","content":"?"}],` + nested + `}`,
	holders: map[string]byte{"message": '{', "tool_calls": '[', "function": '{'},
	fits:    fits[ollamaBody],
	whole: func(calls []said) string {
		return ollamaLine(`"content":"one","tool_calls":[`+each(calls, ollamaCall)+`]`, `true,"done_reason":"stop"`)
	},
	events: func(calls []said) []event {
		return []event{
			{"", ollamaLine(`"content":"one"`, "false")},
			{"", ollamaLine(`"content":"","tool_calls":[`+each(calls, ollamaCall)+`]`, "false")},
			{"", ollamaLine(`"content":""`, `true,"done_reason":"stop"`)},
		}
	},
}

// ollamaCall returns a call. Older servers give it no id.
func ollamaCall(_ int, c said) string {
	return fmt.Sprintf(`{"function":{"name":%q,"arguments":%s}}`, c.Name, c.object())
}

// ollamaLine returns a line of an answer, or all of one that is not streamed.
func ollamaLine(message, done string) string {
	return `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant",` + message + `},"done":` + done + `}`
}
