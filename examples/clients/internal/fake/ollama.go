package fake

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// Ollama is Ollama's own chat format. Its server reads the model's text itself,
// and fails where it finds no call in there.
var Ollama = &Wire{
	Name: "ollama", History: "messages",
	streamed: func(_ string, body []byte) bool {
		var r struct{ Stream *bool }
		return json.Unmarshal(body, &r) != nil || r.Stream == nil || *r.Stream
	},
	fail:  func(_ int, message string) string { return j(object{"error": message}) },
	write: writeOllama,
	Mark:  strict.Thought, rules: strict.Ollama,
}

const refuseOllama = `error parsing tool call: raw='{"name":"get_weather","arguments":{"town":"Oslo"', err=unexpected end of JSON input`

func writeOllama(n int, a Answer, stream bool) reply {
	if a.Refusal == AtOnce || a.Refusal == Halfway && !stream {
		return reply{status: http.StatusInternalServerError, kind: "application/json; charset=utf-8", head: j(object{"error": refuseOllama})}
	}
	calls := ollamaCalls(a)
	line := func(message object, done bool) string {
		message["role"] = "assistant"
		chunk := object{"model": "fake", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done}
		if done {
			chunk["done_reason"] = finishOllama(a)
			chunk["total_duration"], chunk["prompt_eval_count"], chunk["eval_count"] = 5, 50, 10
		}
		return j(chunk) + "\n"
	}
	if !stream {
		message := object{"content": a.Text, "thinking": strict.Thought(n)}
		if calls != nil {
			message["tool_calls"] = calls
		}
		return reply{status: http.StatusOK, kind: "application/json; charset=utf-8", head: line(message, true)}
	}
	var head, tail strings.Builder
	head.WriteString(line(object{"content": "", "thinking": strict.Thought(n)}, false))
	for _, p := range pieces(a.Text) {
		head.WriteString(line(object{"content": p}, false))
	}
	if a.Refusal == Halfway {
		tail.WriteString(j(object{"error": refuseOllama}) + "\n")
	} else {
		if calls != nil {
			tail.WriteString(line(object{"content": "", "tool_calls": calls}, false))
		}
		tail.WriteString(line(object{"content": ""}, true))
	}
	return reply{http.StatusOK, "application/x-ndjson", head.String(), tail.String()}
}

func finishOllama(a Answer) string {
	if a.Cut {
		return "length"
	}
	return "stop"
}

func ollamaCalls(a Answer) array {
	var calls array
	for i, c := range a.Calls {
		if c.Arguments == "" {
			c.Arguments = "{}" // there is no other way to say it
		}
		call := object{"function": object{"index": i, "name": c.Name, "arguments": json.RawMessage(c.Arguments)}}
		if c.ID != "" {
			call["id"] = c.ID
		}
		calls = append(calls, call)
	}
	return calls
}
