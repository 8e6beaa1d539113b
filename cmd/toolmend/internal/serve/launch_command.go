package serve

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolmend/toolmend/gateway"
)

// addressVariable is a variable by which programs find a provider.
type addressVariable struct {
	name, prefix string // prefix is where the gateway serves that provider
	// url is where SDKs send requests without the variable. "" means that the variable is left
	// alone unless it is set: another one leads to the provider, or programs disagree about it.
	url string
}

const ollamaHost = "OLLAMA_HOST"

// addressVariables are the variables of the SDKs.
//
// Source: the SDKs of OpenAI (AZURE_OPENAI_ENDPOINT too), Anthropic, Google (python-genai,
// _base_url.py) and Ollama (ollama-python, _client.py); LangChain's OPENAI_API_BASE and
// ANTHROPIC_API_URL, which come before the SDKs' own ones if they are set, OPENROUTER_API_BASE and
// MISTRAL_BASE_URL (Mistral's own SDK reads none); LiteLLM's ANTHROPIC_API_BASE and GEMINI_API_BASE.
// LangChain's client for Azure refuses to start with OPENAI_API_BASE. Groq's SDK appends /openai/v1
// to GROQ_BASE_URL, and other programs do not.
var addressVariables = []addressVariable{
	{"OPENAI_BASE_URL", "/openai", openaiURL},
	{"ANTHROPIC_BASE_URL", "/anthropic", anthropicURL},
	{"GOOGLE_GEMINI_BASE_URL", "/gemini", geminiURL},
	{"OPENROUTER_API_BASE", "/openrouter", "https://openrouter.ai/api/v1"},
	{"MISTRAL_BASE_URL", "/mistral", "https://api.mistral.ai/v1"},
	{ollamaHost, "/ollama", "http://127.0.0.1:11434"},
	{"OPENAI_API_BASE", "/openai-api-base", ""},
	{"AZURE_OPENAI_ENDPOINT", "/azure", ""},
	{"ANTHROPIC_API_URL", "/anthropic-api-url", ""},
	{"ANTHROPIC_API_BASE", "/anthropic-api-base", ""},
	{"GOOGLE_VERTEX_BASE_URL", "/vertex", ""},
	{"GEMINI_API_BASE", "/gemini-api-base", ""},
	{"GROQ_BASE_URL", "/groq", ""},
}

// launchCommand points any program at the gateway, by the variables of the SDKs. Each variable has an
// upstream of its own: its present value, or the provider of its SDK. Libraries that read .env files
// prefer the environment, so a value there must not be replaced by the provider.
func launchCommand(m machine, at string, f runFlags) (launch, error) {
	l := launch{args: f.args}
	for _, v := range addressVariables {
		present := firstSet(destination{m.getenv(v.name), v.name}, destination{m.dotenv(v.name), v.name + " in .env"})
		if present.url == "" && v.url == "" {
			continue
		}
		if v.name == ollamaHost {
			present.url = ollamaURL(present.url)
		}
		if checkUpstream(present.url) != nil {
			return l, fmt.Errorf("%s must be a URL, such as %s, got %q", present.from, firstOf(v.url, openaiURL), present.url)
		}
		u := gateway.Upstream{Name: v.prefix[1:], URL: split(firstOf(f.upstream, present.url, v.url)).upstream, Prefix: v.prefix}
		path := split(firstOf(present.url, v.url)).path // that the program sends
		if v.url == anthropicURL && present.url == "" {
			u.URL += "/v1" // for the AI SDK, which sends paths without it
		}
		if v.name == ollamaHost { // a program that asks whether Ollama runs must not wait
			u.Timeouts.Refused = gateway.Off
		}
		l.upstreams, l.env = append(l.upstreams, u), append(l.env, v.name+"="+at+v.prefix+path)
	}
	return l, nil
}

// dotenv returns a variable of the nearest file .env.local or .env that has it, or "".
func (m machine) dotenv(name string) string {
	for _, dir := range m.up() {
		for _, file := range []string{".env.local", ".env"} {
			if text, err := m.readFile(filepath.Join(dir, file)); err == nil {
				if value := dotenv(text, name); value != "" {
					return value
				}
			}
		}
	}
	return ""
}

// ollamaURL returns the URL that Ollama's clients make of OLLAMA_HOST, which may be an address to
// listen on.
func ollamaURL(host string) string {
	if host == "" || strings.Contains(host, "://") {
		return host
	}
	name, port, _ := strings.Cut(host, ":")
	if name == "" || name == "0.0.0.0" {
		name = "127.0.0.1"
	}
	return "http://" + name + ":" + firstOf(port, "11434")
}
