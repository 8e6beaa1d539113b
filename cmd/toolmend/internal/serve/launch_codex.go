package serve

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/toolmend/toolmend/gateway"
)

const (
	openaiURL  = "https://api.openai.com/v1"
	chatgptURL = "https://chatgpt.com/backend-api/codex" // where Codex goes with a login
	chatgpt    = "/chatgpt"                              // prefix of that upstream
)

// codexConfig is what a launcher needs of Codex's configuration file.
type codexConfig struct {
	ModelProvider  string `toml:"model_provider"`
	OpenAIBaseURL  string `toml:"openai_base_url"`
	ModelProviders map[string]struct {
		BaseURL string `toml:"base_url"`
	} `toml:"model_providers"`
}

// launchCodex points Codex at the gateway with values of the command line.
// Source: measured with Codex 0.169. It ignores OPENAI_BASE_URL there.
func launchCodex(m machine, at string, f runFlags) (launch, error) {
	var c codexConfig
	dir := firstOf(m.getenv("CODEX_HOME"), m.inHome(".codex"))
	path := filepath.Join(dir, "config.toml")
	if text, err := m.readFile(path); err == nil {
		if err := toml.Unmarshal(text, &c); err != nil {
			return launch{}, fmt.Errorf("cannot read %s: %w", path, err)
		}
	}
	provider := firstOf(codexValue(f.args, "model_provider"), c.ModelProvider, "openai")
	if provider != "openai" {
		present := firstOf(codexValue(f.args, "model_providers."+provider+".base_url"), c.ModelProviders[provider].BaseURL)
		if present == "" && f.upstream == "" {
			return launch{}, fmt.Errorf("cannot see where Codex's provider %q is; name it with --upstream URL", provider)
		}
		b := split(present).orElse(f.upstream)
		return launch{
			args:      codexArgs(f.args, "model_providers."+provider+".base_url", at+b.path),
			upstreams: []gateway.Upstream{{URL: b.upstream}},
		}, nil
	}
	present := firstOf(codexValue(f.args, "openai_base_url"), c.OpenAIBaseURL)
	b := split(firstOf(present, openaiURL)).orElse(f.upstream)
	l := launch{args: codexArgs(f.args, "openai_base_url", at+b.path), upstreams: []gateway.Upstream{{URL: b.upstream, Default: true}}}
	if present == "" && f.upstream == "" {
		l.upstreams = append(l.upstreams, gateway.Upstream{URL: chatgptURL, Prefix: chatgpt})
		l.wrap = byLogin
	}
	return l, nil
}

// byLogin sends the requests of a ChatGPT login to the address that Codex uses
// with one. Such a request names the account in a header.
func byLogin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/v1/"); ok && r.Header.Get("Chatgpt-Account-Id") != "" {
			r = r.Clone(r.Context())
			r.URL = &url.URL{Path: chatgpt + "/" + rest, RawQuery: r.URL.RawQuery}
			r.RequestURI = r.URL.RequestURI()
		}
		next.ServeHTTP(w, r)
	})
}

// codexArgs returns args with a value for a key of Codex's configuration, in
// place of the one that they have.
func codexArgs(args []string, key, value string) []string {
	out := []string{"-c", key + `="` + value + `"`}
	for i := 0; i < len(args); i++ {
		pair, wide := codexPair(args[i:])
		if k, _, _ := strings.Cut(pair, "="); k == key {
			i += wide - 1
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// codexValue returns the value that the arguments of Codex give to a key, or "".
// The last one counts.
func codexValue(args []string, key string) string {
	found := ""
	for i := range args {
		pair, _ := codexPair(args[i:])
		if k, v, ok := strings.Cut(pair, "="); ok && k == key {
			found = strings.Trim(v, `"'`)
		}
	}
	return found
}

// codexPair returns the key=value that args begin with, and in how many
// arguments it is; "" if they begin with another argument.
func codexPair(args []string) (pair string, wide int) {
	if pair, ok := strings.CutPrefix(args[0], "--config="); ok {
		return pair, 1
	}
	if (args[0] == "-c" || args[0] == "--config") && len(args) > 1 {
		return args[1], 2
	}
	return "", 1
}
