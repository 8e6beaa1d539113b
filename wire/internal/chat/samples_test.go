package chat_test

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// requests, answers and streams are bodies with the habits of many servers.
var requests = map[string]string{
	"plain": `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`,
	"everything": `{
  "model": "m", "temperature": 0.50, "max_tokens": 100, "stop": "END", "seed": 12345678901234567890,
  "messages": [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Weather?", "cache_control": {"type": "ephemeral"}},
      {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC", "detail": "low"}},
      {"type": "input_audio", "input_audio": {"data": "AAEC", "format": "mp3"}},
      {"type": "file", "file": {"file_id": "f1"}}, {"type": "hologram", "depth": 3}]},
    {"role": "assistant", "content": null, "reasoning_content": "Think.", "vendor": {"a": [1]},
      "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}, "extra_content": {"sig": "x"}},
        {"index": 1, "id": "c2", "function": {"name": "time", "arguments": ""}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "tool", "tool_call_id": "c2", "name": "time", "content": [{"type": "text", "text": "noon"}]}
  ],
  "tools": [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}, "strict": true}},
    {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}}, {"type": "web_search"}, {"function": {"name": "time"}}],
  "tool_choice": {"type": "function", "function": {"name": "weather"}}, "parallel_tool_calls": false}`,
	"file": `{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a","file_data":"data:application/pdf;base64,AAEC"}},{"type":"refusal","refusal":"x"},"plain"]}]}`,
	"odd":  `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"audio":{"id":"x"}},{"refusal":"r"},{"reasoning":"t"},{}]}]}`,
	"old": `{"model":"m","messages":[{"role":"user","content":"Weather?"},` +
		`{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":"{}"}},{"role":"function","name":"weather","content":"rain"}],` +
		`"functions":[{"name":"weather","parameters":{"type":"object"}}],"function_call":"auto"}`,
}

var answers = map[string]string{
	"text": `{"id":"r1","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}`,
	"calls": `{"id":"r1","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Let me see.","reasoning":"Hm.","tool_calls":[` +
		`{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"\"}"},"extra_content":{"sig":"x"}},` +
		`{"id":"c2","function":{"name":"time"}},{"id":"c3","type":"custom","custom":{"name":"sql","input":"select 1"}}]},"finish_reason":"tool_calls"}],` +
		`"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4}}}`,
	"object":  `{"choices":[{"message":{"content":{"a":1},"tool_calls":[{"id":"c1","function":{"name":"f","arguments":{"a":1}}}]},"finish_reason":""}]}`,
	"old":     `{"choices":[{"message":{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":"{}"}},"finish_reason":"function_call"}]}`,
	"two":     `{"choices":[{"index":0,"message":{"role":"assistant","content":"A"},"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"B"},"finish_reason":"stop"}]}`,
	"mistral": `{"choices":[{"message":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}],"closed":true},{"type":"text","text":"Hello"}]},"finish_reason":"stop"}]}`,
	"refusal": `{"choices":[{"message":{"role":"assistant","content":null,"refusal":"No."},"finish_reason":"stop"}]}`,
	"audio":   `{"choices":[{"message":{"role":"assistant","content":null,"audio":{"id":"a1","data":"AAEC","transcript":"Hi"}},"finish_reason":"stop"}]}`,
}

