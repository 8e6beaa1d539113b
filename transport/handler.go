package transport

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime/debug"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire"
)

// Handler returns a reverse proxy: for clients that can change nothing but
// their base URL. Requests go to upstream, their path below upstream's; model
// calls go through the chain. Answers are flushed as they come. An upstream
// that cannot be reached is a 502, or a 504, in the format's own error form; an
// answer that breaks off ends the client's connection, so that nobody takes it
// for whole. Nothing is logged. Handler panics if upstream is no absolute URL.
//
// A path with a ".." segment in any spelling is refused with status 400, and
// CONNECT with 405. Unlike a Hook, a Handler also validates requests that are
// signed, digested or sent with trailers: no header of the client switches
// validation off. Digests are removed from a request whose body the chain has
// changed, as in a re-ask; of a signed one the provider refuses the re-ask.
//
// It uses http.DefaultTransport. A proxy with other needs is an
// httputil.ReverseProxy with RoundTripper as its Transport and FlushInterval -1.
func (t *Transport) Handler(upstream *url.URL) http.Handler {
	if upstream == nil || upstream.Scheme == "" || upstream.Host == "" {
		panic("transport: Handler: upstream is no absolute URL")
	}
	to := *upstream
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&to) },
		Transport:     &proxied{t, &upstreamTransport{http.DefaultTransport}},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  unreachable,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "transport: CONNECT is not forwarded")
			return
		case climbs(r.URL.Path):
			refuse(w, http.StatusBadRequest, "invalid_path", "transport: the path has a segment that leaves the upstream's path")
			return
		}
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), codecKey{}, new(wire.Codec))))
	})
}

// proxied is the RoundTripper of a Handler.
type proxied struct {
	t    *Transport
	base http.RoundTripper
}

// RoundTrip answers for a middleware that panicked: net/http would close the
// connection, and the client would ask again.
func (p *proxied) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	defer func() {
		switch v := recover(); {
		case v == http.ErrAbortHandler:
			panic(v)
		case v != nil:
			resp, err = p.panicked(req, &Panic{Value: v, Stack: debug.Stack()}), nil
		}
	}()
	return p.t.do(req, p.base.RoundTrip)
}

func (p *proxied) panicked(req *http.Request, err *Panic) *http.Response {
	return (&step{t: p.t, req: req, codec: noted(req)}).raised(err)
}

type codecKey struct{}

// isProxied reports whether req came in through a Handler.
func isProxied(req *http.Request) bool {
	_, ok := req.Context().Value(codecKey{}).(*wire.Codec)
	return ok
}

// note tells the Handler, if there is one, which format its client uses.
func note(req *http.Request, c wire.Codec) {
	if at, ok := req.Context().Value(codecKey{}).(*wire.Codec); ok {
		*at = c
	}
}

// noted returns what note said; nil if the format is not known.
func noted(req *http.Request) wire.Codec {
	at, _ := req.Context().Value(codecKey{}).(*wire.Codec)
	if at == nil {
		return nil
	}
	return *at
}

// unreachable answers for an upstream that did not. The error is not shown: it
// may hold the address, and that a key.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	status, code, message := http.StatusBadGateway, "upstream_unreachable", "transport: the upstream did not answer"
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		status, code = http.StatusGatewayTimeout, "upstream_timeout"
	}
	write(w, status, encodeError(noted(r), status, code, message))
}

// refuse answers a request of no known format.
func refuse(w http.ResponseWriter, status int, code, message string) {
	write(w, status, encodeError(nil, status, code, message))
}

// encodeError writes an error in the format of c; nil stands for no known format.
func encodeError(c wire.Codec, status int, code, message string) []byte {
	if c == nil {
		return []byte(`{"error":{"code":` + rawjson.Quote(code) + `,"message":` + rawjson.Quote(message) + `}}`)
	}
	return c.EncodeError(status, code, message)
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
