package serve

import (
	"errors"

	"github.com/toolmend/toolmend/gateway"
)

// launchCopilot points the GitHub Copilot CLI at the gateway, if it uses a provider of the user's
// own. It keeps the type of the provider, the model and the key in further variables.
// Source: copilot help providers, of 1.0.102.
func launchCopilot(m machine, at string, f runFlags) (launch, error) {
	const name = "COPILOT_PROVIDER_BASE_URL"
	present := firstOf(m.getenv(name))
	if present == "" && f.upstream == "" {
		return launch{}, errors.New("the Copilot CLI asks GitHub's own servers, which cannot be changed; set " + name + " and COPILOT_MODEL for a provider of your own (see copilot help providers), or name it with --upstream URL")
	}
	b := split(present).orElse(f.upstream)
	if m.getenv("COPILOT_PROVIDER_TYPE") == "anthropic" && f.upstream != "" {
		b.path = "" // its SDK appends it
	}
	l := launch{args: f.args, env: []string{name + "=" + at + b.path, "COPILOT_PROVIDER_TRANSPORT=http"}, upstreams: []gateway.Upstream{{URL: b.upstream}}}
	if f.upstream == "" {
		l.from = name
	}
	return l, nil
}
