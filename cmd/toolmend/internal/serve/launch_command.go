package serve

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/toolmend/toolmend/gateway"
)

// addressVariables are the variables by which SDKs find a provider, and where they send requests
// without them. A variable without a URL is left alone unless it is set: another one leads to the
// provider, or programs disagree about it.
//
// Source: the SDKs of OpenAI (AZURE_OPENAI_ENDPOINT too), Anthropic, Google (python-genai,
// _base_url.py) and Ollama (ollama-python, _client.py); LangChain's OPENAI_API_BASE and
// ANTHROPIC_API_URL, which come before the SDKs' own ones if they are set, OPENROUTER_API_BASE and
// MISTRAL_BASE_URL (Mistral's own SDK reads none); LiteLLM's ANTHROPIC_API_BASE and GEMINI_API_BASE.
// LangChain's client for Azure refuses to start with OPENAI_API_BASE. Groq's SDK appends /openai/v1
// to GROQ_BASE_URL, and other programs do not.
var addressVariables = []struct{ name, url string }{
	{"OPENAI_BASE_URL", openaiURL},
	{"ANTHROPIC_BASE_URL", anthropicURL},
	{"GOOGLE_GEMINI_BASE_URL", geminiURL},
	{"OPENROUTER_API_BASE", "https://openrouter.ai/api/v1"},
	{"MISTRAL_BASE_URL", "https://api.mistral.ai/v1"},
	{ollamaHost, "http://127.0.0.1:11434"},
	{"OPENAI_API_BASE", ""}, {"AZURE_OPENAI_ENDPOINT", ""}, {"ANTHROPIC_API_URL", ""}, {"ANTHROPIC_API_BASE", ""},
	{"GOOGLE_VERTEX_BASE_URL", ""}, {"GEMINI_API_BASE", ""}, {"GROQ_BASE_URL", ""},
}

const ollamaHost = "OLLAMA_HOST"

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
		switch { // the messages do not show the value, which may hold a password
		case strings.Contains(present.url, "${"):
			return l, fmt.Errorf("%s has a variable ${NAME} that is not set", present.from)
		case checkUpstream(present.url) != nil:
			return l, fmt.Errorf("%s must be a URL, such as %s", present.from, firstOf(v.url, openaiURL))
		}
		name := strings.ToLower(v.name)
		u := gateway.Upstream{Name: name, URL: split(firstOf(f.upstream, present.url, v.url)).upstream, Prefix: "/" + name}
		path := split(firstOf(present.url, v.url)).path // that the program sends
		if v.url == anthropicURL && present.url == "" {
			u.URL += "/v1" // for the AI SDK, which sends paths without it
		}
		u.Timeouts.Refused = gateway.Off // a program that asks whether a server runs must not wait
		l.upstreams, l.env = append(l.upstreams, u), append(l.env, v.name+"="+at+u.Prefix+path)
	}
	return l, nil
}

// dotenv returns a variable of the nearest file .env.local or .env that has it, or "".
func (m machine) dotenv(name string) string {
	for _, dir := range m.up() {
		for _, file := range []string{".env.local", ".env"} {
			text, _ := m.readFile(filepath.Join(dir, file))
			if value := dotenv(text, name, m.getenv); value != "" {
				return value
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
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), ""
	}
	switch name {
	case "", "0.0.0.0":
		name = "127.0.0.1"
	case "::":
		name = "::1"
	}
	return "http://" + net.JoinHostPort(name, firstOf(port, "11434"))
}
