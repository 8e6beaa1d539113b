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
	to := firstSet(destination{url: f.withV1()}, destination{m.getenv(name), name})
	if to.url == "" {
		return launch{}, errors.New("the Copilot CLI asks GitHub's own servers, which cannot be changed; set " + name + " and COPILOT_MODEL for a provider of your own (see copilot help providers), or name it with --upstream URL")
	}
	b := split(to.url)
	if m.getenv("COPILOT_PROVIDER_TYPE") == "anthropic" && f.upstream != "" {
		b.path = "" // its SDK appends it
	}
	env := []string{name + "=" + at + b.path, "COPILOT_PROVIDER_TRANSPORT=http"}
	return launch{args: f.args, env: env, upstreams: []gateway.Upstream{{URL: b.upstream}}, from: to.from}, nil
}
