package e2e

import _ "embed"

//go:embed python/client.py
var script string

// python is one way to ask with a Python client.
func python(name, title, of string, f format, streamed bool) client {
	return client{
		name: name, title: title, pkg: pkg{pip, of}, format: f, streamed: streamed,
		tool: "read_file", good: `{"path":"FILE"}`, bad: `{"wrong":"FILE"}`,
		command: func(p place) command {
			return command{args: []string{p.python(), "-c", script, name, p.url, prompt}}
		},
	}
}

// pythons are the official Python clients, each way to ask for an answer.
var pythons = []client{
	python("openai-chat", "openai-python, chat", "openai", chat, false),
	python("openai-chat-stream", "openai-python, chat, streamed", "openai", chat, true),
	python("openai-responses", "openai-python, responses", "openai", responses, false),
	python("openai-responses-create", "openai-python, responses, `stream=True`", "openai", responses, true),
	python("openai-responses-stream", "openai-python, `responses.stream()`", "openai", responses, true),
	python("anthropic-messages", "anthropic-python, messages", "anthropic", anthropic, false),
	python("anthropic-messages-stream", "anthropic-python, `messages.stream()`", "anthropic", anthropic, true),
}
