package transport

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/wire"
)

// Handler returns a reverse proxy for clients that let you change only their
// base URL. It sends requests to upstream; their path is appended to
// upstream's path. Model calls go through the chain. Streams are flushed as
// they arrive, and a client that reads slowly makes the provider wait. If the
// upstream cannot be reached, the client gets the status 502 or 504
// with an error in the format's own form. If the upstream refuses
// connections, the error has X-Should-Retry: false and the status of
// Codec.UnavailableStatus. If a response breaks off, the client's connection is
// closed, so that the client does not take the response for complete. Handler
// logs nothing. It panics if upstream is not an absolute URL.
//
// A path with a ".." segment in any spelling gets the status 400, and CONNECT
// and TRACE get 405. A POST request on the path of a model call cannot upgrade its
// connection; other requests can upgrade it to a WebSocket. Unlike a Hook, a Handler also validates
// requests that are signed, digested or sent with trailers, because a client's
// headers must not turn validation off. If the chain changes a request body, as
// in a re-ask, its digests are removed. A changed body of a signed request is
// refused by the provider.
//
// The body of a request may take a minute, and a second more for each 500 bytes, until the
// response begins. A slower one gets the status 400. A request that does not fit
// into Options.Memory gets 429.
//
// A redirect of a model call is an error that names its host, because a client that
// follows it would leave the proxy.
//
// All other requests and their responses pass through as they are, except for
// hop-by-hop headers and Host. A request that AWS' clients signed keeps its Host. Handler adds
// no forwarding header, and removes none.
//
// Handler sends its requests by Options.Base. For a proxy with other needs, use
// an httputil.ReverseProxy with RoundTripper as its Transport and FlushInterval
// -1. Package gateway is a whole gateway over Handler.
func (t *Transport) Handler(upstream *url.URL) http.Handler {
	if upstream == nil || upstream.Scheme == "" || upstream.Host == "" {
		panic("transport: Handler: upstream must be an absolute URL")
	}
	base := &proxied{t, &upstreamTransport{t.options.Base}}
	return proxy.New(upstream, base, func(w http.ResponseWriter, r *http.Request, status int, code, message string) {
		c := clientCodec(r)
		if c != nil && code == proxy.Refused {
			status = c.UnavailableStatus(status)
		}
		refuse(w, c, status, code, "transport: "+message)
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
			resp, err = errorResponse(req, clientCodec(req), &Panic{Value: v, Stack: debug.Stack()}), nil
		}
	}()
	return p.t.roundTrip(req, p.base.RoundTrip, proxy.ClientOf(req.Context()))
}

// clientCodec returns the codec that receive chose for a request to a Handler, or nil.
func clientCodec(req *http.Request) wire.Codec {
	client := proxy.ClientOf(req.Context())
	if client == nil {
		return nil
	}
	c, _ := client.Note.(wire.Codec)
	return c
}

// refuse writes an error in the format of c, which may be nil.
func refuse(w http.ResponseWriter, c wire.Codec, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(errorHeader, code)
	w.WriteHeader(status)
	_, _ = w.Write(encodeError(c, status, code, message))
}

var errSwitched = errors.New("transport: the upstream switched protocols without being asked")

// upstreamTransport removes the headers and trailers of this package from the
// upstream's responses, so that a client of the Handler gets only those that
// this package sets.
type upstreamTransport struct{ http.RoundTripper }

// RoundTrip sends a request to the upstream.
func (u *upstreamTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols && req.Header.Get("Upgrade") == "" {
		_ = resp.Body.Close()
		return nil, errSwitched
	}
	if proxy.WithoutOwn(resp.Header); resp.StatusCode != http.StatusSwitchingProtocols {
		proxy.WithoutHops(resp.Header)
	}
	proxy.WithoutOwn(resp.Trailer)
	if resp.StatusCode != http.StatusSwitchingProtocols && resp.Body != http.NoBody { // after 101 the body is a connection
		resp.Body = &upstreamBody{resp.Body, resp}
	}
	return resp, nil
}

// upstreamBody removes the trailers of this package at its end, whether announced or not.
type upstreamBody struct {
	io.ReadCloser
	resp *http.Response
}

// Read removes the trailers with io.EOF.
func (b *upstreamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		proxy.WithoutOwn(b.resp.Trailer)
	}
	return n, err
}
