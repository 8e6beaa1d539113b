package strict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Gemini is Gemini's generateContent, with signed calls.
var Gemini = Format{
	Name: "Gemini", Kind: "text/event-stream", History: "contents",
	Serves: func(path string) bool {
		return strings.HasSuffix(path, ":generateContent") || strings.HasSuffix(path, ":streamGenerateContent")
	},
	Streams: func(path string, _ []byte) bool { return strings.HasSuffix(path, ":streamGenerateContent") },
	Whole: func(a Answer) string {
		var parts []any
		if !a.Bare {
			parts = append(parts, geminiThought(a))
		}
		if a.Text != "" {
			parts = append(parts, m{"text": a.Text})
		}
		return text(geminiChunk(a, geminiStop(a), append(parts, geminiCalls(a)...)...))
	},
	Frames: geminiFrames, refuse: geminiRefuse,
	Fail: func(status int, message string) string {
		kind := "INVALID_ARGUMENT"
		if status == 429 {
			kind = "RESOURCE_EXHAUSTED"
		}
		return text(m{"error": m{"code": status, "message": message, "status": kind}})
	},
}

func geminiThought(a Answer) m { return m{"text": Thought(a.N), "thought": true} }

func geminiStop(a Answer) string { return cmp.Or(a.Finish, "STOP") }

func geminiChunk(a Answer, finish string, parts ...any) m {
	content := m{"role": "model"}
	if parts != nil {
		content["parts"] = parts
	}
	candidate := m{"index": 0, "content": content}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	if finish == "MALFORMED_FUNCTION_CALL" {
		candidate["content"], candidate["finishMessage"] = m{}, "Malformed function call: print(default_api."
	}
	return m{
		"candidates": []any{candidate}, "modelVersion": "scripted", "responseId": ID("resp", a.N, 0),
		"usageMetadata": m{
			"promptTokenCount": a.input(), "candidatesTokenCount": 5, "thoughtsTokenCount": 3, "totalTokenCount": a.input() + 8, "cachedContentTokenCount": 2,
			"promptTokensDetails": []any{m{"modality": "TEXT", "tokenCount": a.input()}},
		},
	}
}

func geminiCalls(a Answer) []any {
	var parts []any
	for i, c := range a.Calls {
		part := m{"functionCall": m{"id": ID("call", a.N, i), "name": c.Name, "args": raw(c.Arguments)}}
		if i == 0 {
			part["thoughtSignature"] = Mark(a.N) // of calls side by side, the first is signed
		}
		parts = append(parts, part)
	}
	return parts
}

func geminiFrames(a Answer) []Frame {
	var frames []Frame
	if !a.Bare {
		frames = append(frames, sse("", geminiChunk(a, "", geminiThought(a))))
	}
	if a.Text != "" {
		frames = append(frames, sse("", geminiChunk(a, "", m{"text": a.Text})))
	}
	for _, c := range geminiCalls(a) {
		f := sse("", geminiChunk(a, "", c))
		f.Args = true
		frames = append(frames, f)
	}
	if frames == nil {
		return []Frame{sse("", geminiChunk(a, geminiStop(a)))}
	}
	return append(frames, sse("", geminiChunk(a, geminiStop(a), m{"text": ""})))
}

type geminiCall struct {
	ID, Name       string
	Args, Response json.RawMessage
}

type geminiContent struct {
	Role  string
	Parts []struct {
		ThoughtSignature               string
		FunctionCall, FunctionResponse *geminiCall
	}
}

// The signatures that the documentation of Gemini gives for calls of other models.
var geminiUnsigned = map[string]bool{"skip_thought_signature_validator": true, "context_engineering_is_the_way_to_go": true}

func geminiRefuse(body []byte, r Rules) string {
	var req struct{ Contents []geminiContent }
	if err := json.Unmarshal(body, &req); err != nil {
		return "Invalid JSON payload received. " + err.Error()
	}
	if len(req.Contents) == 0 {
		return "* GenerateContentRequest.contents: contents is not specified"
	}
	var turns []geminiContent // contents of one role in a row are one turn: Google's SDKs keep one for each chunk
	for i, c := range req.Contents {
		if len(c.Parts) == 0 {
			return fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
		}
		if last := len(turns) - 1; last >= 0 && turns[last].Role == c.Role {
			turns[last].Parts = slices.Concat(turns[last].Parts, c.Parts)
			continue
		}
		turns = append(turns, c)
	}
	const unequal = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
	turn := 0 // the current turn begins behind the last content of the user's own
	for i, c := range turns {
		if _, responses := c.calls(); c.Role != "model" && len(responses) == 0 {
			turn = i
		}
	}
	var open []geminiCall
	for i, c := range turns {
		calls, results := c.calls()
		switch {
		case len(results) > 0 && len(open) == 0:
			return "Please ensure that function response turn comes immediately after a function call turn."
		case len(results) != len(open):
			return unequal
		case len(calls) > 0 && i == 0:
			return "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
		}
		for j, result := range results {
			if result.Name == "" {
				return fmt.Sprintf("* GenerateContentRequest.contents[%d].parts[%d].function_response.name: Name cannot be empty.", i, j)
			}
			if result.Name != open[j].Name || result.ID != "" && open[j].ID != "" && result.ID != open[j].ID {
				return unequal
			}
			if !isObject(result.Response) {
				return fmt.Sprintf("Invalid value at 'contents[%d].parts[%d].function_response.response' (type.googleapis.com/google.protobuf.Struct)", i, j)
			}
		}
		if why := c.unsigned(i, i >= turn, r); why != "" {
			return why
		}
		open = calls
	}
	if len(open) > 0 {
		return unequal
	}
	return ""
}

// calls returns the calls of a content, and the responses to calls.
func (c geminiContent) calls() (calls, responses []geminiCall) {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			calls = append(calls, *p.FunctionCall)
		}
		if p.FunctionResponse != nil {
			responses = append(responses, *p.FunctionResponse)
		}
	}
	return calls, responses
}

// unsigned checks the calls of content i. Signatures are wanted in the current turn
// only.
func (c geminiContent) unsigned(i int, current bool, r Rules) string {
	first := true
	for j, p := range c.Parts {
		if s := p.ThoughtSignature; s != "" && !geminiUnsigned[s] && (marked(s) < 0 || marked(s) >= r.Answers) {
			return "Corrupted thought signature."
		}
		call := p.FunctionCall
		if call == nil {
			continue
		}
		n := from(call.ID)
		switch {
		case len(call.Args) > 0 && !isObject(call.Args):
			return fmt.Sprintf("Invalid value at 'contents[%d].parts[%d].function_call.args' (type.googleapis.com/google.protobuf.Struct)", i, j)
		case n >= 0 && marked(p.ThoughtSignature) >= 0 && marked(p.ThoughtSignature) != n:
			return "Corrupted thought signature."
		case current && first && p.ThoughtSignature == "":
			return fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s`, position %d.", call.Name, i+1)
		}
		first = false
	}
	return ""
}
