package e2e

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/transport"
)

// front is what stands between a client and the upstream.
type front struct {
	name      string
	title     string // in the table
	validates bool   // the expectations of the scenarios hold behind it
	// open returns what the client talks to.
	open func(upstream *url.URL) http.Handler
}

// fronts are in the order of the table's columns; the first is the one that all
// others are compared with.
var fronts = []front{
	{name: "direct", title: "directly", open: func(upstream *url.URL) http.Handler {
		proxy := httputil.NewSingleHostReverseProxy(upstream)
		proxy.FlushInterval = -1
		return proxy
	}},
	{name: "handler", title: "through `transport.Handler`", validates: true, open: func(upstream *url.URL) http.Handler {
		return transport.Handler(upstream,
			argsvalidate.New(argsvalidate.Options{OnExhausted: argsvalidate.Raise}),
			retry.New(retry.Options{MinDelay: 50 * time.Millisecond}),
		)
	}},
}
