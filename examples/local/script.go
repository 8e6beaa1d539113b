package main

import (
	"encoding/json"
	"net"
	"net/http"
	"time"
)

// message is what the scripted model reads of a message.
type message struct{ Role string }

// said is an answer.
type said struct{ text, reason string }

// say plays a model that writes calls as text. The first one is what llama.cpp
// really returned for Qwen2.5-Coder, which leaves out its tags. The second is cut,
// and comes again when it is asked for.
func say(messages []message) said {
	results := 0
	for _, m := range messages {
		if m.Role == "tool" {
			results++
		}
	}
	again := len(messages) > 1 && messages[len(messages)-1].Role == "user"
	switch {
	case results == 0:
		return said{`{"name": "get_forecast", "arguments": {"city": "Oslo", "days": "3"}}`, "stop"}
	case results == 1 && !again:
		return said{"I will convert it.\n<tool_call>\n{\"name\": \"to_fahrenheit\", \"argum", "length"}
	case results == 1:
		return said{"<tool_call>\n{\"name\": \"to_fahrenheit\", \"arguments\": {\"celsius\": 14}}\n</tool_call>", "stop"}
	}
	return said{"The first day is the warmest, with 57.2 degrees Fahrenheit.", "stop"}
}

// serveScript starts a server of OpenAI Chat Completions whose tool parser finds
// nothing.
func serveScript() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String() + "/v1", func() { _ = s.Close() }, nil
}

func answer(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Messages []message }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	now := say(asked.Messages)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "finish_reason": now.reason, "message": map[string]any{"role": "assistant", "content": now.text}}},
		"usage":   map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
}
