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

// Handler returns a reverse proxy for clients that let you change only their
// base URL. It sends requests to upstream; their path is appended to
// upstream's path. Model calls go through the chain. Responses are flushed as
// they arrive. If the upstream cannot be reached, the client gets the status
// 502 or 504 with an error in the format's own form. If a response breaks off,
// the client's connection is closed, so that the client does not take the
// response for complete. Handler logs nothing. It panics if upstream is not an
// absolute URL.
//
// A path with a ".." segment in any spelling gets the status 400, and CONNECT
// gets 405. Unlike a Hook, a Handler also validates requests that are signed,
// digested or sent with trailers, because a client's headers must not turn
// validation off. If the chain changes a request body, as in a re-ask, its
// digests are removed. A changed body of a signed request is refused by the
// provider.
//
// Handler uses http.DefaultTransport. For a proxy with other needs, use an
// httputil.ReverseProxy with RoundTripper as its Transport and FlushInterval
// -1.
func (t *Transport) Handler(upstream *url.URL) http.Handler {
	if upstream == nil || upstream.Scheme == "" || upstream.Host == "" {
		panic("transport: Handler: upstream must be an absolute URL")
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

// RoundTrip turns a panic of a middleware into a response. Otherwise net/http
// would close the connection, and the client would retry.
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

// noted returns the format that note stored, or nil.
func noted(req *http.Request) wire.Codec {
	at, _ := req.Context().Value(codecKey{}).(*wire.Codec)
	if at == nil {
		return nil
	}
	return *at
}

// unreachable responds for an upstream that did not respond. It leaves out the
// error, which may contain the URL and with it a key.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	status, code, message := http.StatusBadGateway, "upstream_unreachable", "transport: the upstream did not answer"
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		status, code = http.StatusGatewayTimeout, "upstream_timeout"
	}
	write(w, status, encodeError(noted(r), status, code, message))
}

// refuse responds to a request of an unknown format.
func refuse(w http.ResponseWriter, status int, code, message string) {
	write(w, status, encodeError(nil, status, code, message))
}

// encodeError writes an error in the format of c; nil means an unknown format.
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
