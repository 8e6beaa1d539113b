package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLaunch holds where each agent's requests go: to where they went before.
func TestLaunch(t *testing.T) {
	t.Parallel()
	const at = "http://127.0.0.1:5"
	home, dir := filepath.FromSlash("/h"), filepath.FromSlash("/h/p")
	for name, c := range map[string]struct {
		agent, args, flag string
		env, files        map[string]string
		upstreams         string // prefix=URL
		argsNow           string
		envNow            string
		from              string // of the upstream
		err               string
	}{
		"claude": {agent: "claude", args: "-p hi", upstreams: "=https://api.anthropic.com", argsNow: "-p hi", envNow: "ANTHROPIC_BASE_URL=" + at},
		"claude, variable": {
			agent: "claude", env: map[string]string{"ANTHROPIC_BASE_URL": "https://a.example/v1/"},
			upstreams: "=https://a.example/v1", envNow: "ANTHROPIC_BASE_URL=" + at, from: "ANTHROPIC_BASE_URL",
		},
		"claude, settings": {
			agent: "claude", args: "-p hi", env: map[string]string{"ANTHROPIC_BASE_URL": "https://a.example"},
			files:     map[string]string{"/h/.claude/settings.json": `{"env":{"ANTHROPIC_BASE_URL":"https://b.example"}}`},
			upstreams: "=https://b.example", argsNow: `--settings {"env":{"ANTHROPIC_BASE_URL":"` + at + `"}} -p hi`, envNow: "ANTHROPIC_BASE_URL=" + at,
			from: "ANTHROPIC_BASE_URL in Claude Code's settings",
		},
		"claude, settings of the project": {
			agent: "claude", files: map[string]string{
				"/h/.claude/settings.json":         `{"env":{"ANTHROPIC_BASE_URL":"https://b.example"}}`,
				"/h/p/.claude/settings.local.json": `{"env":{"ANTHROPIC_BASE_URL":"https://c.example"}}`,
			},
			from:      "ANTHROPIC_BASE_URL in Claude Code's settings",
			upstreams: "=https://c.example", argsNow: `--settings {"env":{"ANTHROPIC_BASE_URL":"` + at + `"}}`, envNow: "ANTHROPIC_BASE_URL=" + at,
		},
		"qwen, variable": {
			agent: "qwen", env: map[string]string{"OPENAI_BASE_URL": "https://b.example"}, from: "OPENAI_BASE_URL",
			upstreams: "=https://b.example", argsNow: "--openai-base-url " + at + " --auth-type openai", envNow: "OPENAI_BASE_URL=" + at,
		},
		"claude, flag": {agent: "claude", env: map[string]string{"ANTHROPIC_BASE_URL": "https://a.example"}, flag: "https://d.example/v1", upstreams: "=https://d.example", envNow: "ANTHROPIC_BASE_URL=" + at},
		"codex": {
			agent: "codex", args: "exec hi", upstreams: "=https://api.openai.com /chatgpt=https://chatgpt.com/backend-api/codex",
			argsNow: `-c openai_base_url="` + at + `/v1" exec hi`,
		},
		"codex, file": {
			agent: "codex", env: map[string]string{"CODEX_HOME": "/c"}, files: map[string]string{"/c/config.toml": `openai_base_url = "https://a.example/x"`},
			upstreams: "=https://a.example/x", argsNow: `-c openai_base_url="` + at + `"`,
		},
		"codex, argument": {
			agent: "codex", args: `exec --config=openai_base_url="https://a.example/v1" -c model="m" hi`,
			upstreams: "=https://a.example", argsNow: `-c openai_base_url="` + at + `/v1" exec -c model="m" hi`,
		},
		"codex, provider": {
			agent: "codex", args: "exec hi",
			files:     map[string]string{"/h/.codex/config.toml": "model_provider = 'mine'\n[model_providers.mine]\nbase_url = 'https://a.example/v1'\nenv_key = 'K'\n"},
			upstreams: "=https://a.example", argsNow: `-c model_providers.mine.base_url="` + at + `/v1" exec hi`,
		},
		"codex, built-in provider": {agent: "codex", args: "-c model_provider=oss", err: `cannot see where Codex's provider "oss" is; name it with --upstream URL`},
		"codex, broken file":       {agent: "codex", files: map[string]string{"/h/.codex/config.toml": "="}, err: "cannot read " + filepath.FromSlash("/h/.codex/config.toml")},
		"qwen": {
			agent: "qwen", args: "-p hi", upstreams: "=https://api.openai.com",
			argsNow: "--openai-base-url " + at + "/v1 --auth-type openai -p hi", envNow: "OPENAI_BASE_URL=" + at + "/v1",
		},
		"qwen, argument": {
			agent: "qwen", args: "--openai-base-url https://a.example/api --auth-type=openai -p hi", env: map[string]string{"OPENAI_BASE_URL": "https://b.example"},
			upstreams: "=https://a.example/api", argsNow: "--openai-base-url " + at + " --auth-type=openai -p hi", envNow: "OPENAI_BASE_URL=" + at,
		},
		"qwen, .env": {
			agent: "qwen", files: map[string]string{"/h/.env": "OPENAI_API_KEY=secret\nexport OPENAI_BASE_URL=\"https://a.example/v1\"\n"},
			upstreams: "=https://a.example", argsNow: "--openai-base-url " + at + "/v1 --auth-type openai", envNow: "OPENAI_BASE_URL=" + at + "/v1",
		},
		"qwen, settings": {
			agent: "qwen", files: map[string]string{"/h/.qwen/settings.json": `{"security":{"auth":{"baseUrl":"https://a.example/v1"}}} // mine`},
			upstreams: "=https://a.example", argsNow: "--openai-base-url " + at + "/v1 --auth-type openai", envNow: "OPENAI_BASE_URL=" + at + "/v1",
		},
		"copilot": {
			agent: "copilot", args: "-p hi", env: map[string]string{"COPILOT_PROVIDER_BASE_URL": "https://a.example/v1/"}, from: "COPILOT_PROVIDER_BASE_URL",
			upstreams: "=https://a.example", argsNow: "-p hi", envNow: "COPILOT_PROVIDER_BASE_URL=" + at + "/v1 COPILOT_PROVIDER_TRANSPORT=http",
		},
		"copilot, Anthropic": {
			agent: "copilot", env: map[string]string{"COPILOT_PROVIDER_BASE_URL": "https://api.anthropic.com", "COPILOT_PROVIDER_TYPE": "anthropic"}, from: "COPILOT_PROVIDER_BASE_URL",
			upstreams: "=https://api.anthropic.com", envNow: "COPILOT_PROVIDER_BASE_URL=" + at + " COPILOT_PROVIDER_TRANSPORT=http",
		},
		"copilot, flag": {
			agent: "copilot", flag: "https://a.example/v1", upstreams: "=https://a.example", envNow: "COPILOT_PROVIDER_BASE_URL=" + at + "/v1 COPILOT_PROVIDER_TRANSPORT=http",
		},
		"copilot, flag for Anthropic": {
			agent: "copilot", flag: "https://a.example", env: map[string]string{"COPILOT_PROVIDER_TYPE": "anthropic"},
			upstreams: "=https://a.example", envNow: "COPILOT_PROVIDER_BASE_URL=" + at + " COPILOT_PROVIDER_TRANSPORT=http",
		},
		"copilot of GitHub": {agent: "copilot", err: "set COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL"},
		"gemini": {
			agent: "gemini", args: "-p hi", files: map[string]string{"/h/.gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}} // mine`},
			upstreams: "=https://generativelanguage.googleapis.com", argsNow: "-p hi", envNow: "GOOGLE_GEMINI_BASE_URL=" + at,
		},
		"gemini, variable": {
			agent: "gemini", env: map[string]string{"GOOGLE_GEMINI_BASE_URL": "https://a.example/x/", "GEMINI_CLI_HOME": "/g"}, from: "GOOGLE_GEMINI_BASE_URL",
			files:     map[string]string{"/g/.gemini/settings.json": `{"security":{"auth":{"selectedType":"oauth-personal"}}}`, "/h/p/.gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`},
			upstreams: "=https://a.example/x", envNow: "GOOGLE_GEMINI_BASE_URL=" + at,
		},
		"gemini, flag": {
			agent: "gemini", flag: "https://b.example", env: map[string]string{"GOOGLE_GEMINI_BASE_URL": "https://a.example"},
			files:     map[string]string{"/h/.gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`},
			upstreams: "=https://b.example", envNow: "GOOGLE_GEMINI_BASE_URL=" + at,
		},
		"gemini, login":       {agent: "gemini", files: map[string]string{"/h/.gemini/settings.json": `{"security":{"auth":{"selectedType":"oauth-personal"}}}`}, err: `its login is "oauth-personal"; put`},
		"gemini, no settings": {agent: "gemini", err: `its login is ""; put {"security": {"auth": {"selectedType": "gemini-api-key"}}} into ` + filepath.FromSlash("/h/.gemini/settings.json")},
		"opencode": {
			agent: "opencode", args: "run hi", argsNow: "run hi",
			files: map[string]string{
				"/h/.config/opencode/opencode.jsonc": `{"provider":{"mine":{"options":{"baseURL":"https://a.example/v1",}}, // mine
					"openai":{"options":{"baseURL":"https://b.example"}}}}`,
				"/h/p/opencode.json": `{"provider":{"openai":{"options":{"baseURL":"https://c.example"}}}}`,
			},
			env: map[string]string{"OPENCODE_CONFIG_CONTENT": `{"model":"m","provider":{"openai":{"options":{"apiKey":"{env:K}"}}}}`},
			upstreams: "/anthropic=https://api.anthropic.com /mine=https://a.example /openai=https://c.example " +
				"/opencode=https://opencode.ai/zen /openrouter=https://openrouter.ai/api",
			envNow: `OPENCODE_CONFIG_CONTENT={"model":"m","provider":{"anthropic":{"options":{"baseURL":"` + at + `/anthropic/v1"}},` +
				`"mine":{"options":{"baseURL":"` + at + `/mine/v1"}},"openai":{"options":{"apiKey":"{env:K}","baseURL":"` + at + `/openai"}},` +
				`"opencode":{"options":{"baseURL":"` + at + `/opencode/v1"}},"openrouter":{"options":{"baseURL":"` + at + `/openrouter/v1"}}}}`,
		},
		"opencode, broken variable": {agent: "opencode", env: map[string]string{"OPENCODE_CONFIG_CONTENT": "["}, err: "OPENCODE_CONFIG_CONTENT is not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := machine{home: home, dir: dir, getenv: func(n string) string { return c.env[n] }, readFile: func(p string) ([]byte, error) {
				if text, ok := c.files[filepath.ToSlash(p)]; ok {
					return []byte(text), nil
				}
				return nil, os.ErrNotExist
			}}
			l, err := launchers[c.agent](m, at, runFlags{upstream: c.flag, args: strings.Fields(c.args)})
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var ups []string
			for _, u := range l.upstreams {
				ups = append(ups, u.Prefix+"="+u.URL)
			}
			require.Equal(t, c.from, l.from)
			require.Equal(t, c.upstreams, strings.Join(ups, " "))
			require.Equal(t, c.argsNow, strings.Join(l.args, " "))
			require.Equal(t, c.envNow, strings.Join(l.env, " "))
		})
	}
}

