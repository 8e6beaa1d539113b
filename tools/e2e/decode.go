package e2e

import _ "embed"

//go:embed python/decode.py
var decodePython string

//go:embed node/decode.mjs
var decodeNode string

// decoder is a program that reads answers of some formats with SDKs.
type decoder struct {
	name    string
	pkg     pkg
	formats []string
	command func(p place, name, tools string) []string
}

var decoders = []decoder{
	{"openai, anthropic", openAI, []string{"chat", "responses", "anthropic"}, inPython},
	{"google-genai", genAI, []string{"gemini"}, inPython},
	{"ollama", ollama, []string{"ollama"}, inPython},
	{"openai-js", openAIJS, []string{"chat", "responses"}, inNode},
	{"anthropic-js", anthropicJS, []string{"anthropic"}, inNode},
	{"genai-js", genAIJS, []string{"gemini"}, inNode},
	{"ollama-js", ollamaJS, []string{"ollama"}, inNode},
	{"ai-sdk", aiSDK, []string{"chat", "responses", "anthropic", "gemini"}, inNode},
}

func inPython(p place, _, tools string) []string {
	return []string{p.python(), "-W", "ignore", "-c", decodePython, p.url, tools}
}

func inNode(p place, name, tools string) []string {
	return []string{"node", "--input-type=module", "--eval", decodeNode, name, p.url, tools, p.folder()}
}
