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
	provider, _ := codexCut(f.args, "model_provider")
	provider = firstOf(provider, c.ModelProvider, "openai")
	key, configured, usual := "openai_base_url", c.OpenAIBaseURL, openaiURL
	if provider != "openai" {
		key, configured, usual = "model_providers."+provider+".base_url", c.ModelProviders[provider].BaseURL, ""
	}
	given, args := codexCut(f.args, key)
	to := firstOf(f.withV1(), given, configured)
	b := split(firstOf(to, usual))
	if b.upstream == "" {
		return launch{}, fmt.Errorf("cannot see where Codex's provider %q is; name it with --upstream URL", provider)
	}
	args = append([]string{"-c", key + `="` + at + b.path + `"`}, args...)
	l := launch{args: args, upstreams: []gateway.Upstream{{URL: b.upstream, Default: provider == "openai"}}}
	if to == "" {
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

// codexCut returns the value that the arguments of Codex give to a key of its configuration, or
// "", and the arguments without it. The last value counts.
func codexCut(args []string, key string) (value string, rest []string) {
	for i := 0; i < len(args); i++ {
		pair, wide := codexPair(args[i:])
		if k, v, _ := strings.Cut(pair, "="); k == key {
			value = strings.Trim(v, `"'`)
			i += wide - 1
			continue
		}
		rest = append(rest, args[i])
	}
	return value, rest
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