// TestLaunchCommand holds which variables a program gets, and where their requests go.
func TestLaunchCommand(t *testing.T) {
	t.Parallel()
	const at = "http://127.0.0.1:5"
	for name, c := range map[string]struct {
		env, flag       string
		variable, value string // that the program gets, without at; "" means none
		upstream        string // of it
	}{
		"OpenAI":                    {variable: "OPENAI_BASE_URL", value: "/openai_base_url/v1", upstream: "https://api.openai.com"},
		"Anthropic":                 {variable: "ANTHROPIC_BASE_URL", value: "/anthropic_base_url", upstream: "https://api.anthropic.com/v1"},
		"Anthropic, set":            {env: "ANTHROPIC_BASE_URL=https://a.example/x", variable: "ANTHROPIC_BASE_URL", value: "/anthropic_base_url", upstream: "https://a.example/x"},
		"Anthropic, of the AI SDK":  {env: "ANTHROPIC_BASE_URL=https://a.example/v1", variable: "ANTHROPIC_BASE_URL", value: "/anthropic_base_url/v1", upstream: "https://a.example"},
		"Google":                    {variable: "GOOGLE_GEMINI_BASE_URL", value: "/google_gemini_base_url", upstream: "https://generativelanguage.googleapis.com"},
		"OpenRouter":                {variable: "OPENROUTER_API_BASE", value: "/openrouter_api_base/v1", upstream: "https://openrouter.ai/api"},
		"Mistral":                   {variable: "MISTRAL_BASE_URL", value: "/mistral_base_url/v1", upstream: "https://api.mistral.ai"},
		"Ollama":                    {variable: "OLLAMA_HOST", value: "/ollama_host", upstream: "http://127.0.0.1:11434"},
		"Ollama, a port":            {env: "OLLAMA_HOST=:1234", variable: "OLLAMA_HOST", value: "/ollama_host", upstream: "http://127.0.0.1:1234"},
		"Ollama, an address":        {env: "OLLAMA_HOST=0.0.0.0", variable: "OLLAMA_HOST", value: "/ollama_host", upstream: "http://127.0.0.1:11434"},
		"Ollama, IPv6":              {env: "OLLAMA_HOST=::1", variable: "OLLAMA_HOST", value: "/ollama_host", upstream: "http://[::1]:11434"},
		"Ollama, IPv6 in brackets":  {env: "OLLAMA_HOST=[::1]", variable: "OLLAMA_HOST", value: "/ollama_host", upstream: "http://[::1]:11434"},
		"Ollama, IPv6 and a port":   {env: "OLLAMA_HOST=[::]:1234", variable: "OLLAMA_HOST", value: "/ollama_host", upstream: "http://[::1]:1234"},
		"Ollama, a name and a port": {env: "OLLAMA_HOST=h.example:1234", variable: "OLLAMA_HOST", value: "/ollama_host", upstream: "http://h.example:1234"},
		"Ollama, a URL":             {env: "OLLAMA_HOST=https://o.example/", variable: "OLLAMA_HOST", value: "/ollama_host", upstream: "https://o.example"},
		"LangChain":                 {variable: "OPENAI_API_BASE"},
		"LangChain, set":            {env: "ANTHROPIC_API_URL=https://a.example", variable: "ANTHROPIC_API_URL", value: "/anthropic_api_url", upstream: "https://a.example"},
		"LangChain, beside the SDK": {env: "ANTHROPIC_API_URL=https://a.example", variable: "ANTHROPIC_BASE_URL", value: "/anthropic_base_url", upstream: "https://api.anthropic.com/v1"},
		"Azure":                     {variable: "AZURE_OPENAI_ENDPOINT"},
		"Azure, set":                {env: "AZURE_OPENAI_ENDPOINT=https://r.openai.azure.com/", variable: "AZURE_OPENAI_ENDPOINT", value: "/azure_openai_endpoint", upstream: "https://r.openai.azure.com"},
		"--upstream":                {flag: "http://127.0.0.1:8080", variable: "OPENAI_BASE_URL", value: "/openai_base_url/v1", upstream: "http://127.0.0.1:8080"},
		"--upstream over a variable": {
			flag: "http://127.0.0.1:8080/v1", env: "OPENAI_BASE_URL=https://a.example/api", variable: "OPENAI_BASE_URL", value: "/openai_base_url", upstream: "http://127.0.0.1:8080",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, value, _ := strings.Cut(c.env, "=")
			m := machine{getenv: func(name string) string {
				if name == set {
					return value
				}
				return ""
			}, readFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }, dir: filepath.FromSlash("/h/p")}
			l, err := launchCommand(m, at, runFlags{upstream: c.flag})
			require.NoError(t, err)
			got, upstream := "", ""
			for i, v := range l.env {
				if name, value, _ := strings.Cut(v, "="); name == c.variable {
					got, upstream = strings.TrimPrefix(value, at), l.upstreams[i].URL
				}
			}
			require.Equal(t, c.value, got)
			require.Equal(t, c.upstream, upstream)
		})
	}
}

