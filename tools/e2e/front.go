package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
)

// front is what is between a client and the upstream.
type front struct {
	name      string
	validates bool // the expectations of the scenarios hold behind it
	passes    bool // it passes invalid calls; not every scenario runs through it
	raises    bool // a call that stays invalid is an error; only scenarios about that run through it
	// open returns what the client talks to. More are the members of gateway.Settings that a
	// scenario changes, as JSON; "" for none.
	open func(upstream *url.URL, more string) (http.Handler, error)
}

// fronts: the first is the one that all others are compared with.
var fronts = []front{
	{name: "direct", open: func(upstream *url.URL, _ string) (http.Handler, error) {
		proxy := httputil.NewSingleHostReverseProxy(upstream)
		proxy.FlushInterval = -1
		return proxy, nil
	}},
	{name: "observe", passes: true, open: serve(gateway.Settings{Mode: gateway.Observe})},
	{name: "repair", passes: true, open: serve(gateway.Settings{Mode: gateway.Repair})},
	{name: "enforce", validates: true, open: serve(gateway.Settings{})},
	{name: "raise", validates: true, raises: true, open: serve(gateway.Settings{OnExhausted: middleware.Raise})},
}

// serve returns the opener of a gateway, as `toolmend serve` runs it.
func serve(base gateway.Settings) func(upstream *url.URL, more string) (http.Handler, error) {
	return func(upstream *url.URL, more string) (http.Handler, error) {
		s := base
		if more != "" {
			d := json.NewDecoder(strings.NewReader(more))
			d.DisallowUnknownFields()
			if err := d.Decode(&s); err != nil {
				return nil, err
			}
		}
		return gateway.New(gateway.Config{Settings: s, Upstreams: []gateway.Upstream{{URL: upstream.String()}}}, gateway.Options{})
	}
}
