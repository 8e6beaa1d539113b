package serve

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolmend/toolmend/gateway"
)

const geminiURL = "https://generativelanguage.googleapis.com"

// launchGemini points Gemini CLI at the gateway. With the variable it refuses to start unless its
// settings name the API key: without them it takes the variable for another kind of login.
// Source: Gemini CLI 0.61.0, getAuthTypeFromEnv and validateAuthMethod.
func launchGemini(m machine, at string, f runFlags) (launch, error) {
	const name, key = "GOOGLE_GEMINI_BASE_URL", "gemini-api-key"
	home := firstOf(m.getenv("GEMINI_CLI_HOME"), m.home)
	user := filepath.Join(home, ".gemini", "settings.json")
	login := m.setting([]string{filepath.Join(m.dir, ".gemini", "settings.json"), user}, "security", "auth", "selectedType")
	if login != key {
		return launch{}, fmt.Errorf("the Gemini CLI can use another address only with an API key, and its login is %q; put {\"security\": {\"auth\": {\"selectedType\": %q}}} into %s, and set GEMINI_API_KEY", login, key, user)
	}
	to := firstSet(destination{url: f.upstream}, destination{m.getenv(name), name}, destination{url: geminiURL})
	return launch{args: f.args, env: []string{name + "=" + at}, from: to.from, upstreams: []gateway.Upstream{{URL: strings.TrimRight(to.url, "/")}}}, nil
}