// TestLaunchCommandRefused holds that an error names the variable, and not its value, which may hold a password.
func TestLaunchCommandRefused(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"user:secret@a.example": "must be a URL, such as", "https://secret@a.example/${UNSET}": "has a variable ${NAME} that is not set"} {
		m := machine{getenv: func(string) string { return "" }, readFile: func(string) ([]byte, error) { return []byte("OPENAI_BASE_URL=" + value), nil }, dir: "/h"}
		_, err := launchCommand(m, "http://127.0.0.1:5", runFlags{})
		require.ErrorContains(t, err, "OPENAI_BASE_URL in .env "+want)
		require.NotContains(t, err.Error(), "secret")
	}
}

// TestDotenv holds that .env files are read as the libraries of programs read them.
func TestDotenv(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"plain":              {"A=1\nURL=http://a/v1\n", "http://a/v1"},
		"CRLF and export":    {"export URL = http://a/v1\r\nA=1", "http://a/v1"},
		"none":               {"# URL=http://a\nURL\n", ""},
		"twice":              {"URL=http://a\nURL=http://b\n", "http://b"},
		"behind a long line": {"A=" + strings.Repeat("x", 70_000) + "\nURL=http://a\n", "http://a"},
		"comment":            {"URL=http://a/#x # the proxy", "http://a/#x"},
		"comment alone":      {"URL= # http://a", ""},
		"quotes, comment":    {`URL="http://a/ #x" # "the" proxy`, "http://a/ #x"},
		"single quotes":      {`URL='http://a'#x`, "http://a"},
		"variable above":     {"HOST=http://a\nURL=${HOST}/v1", "http://a/v1"},
		"variable outside":   {"OUTSIDE=http://a\nURL=\"${OUTSIDE}/v1\"", "http://env/v1"},
		"default":            {"URL=${UNSET:-http://a}/v1", "http://a/v1"},
		"unset":              {"URL=http://${UNSET}/v1", "http://${UNSET}/v1"},
		"itself":             {"URL=${URL}/v1", "${URL}/v1"},
		"too long":           {"A=" + strings.Repeat("x", 2000) + "\nURL=${A}${A}", "${A}${A}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, dotenv([]byte(c.text), "URL", func(name string) string {
				return map[string]string{"OUTSIDE": "http://env"}[name]
			}))
		})
	}
}

