package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/toolmend/toolmend/gateway"
)

// opencodeProviders are the providers that opencode knows, and their addresses.
// Source: the models that opencode 1.18 comes with.
var opencodeProviders = map[string]string{
	"anthropic":  anthropicURL + "/v1",
	"openai":     openaiURL,
	"opencode":   "https://opencode.ai/zen/v1",
	"openrouter": "https://openrouter.ai/api/v1",
}

// launchOpencode points the providers of opencode at the gateway, each below a
// prefix of its own. OPENCODE_CONFIG_CONTENT is merged over all files.
// Source: measured with opencode 1.18.33.
func launchOpencode(m machine, at string, f runFlags) (launch, error) {
	present := maps.Clone(opencodeProviders)
	content := map[string]any{}
	for _, text := range m.opencodeConfigs() {
		var c struct {
			Provider map[string]struct {
				Options struct {
					BaseURL string `json:"baseURL"`
				} `json:"options"`
			} `json:"provider"`
		}
		if json.Unmarshal(text, &c) != nil {
			continue
		}
		for name, p := range c.Provider {
			if p.Options.BaseURL != "" {
				present[name] = p.Options.BaseURL
			}
		}
	}
	if own := m.getenv("OPENCODE_CONFIG_CONTENT"); own != "" {
		if err := json.Unmarshal(withoutComments([]byte(own)), &content); err != nil {
			return launch{}, fmt.Errorf("OPENCODE_CONFIG_CONTENT is not a JSON object: %w", err)
		}
	}
	l := launch{args: f.args}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		b := split(firstOf(f.withV1(), present[name]))
		l.upstreams = append(l.upstreams, gateway.Upstream{Name: name, URL: b.upstream, Prefix: "/" + name})
		object(object(object(content, "provider"), name), "options")["baseURL"] = at + "/" + name + b.path
	}
	text, err := json.Marshal(content)
	l.env = []string{"OPENCODE_CONFIG_CONTENT=" + string(text)}
	return l, err
}

// object returns the object under a key, and makes one if there is none.
func object(in map[string]any, key string) map[string]any {
	o, ok := in[key].(map[string]any)
	if !ok {
		o = map[string]any{}
		in[key] = o
	}
	return o
}

// opencodeConfigs returns the configurations of opencode, the strongest last.
func (m machine) opencodeConfigs() [][]byte {
	files := []string{}
	config := firstOf(m.getenv("XDG_CONFIG_HOME"), m.inHome(".config"))
	both := func(dir string) {
		files = append(files, filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"))
	}
	if config != "" {
		both(filepath.Join(config, "opencode"))
	}
	if f := m.getenv("OPENCODE_CONFIG"); f != "" {
		files = append(files, f)
	}
	for _, dir := range slices.Backward(m.up()) {
		both(dir)
	}
	var all [][]byte
	for _, f := range files {
		if text, err := m.readFile(f); err == nil {
			all = append(all, withoutComments(text))
		}
	}
	if own := m.getenv("OPENCODE_CONFIG_CONTENT"); own != "" {
		all = append(all, withoutComments([]byte(own)))
	}
	return all
}

// withoutComments returns a JSON text without // and /* */ comments and without
// commas in front of a closing bracket.
func withoutComments(text []byte) []byte {
	var out []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			end := stringEnd(text, i)
			out = append(out, text[i:end]...)
			i = end - 1
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(text) && text[i+1] == '*':
			for i += 2; i+1 < len(text) && (text[i] != '*' || text[i+1] != '/'); i++ {
			}
			i++
		case c == ']' || c == '}':
			if before := bytes.TrimRight(out, " \t\r\n"); bytes.HasSuffix(before, []byte(",")) {
				out = before[:len(before)-1]
			}
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	return out
}

// stringEnd returns where the string that starts at i ends, behind its quote.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(text))
}
