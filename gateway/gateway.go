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
// wait: it validates a copy of each answer, and counts what the other modes
// would have done.
//
// # State
//
// A Gateway holds no state that a request needs, with one exception: after a
// re-ask of a streamed Responses answer, the Gateway remembers under which id
// the provider stores the accepted answer. See package transport, "One identity".
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolmend/toolmend/internal/page"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// ownPath is the path of the gateway's own pages. No upstream is reached below it.
const ownPath = "/_toolmend"

// defaultListen is the address of a Config without Listen.
const defaultListen = "127.0.0.1:7777"

// Options configure a Gateway beyond its configuration file. The zero Options work.
type Options struct {
	// Logger gets a record for each model call. It holds no content. nil means
	// no log.
	Logger         *slog.Logger
	MeterProvider  metric.MeterProvider // nil means no metrics
	TracerProvider trace.TracerProvider // nil means no spans
	// Decoders decompress requests, by their Content-Encoding; gzip needs none. See
	// transport.Options.Decoders.
	Decoders map[string]transport.Decoder
	// Metrics serves /_toolmend/metrics, as the exporter of MeterProvider does.
	// nil means that there is no such page.
	Metrics http.Handler
	// DialContext opens the connections to upstreams. It limits its own time: Timeouts.Connect
	// does not apply to it. nil means a net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Gateway is an http.Handler. It is safe for concurrent use.
type Gateway struct {
	options  Options
	metrics  *metrics
	copies   *copies        // of the mode Observe; a reload keeps them
	ids      sync.Map       // *transport.IDs by the URL of the upstream; a reload keeps them
	requests *wire.Requests // a reload keeps it
	keeper   *keeper        // of the page; a reload keeps it
	token    string         // of the page
	state    atomic.Pointer[state]
	draining atomic.Bool
	reload   sync.Mutex
	refusals sync.Map // *refusalLog by code

	listen, adminListen string // of the Config of New
}

// New returns a Gateway. It returns the error of c.Validate, or an error that names the file or
// environment variable that could not be read.
func New(c Config, o Options) (*Gateway, error) {
	requests := &wire.Requests{}
	m, err := newMetrics(o.MeterProvider, requests)
	if err != nil {
		return nil, fmt.Errorf("gateway: metrics: %w", err)
	}
	g := &Gateway{listen: c.Listen, adminListen: c.AdminListen, options: o, metrics: m, requests: requests, copies: newCopies(m, o.Logger), keeper: newKeeper(m, o.Logger), token: page.NewToken()}
	if err := g.Reload(c); err != nil {
		return nil, err
	}
	return g, nil
}

// Reload replaces the configuration for new requests. After an error the Gateway keeps its
// configuration. Listen and AdminListen have no effect, because the listeners stay: a new Listen
// could otherwise end the need for a key on a public address.
func (g *Gateway) Reload(c Config) error {
	g.reload.Lock()
	defer g.reload.Unlock()
	old := g.state.Load()
	s, err := g.newState(c, old)
	if err != nil {
		return err
	}
	for _, u := range s.upstreams {
		u.places.resize(u.config.MaxConcurrent)
	}
	g.metrics.memory.SetLimit(c.MaxMemory)
	if g.state.Store(s); old != nil {
		old.retire(s)
	}
	g.resizePage(c, s)
	return nil
}

// Drain makes /_toolmend/readyz report that the Gateway is not ready, so that a load balancer
// sends new requests elsewhere. Requests are still served.
func (g *Gateway) Drain() { g.draining.Store(true) }

// CountLostLog counts n lines of the log that were not written, as
// toolmend_gateway_dropped_total{what="log"}. It is for a Logger whose output is
// buffered: the Gateway does not see what becomes of a record.
func (g *Gateway) CountLostLog(n int) { g.metrics.drop("log", n) }

// Close validates what is left to observe, writes what is left to record, and
// releases what the Gateway holds open. It waits a few seconds at most. Call it
// when no request is served any more.
func (g *Gateway) Close() error {
	g.copies.close()
	g.reload.Lock()
	defer g.reload.Unlock()
	g.state.Load().retire(nil)
	return nil
}

// ServeHTTP serves the gateway's own pages, and sends every other request to its
// upstream.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := g.state.Load()
	in, refused := s.guard.admit(r)
	if refused != nil {
		g.refuse(w, r, *refused)
		return
	}
	if below(r.URL.Path, ownPath) {
		g.ownPages(w, in, s, s.adminHere)
		return
	}
	in, limit := s.limits.admit(in)
	if limit != nil {
		limit.retryAfter(w.Header())
		g.refuse(w, in, refusal{http.StatusTooManyRequests, rateLimited, limit.Error()})
		return
	}
	route, r, err := s.route(w, in)
	switch {
	case errors.Is(err, transport.ErrMemory):
		g.refuse(w, r, refusal{http.StatusTooManyRequests, "too_many_requests", err.Error()})
		return
	case errors.Is(err, errUnreadBody): // of the client's connection: no response can be sent
		panic(http.ErrAbortHandler)
	case errors.Is(err, errModel):
		g.refuse(w, r, refusal{http.StatusBadRequest, "invalid_body", err.Error()})
		return
	case err != nil:
		g.refuse(w, r, refusal{http.StatusNotFound, "unknown_upstream", err.Error()})
		return
	}
	route.ServeHTTP(w, r)
}
