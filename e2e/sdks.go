package e2e

import (
	_ "embed"
	"path/filepath"
)

//go:embed python/client.py
var script string

//go:embed python/langchain.py
var scriptLangChain string

//go:embed node/agent.mjs
var scriptAISDK string

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

// sdks are the official Python clients, each way to ask for an answer, and two
// frameworks over chat completions.
var sdks = []client{
	python("openai-chat", "openai-python, chat", "openai", chat, false),
	python("openai-chat-stream", "openai-python, chat, streamed", "openai", chat, true),
	python("openai-responses", "openai-python, responses", "openai", responses, false),
	python("openai-responses-create", "openai-python, responses, `stream=True`", "openai", responses, true),
	python("openai-responses-stream", "openai-python, `responses.stream()`", "openai", responses, true),
	python("anthropic-messages", "anthropic-python, messages", "anthropic", anthropic, false),
	python("anthropic-messages-stream", "anthropic-python, `messages.stream()`", "anthropic", anthropic, true),
	framework("langchain", "LangChain, `create_agent`", pkg{pip, "langchain"}, false, func(p place) []string {
		return []string{p.python(), "-W", "ignore", "-c", scriptLangChain, p.url, prompt}
	}),
	framework("ai-sdk", "Vercel AI SDK, `streamText`", pkg{npm, "ai"}, true, func(p place) []string {
		return []string{"node", "--input-type=module", "--eval", scriptAISDK, p.url, prompt, filepath.Dir(p.npm())}
	}),
}

// framework is a framework that speaks chat completions and runs tools itself.
func framework(name, title string, of pkg, streamed bool, args func(p place) []string) client {
	return client{
		name: name, title: title, pkg: of, format: chat, streamed: streamed,
		tool: "read_file", good: `{"path":"FILE"}`, bad: `{"wrong":"FILE"}`,
		command: func(p place) command { return command{args: args(p)} },
	}
}
