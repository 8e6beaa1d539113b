package serve

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/toolmend/toolmend/gateway"
)

const anthropicURL = "https://api.anthropic.com"

// launchClaude points Claude Code at the gateway. Its settings files may hold
// variables, which override the environment; the settings of the
// command line win over both.
// Source: Claude Code's documentation of settings, and measured with 2.1.330.
func launchClaude(m machine, at string, f runFlags) (launch, error) {
	const name = "ANTHROPIC_BASE_URL"
	l := launch{env: []string{name + "=" + at}, args: f.args}
	present := m.claudeSetting(name)
	if present != "" {
		text, err := json.Marshal(map[string]any{"env": map[string]string{name: at}})
		if err != nil {
			return l, err
		}
		l.args = append([]string{"--settings", string(text)}, f.args...)
	}
	// Claude Code appends /v1 to any base URL, so the upstream keeps one.
	to := firstSet(destination{url: withoutV1(f.upstream)}, destination{present, name + " in Claude Code's settings"},
		destination{m.getenv(name), name}, destination{url: anthropicURL})
	l.from, l.upstreams = to.from, []gateway.Upstream{{URL: strings.TrimRight(to.url, "/")}}
	return l, nil
}

// claudeSetting returns a variable of Claude Code's settings files, or "".
func (m machine) claudeSetting(name string) string {
	user := cmp.Or(m.getenv("CLAUDE_CONFIG_DIR"), m.inHome(".claude"))
	return m.setting([]string{
		filepath.Join(m.dir, ".claude", "settings.local.json"), filepath.Join(m.dir, ".claude", "settings.json"), filepath.Join(user, "settings.json"),
	}, "env", name)
}
