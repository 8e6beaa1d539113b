package e2e

import (
	_ "embed"

	"github.com/toolmend/toolmend/internal/test/strict"
)

//go:embed python/client.py
var scriptClient string

//go:embed python/agents.py
var scriptPython string

//go:embed node/agents.mjs
var scriptNode string

var (
	openAI    = pkg{pip, "openai", "anthropic"}
	anthropic = pkg{pip, "anthropic", "openai"}
	aiSDK     = pkg{npm, "ai", "@ai-sdk/openai-compatible @ai-sdk/openai @ai-sdk/anthropic @ai-sdk/google"}
	langChain = pkg{pip, "langchain", "langchain-openai langchain-anthropic"}
	langGraph = pkg{npm, "@langchain/langgraph", "@langchain/core @langchain/openai @langchain/anthropic"}
	strands   = pkg{pip, "strands-agents", "openai anthropic"}
	agno      = pkg{pip, "agno", "openai anthropic"}
	pydantic  = pkg{pip, "pydantic-ai-slim", "openai anthropic"}
	agentsPy  = pkg{pip, "openai-agents", ""}
	agentsJS  = pkg{npm, "@openai/agents", ""}
	openAIJS  = pkg{npm, "openai", ""}
	genAI     = pkg{pip, "google-genai", ""}
	ollama    = pkg{pip, "ollama", ""}

	anthropicJS = pkg{npm, "@anthropic-ai/sdk", ""}
	genAIJS     = pkg{npm, "@google/genai", ""}
	ollamaJS    = pkg{npm, "ollama", ""}
)

// sdks are the official SDKs, in Python each way to ask for an answer, frameworks in
// Python and JavaScript, and those in Go.
var sdks = []client{
	python("openai-chat", "openai-python, chat", openAI, strict.Chat, false),
	python("openai-chat-stream", "openai-python, chat, streamed", openAI, strict.Chat, true),
	python("openai-responses", "openai-python, responses", openAI, strict.Responses, false),
	python("openai-responses-create", "openai-python, responses, `stream=True`", openAI, strict.Responses, true),
	python("openai-responses-stream", "openai-python, `responses.stream()`", openAI, strict.Responses, true),
	node("openai-js-chat", "openai-node, `runTools()`", openAIJS, strict.Chat),
	node("openai-js-responses", "openai-node, `responses.stream()`", openAIJS, strict.Responses),
	python("anthropic-messages", "anthropic-python, messages", anthropic, strict.Anthropic, false),
	python("anthropic-messages-stream", "anthropic-python, `messages.stream()`", anthropic, strict.Anthropic, true),
	node("anthropic-js", "anthropic-node, `messages.stream()`", anthropicJS, strict.Anthropic),
	framework("google-genai", "google-genai, Python", genAI, strict.Gemini, true),
	node("genai-js", "google-genai, JavaScript", genAIJS, strict.Gemini),
	deaf(framework("mistral", "mistralai, Python", pkg{pip, "mistralai", ""}, strict.Mistral, true)),
	deaf(node("mistral-js", "mistralai, JavaScript", pkg{npm, "@mistralai/mistralai", ""}, strict.Mistral)),
	framework("ollama", "ollama, Python", ollama, strict.Ollama, true),
	node("ollama-js", "ollama, JavaScript", ollamaJS, strict.Ollama),
	framework("langchain", "LangChain, `create_agent`", langChain, strict.Chat, false),
	framework("langchain-responses", "LangChain, `create_agent`", langChain, strict.Responses, true),
	framework("langchain-messages", "LangChain, `create_agent`", langChain, strict.Anthropic, true),
	whole(node("langgraph-chat", "LangGraph.js", langGraph, strict.Chat)),
	deaf(node("langgraph-responses", "LangGraph.js", langGraph, strict.Responses)),
	node("langgraph-messages", "LangGraph.js", langGraph, strict.Anthropic),
	node("ai-sdk", "Vercel AI SDK, `streamText`", aiSDK, strict.Chat),
	node("ai-sdk-responses", "Vercel AI SDK, `streamText`", aiSDK, strict.Responses),
	node("ai-sdk-messages", "Vercel AI SDK, `streamText`", aiSDK, strict.Anthropic),
	node("ai-sdk-gemini", "Vercel AI SDK, `streamText`", aiSDK, strict.Gemini),
	claudeAgentSDK(),
	framework("openai-agents", "openai-agents, Python", agentsPy, strict.Responses, true),
	framework("openai-agents-chat", "openai-agents, Python", agentsPy, strict.Chat, true),
	deaf(node("openai-agents-js", "openai-agents, JavaScript", agentsJS, strict.Responses)),
	node("openai-agents-js-chat", "openai-agents, JavaScript", agentsJS, strict.Chat),
	framework("google-adk", "Google ADK, Python", pkg{pip, "google-adk", ""}, strict.Gemini, true),
	framework("strands", "Strands", strands, strict.Chat, true),
	framework("strands-messages", "Strands", strands, strict.Anthropic, true),
	framework("agno", "Agno", agno, strict.Chat, true),
	deaf(framework("agno-responses", "Agno", agno, strict.Responses, true)),
	framework("agno-messages", "Agno", agno, strict.Anthropic, true),
	framework("haystack", "Haystack", pkg{pip, "haystack-ai", ""}, strict.Chat, true),
	framework("pydantic-ai", "pydantic-ai", pydantic, strict.Responses, true),
	framework("pydantic-ai-messages", "pydantic-ai", pydantic, strict.Anthropic, true),
	// Its newest version cannot be fetched.
	deaf(program("adk-go", "Google ADK, Go", pkg{golang, "google.golang.org/adk", "google.golang.org/adk@v1.5.0"}, strict.Gemini, true)),
	// Eino asks for a version of sonic that Go 1.26 does not build.
	program("eino", "Eino", pkg{golang, "github.com/cloudwego/eino", "github.com/cloudwego/eino-ext/components/model/openai@latest github.com/bytedance/sonic@latest"}, strict.Chat, true),
	program("genkit-go", "Genkit, Go", pkg{golang, "github.com/firebase/genkit/go", ""}, strict.Chat, true),
	program("any-llm-go", "any-llm-go", pkg{golang, "github.com/mozilla-ai/any-llm-go", ""}, strict.Chat, false),
}

