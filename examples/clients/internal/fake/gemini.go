package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// Gemini is Gemini generateContent, with signed thoughts. A call without an id
// has none on the wire, as with older models.
var Gemini = &Wire{
	Name: "gemini", History: "contents", Header: "X-Goog-Api-Key",
	streamed: func(path string, _ []byte) bool { return strings.HasSuffix(path, ":streamGenerateContent") },
	fail: func(status int, message string) string {
		word := "INVALID_ARGUMENT"
		if status == http.StatusTooManyRequests {
			word = "RESOURCE_EXHAUSTED"
		}
		return j(object{"error": object{"code": status, "message": message, "status": word}})
	},
	write: writeGemini,
	Mark:  strict.Mark, rules: strict.Gemini,
}

// chunkGemini returns a body with one candidate. finish "" means that it follows later.
func chunkGemini(n int, finish string, parts array) object {
	candidate := object{"index": 0}
	if parts != nil {
		candidate["content"] = object{"role": "model", "parts": parts}
	}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	if finish == "MALFORMED_FUNCTION_CALL" {
		candidate["finishMessage"] = "Malformed function call: get_weather(town=\"Oslo\""
	}
	return object{
		"candidates": array{candidate}, "modelVersion": "fake", "responseId": fmt.Sprint("resp", n),
		"usageMetadata": object{"promptTokenCount": 50, "candidatesTokenCount": 10, "totalTokenCount": 60},
	}
}

func finishGemini(a Answer) string {
	switch {
	case a.Finish != "":
		return a.Finish
	case a.Refusal != None:
		return "MALFORMED_FUNCTION_CALL"
	case a.Cut:
		return "MAX_TOKENS"
	}
	return "STOP"
}

func geminiCalls(n int, a Answer) array {
	var parts array
	for i, c := range a.Calls {
		call := object{"name": c.Name}
		if c.ID != "" {
			call["id"] = c.ID
		}
		if c.Arguments != "" {
			call["args"] = json.RawMessage(c.Arguments)
		}
		part := object{"functionCall": call}
		if i == 0 {
			part["thoughtSignature"] = strict.Mark(n)
		}
		parts = append(parts, part)
	}
	return parts
}

func writeGemini(n int, a Answer, stream bool) reply {
	calls := geminiCalls(n, a)
	if !stream {
		var parts array
		if a.Text != "" {
			parts = array{object{"text": a.Text}}
		}
		parts = append(parts, calls...)
		return reply{status: http.StatusOK, kind: "application/json", head: j(chunkGemini(n, finishGemini(a), parts))}
	}
	var head, tail strings.Builder
	for _, p := range pieces(a.Text) {
		head.WriteString(event("", chunkGemini(n, "", array{object{"text": p}})))
	}
	for _, c := range calls { // each in a chunk of its own, as the service does it
		tail.WriteString(event("", chunkGemini(n, "", array{c})))
	}
	var end array
	if a.Refusal == None {
		end = array{object{"text": ""}}
	}
	tail.WriteString(event("", chunkGemini(n, finishGemini(a), end)))
	return reply{http.StatusOK, "text/event-stream", head.String(), tail.String()}
}