var streams = map[string]string{
	"openai": eventStream(
		`{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null,"obfuscation":"xx"}`,
		`{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"content":"Let me "},"finish_reason":null}],"usage":null}`,
		`{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"content":"see."},"finish_reason":null}],"usage":null}`,
		`{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}],"usage":null}`,
		`{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]},"finish_reason":null}],"usage":null}`,
		`{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"\"}"}}]},"finish_reason":null}],"usage":null}`,
		`{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"time","arguments":"{}"}}]},"finish_reason":null}],"usage":null}`,
		`{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}`,
		`{"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}`,
		"[DONE]"),
	"text": eventStream(
		`{"id":"r1","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}`,
		`{"id":"r1","model":"m-1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`, "[DONE]"),
	// comments, role and usage everywhere, reasoning twice, two finish chunks
	"openrouter": ": PROCESSING\n\n" + eventStream(
		`{"id":"g1","model":"m-1","provider":"P","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"H","reasoning_details":[{"type":"reasoning.text","text":"H","index":0}]}}]}`,
		`{"id":"g1","model":"m-1","provider":"P","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"m.","reasoning_details":[{"type":"reasoning.text","text":"m.","signature":"s","index":0}]}}]}`,
		`{"id":"g1","model":"m-1","provider":"P","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather"}}]}}]}`,
		`{"id":"g1","model":"m-1","provider":"P","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"tool_calls","native_finish_reason":"tool_use"}]}`,
		`{"id":"g1","model":"m-1","provider":"P","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"tool_calls","native_finish_reason":"tool_use"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}`,
		"[DONE]"),
	// lists and texts in one stream, the call whole in the finish chunk, no type
	"mistral": eventStream(
		`{"id":"a","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		`{"id":"a","model":"m-1","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"H"}]}]},"finish_reason":null}]}`,
		`{"id":"a","model":"m-1","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m."}],"closed":true}]},"finish_reason":null}]}`,
		`{"id":"a","model":"m-1","choices":[{"index":0,"delta":{"content":[{"type":"text","text":"On"}]},"finish_reason":null}]}`,
		`{"id":"a","model":"m-1","choices":[{"index":0,"delta":{"content":"e."},"finish_reason":null}]}`,
		`{"id":"a","model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"id":"c1","function":{"name":"weather","arguments":"{\"city\": \"\"}"},"index":0}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12},"p":"ab"}`,
		"[DONE]"),
	// CRLF, delta and message, usage on every chunk, no [DONE]
	"perplexity": strings.ReplaceAll(eventStream(
		`{"id":"p","model":"sonar","usage":{"prompt_tokens":8,"completion_tokens":1,"total_tokens":9},"object":"chat.completion.chunk","choices":[{"index":0,"message":{"role":"assistant","content":"One"},"delta":{"role":"assistant","content":"One"}}]}`,
		`{"id":"p","model":"sonar","usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10},"object":"chat.completion.done","choices":[{"index":0,"message":{"role":"assistant","content":"One two"},"delta":{"role":"assistant","content":" two"},"finish_reason":"stop"}]}`), "\n", "\r\n"),
	// no finish_reason; an id in every delta; every call numbered 0
	"odd": eventStream(
		`{"id":"","choices":[{"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"a\":"}}]}}]}`,
		`{"id":"","choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":null,"arguments":"1}"}}]}}]}`,
		`{"id":"","choices":[{"delta":{"tool_calls":[{"index":0,"id":"c2","function":{"name":"time","arguments":{"b":2}}}]}}]}`,
		`{"usage":{"prompt_tokens":8,"completion_tokens":1,"total_tokens":12,"completion_tokens_details":{"reasoning_tokens":3}},"choices":[]}`,
		"[DONE]"),
	"old": eventStream(
		`{"id":"r","choices":[{"index":0,"delta":{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":""}}}]}`,
		`{"id":"r","choices":[{"index":0,"delta":{"function_call":{"arguments":"{\"city\":\"\"}"}}}]}`,
		`{"id":"r","choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}`, "[DONE]"),
	"two": eventStream(
		`{"id":"r","choices":[{"index":0,"delta":{"role":"assistant","content":"A"}}]}`,
		`{"id":"r","choices":[{"index":1,"delta":{"content":"B"}}]}`,
		`{"id":"r","choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"),
	"custom": eventStream(
		`{"id":"r","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"custom","custom":{"name":"sql","input":"sel"}}]}}]}`,
		`{"id":"r","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"custom":{"input":"ect"}}]}}]}`,
		`{"id":"r","choices":[{"index":0,"delta":{"content":"late","annotations":[{"a":1}],"channel":"x"},"finish_reason":"tool_calls"}]}`, "[DONE]"),
}

// eventStream returns server-sent events with that data.
func eventStream(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

// inOrderOfKeys yields the values of m in the order of their keys.
func inOrderOfKeys(m map[string]string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(m[k]) {
				return
			}
		}
	}
}
