// Package gateway is an HTTP gateway that validates the tool calls of agents in
// any language. An agent uses it by its base URL, and nothing else changes:
//
//	g, err := gateway.New(gateway.Config{
//		Upstreams: []gateway.Upstream{{URL: "https://api.anthropic.com"}},
//	}, gateway.Options{})
//	if err != nil {
//		return err
//	}
//	defer g.Close()
//	return http.ListenAndServe("127.0.0.1:7777", g)
//
// Model calls in the formats of package wire go through package transport with
// argsvalidate. All other requests are streamed through: model lists,
// embeddings, token counts, uploads and unknown paths, with the status, the
// headers and the trailers of the upstream. The command `toolmend serve` runs
// a Gateway with a configuration file, signals and exporters.
//
// # Modes
//
// Enforce validates and repairs tool calls, and re-asks the model about the
// rest. Repair makes no second model call. Observe changes nothing and adds no
// wait: it validates a copy of each answer beside the stream and counts what the
// other modes would have done.
//
// # State
//
// A Gateway holds no state that a request needs, with one exception: after a
// re-ask of a streamed Responses answer, the Gateway remembers under which id
// the provider stores the accepted answer. See package transport, "One identity".
package gateway

import (
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
)

// ownPath is the path of the gateway's own pages. No upstream is reached below it.
const ownPath = "/_toolmend"

// Options are what a configuration file cannot hold. The zero Options work.
type Options struct {
	Logger *slog.Logger // gets a record for each model call; nil means no log
}

// Validate returns nil: every Options is valid.
func (o Options) Validate() error { return nil }

// Gateway is an http.Handler. It is safe for concurrent use.
type Gateway struct {
	options Options
	state   atomic.Pointer[state]
}

// New returns a Gateway. The error is that of c.Validate, or says which file or
// environment variable could not be read.
func New(c Config, o Options) (*Gateway, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	g := &Gateway{options: o}
	return g, g.Reload(c)
}

// Reload replaces the configuration. Requests that have begun keep the one that
// they began with. After an error the Gateway keeps its configuration.
func (g *Gateway) Reload(c Config) error {
	s, err := newState(c, g.options)
	if err != nil {
		return err
	}
	if old := g.state.Swap(s); old != nil {
		old.retire()
	}
	return nil
}

// Close releases what the Gateway holds open. Requests that have begun may fail.
func (g *Gateway) Close() error {
	g.state.Load().retire()
	return nil
}

// ServeHTTP is part of http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := g.state.Load()
	route, r, err := s.route(r)
	var gone *bodyError
	switch {
	case errors.As(err, &gone): // of the client's connection: there is nobody to answer
		panic(http.ErrAbortHandler)
	case err != nil:
		refuse(w, r, http.StatusNotFound, "unknown_upstream", err.Error())
		return
	}
	route.ServeHTTP(w, r)
}