// reader is a client whose only tool reads a file.
func reader(name, title string, of pkg, f strict.Format, streamed bool, command func(p place) command) client {
	return client{
		name: name, title: title, pkg: of, format: f, streamed: streamed,
		tool: "read_file", good: `{"path":"FILE"}`, bad: `{"wrong":"FILE"}`, command: command,
	}
}

// python is one way to ask with an official Python client.
func python(name, title string, of pkg, f strict.Format, streamed bool) client {
	return reader(name, title, of, f, streamed, func(p place) command {
		return command{args: []string{p.python(), "-c", scriptClient, name, p.url, prompt}}
	})
}

// framework is a way of python/agents.py.
func framework(name, title string, of pkg, f strict.Format, streamed bool) client {
	return reader(name, title, of, f, streamed, func(p place) command {
		return command{
			args: []string{p.python(), "-W", "ignore", "-c", scriptPython, name, p.url, prompt},
			env: []string{
				"ANTHROPIC_BASE_URL=" + p.url, "ANTHROPIC_API_KEY=k", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"GOOGLE_GEMINI_BASE_URL=" + p.url, "GOOGLE_API_KEY=k", "HAYSTACK_TELEMETRY_ENABLED=False",
			},
		}
	})
}

// node is a way of node/agents.mjs.
func node(name, title string, of pkg, f strict.Format) client {
	return reader(name, title, of, f, true, func(p place) command {
		return command{args: []string{"node", "--input-type=module", "--eval", scriptNode, name, p.url, prompt, p.folder()}}
	})
}

// whole is a client that asks for no stream.
func whole(c client) client {
	c.streamed = false
	return c
}

// deaf is a client that does not read an error in a stream that has begun, or not its
// message, or repeats the request after it.
func deaf(c client) client {
	c.deaf = true
	return c
}

// program is a Go program.
func program(name, title string, of pkg, f strict.Format, streamed bool) client {
	return reader(name, title, of, f, streamed, func(p place) command {
		return command{args: []string{p.folder("agent"), p.url, prompt}}
	})
}

// claudeAgentSDK runs the Claude Code that it brings, with its tools.
func claudeAgentSDK() client {
	c := framework("claude-agent-sdk", "claude-agent-sdk, Python", pkg{pip, "claude-agent-sdk", ""}, strict.Anthropic, true)
	c.tool, c.good, c.bad = "Read", `{"file_path":"FILE"}`, `{"wrong":"FILE"}`
	return c
}
