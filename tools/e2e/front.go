package e2e

import (
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
)

// front is what is between a client and the upstream.
type front struct {
	name      string
	validates bool // the expectations of the scenarios hold behind it
	passes    bool // it passes invalid calls; not every scenario runs through it
	raises    bool // a call that stays invalid is an error; only scenarios about that run through it
	// open returns what the client talks to.
	open func(upstream *url.URL) (http.Handler, error)
}

// fronts: the first is the one that all others are compared with.
var fronts = []front{
	{name: "direct", open: func(upstream *url.URL) (http.Handler, error) {
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
func serve(s gateway.Settings) func(upstream *url.URL) (http.Handler, error) {
	return func(upstream *url.URL) (http.Handler, error) {
		return gateway.New(gateway.Config{Settings: s, Upstreams: []gateway.Upstream{{URL: upstream.String()}}}, gateway.Options{})
	}
}