// TestCodexLogin holds that requests of a ChatGPT login go to the upstream for
// them, and all others to the API.
func TestCodexLogin(t *testing.T) {
	t.Parallel()
	h := byLogin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.String() + " " + r.RequestURI))
	}))
	for _, c := range []struct{ path, account, want string }{
		{"/v1/responses?a=1", "", "/v1/responses?a=1 /v1/responses?a=1"},
		{"/v1/responses?a=1", "acc", "/chatgpt/responses?a=1 /chatgpt/responses?a=1"},
		{"/other", "acc", "/other /other"},
	} {
		r := httptest.NewRequest(http.MethodPost, c.path, nil)
		if c.account != "" {
			r.Header.Set("ChatGPT-Account-ID", c.account)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, c.want, w.Body.String())
	}
}

func TestWithoutComments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`{"a": "//x", /* b */ "c": [1, 2, ], } // end`: map[string]any{"a": "//x", "c": []any{1.0, 2.0}},
		`{"a\"/*": "*/",}`: map[string]any{`a"/*`: "*/"},
	} {
		var got any
		require.NoError(t, json.Unmarshal(withoutComments([]byte(text)), &got), text)
		require.Equal(t, want, got)
	}
	for _, broken := range []string{`"`, `{"a`, `"\`, `/*`, `/`, `/* *`, `}`, `,}`, `//`} {
		require.NotPanics(t, func() { withoutComments([]byte(broken)) }, broken)
	}
}
