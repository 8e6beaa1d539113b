// Package proxy is a reverse proxy that passes requests and responses on as they
// are. It removes hop-by-hop headers (RFC 9110, section 7.6.1) and replaces the
// Host, except in a request that AWS' clients signed, and changes nothing else that net/http lets it keep. net/http writes
// header names in their canonical case and in the order of the alphabet, writes
// its own reason phrases, frames bodies anew, and drops trailers of a request
// that were not announced.
package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
)

// Refuse writes a response of the proxy itself. code is a word for programs,
// and message a text for people. It holds nothing of the request.
type Refuse func(w http.ResponseWriter, r *http.Request, status int, code, message string)

// ErrSent is the error that the base of a proxy returns if it has written the whole response to
// the Client. After a part of it, the base returns another error.
var ErrSent = errors.New("proxy: the client has the response")

// proxy is the handler of New.
type proxy struct {
	to        url.URL
	base      http.RoundTripper
	refuse    Refuse
	switching *httputil.ReverseProxy // for requests that switch to another protocol
}

// New returns a proxy that appends the path of a request to the path of upstream, and sends the
// request by base. Bytes of a response are sent as they arrive; a body that is an io.WriterTo is
// written at once. If a response breaks off, the client's connection is closed. base may write a
// response itself, by ClientOf.
//
// refuse responds if the upstream cannot be reached (502 or 504, see Refused), to
// CONNECT and TRACE (405), to a path with a ".." segment in any spelling (400), and to a
// body that breaks off before the upstream has answered (400).
func New(upstream *url.URL, base http.RoundTripper, refuse Refuse) http.Handler {
	p := &proxy{to: *upstream, base: base, refuse: refuse}
	p.switching = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			out := p.outgoing(r.Out.Context(), r.In)
			for _, k := range []string{"Connection", "Upgrade"} {
				if values, ok := r.Out.Header[k]; ok {
					out.Header[k] = values
				}
			}
			r.Out = out
		},
		Transport:     base,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			p.failed(w.(*Client), r, err)
		},
	}
	return p
}

// ServeHTTP forwards a request, or refuses one that must not reach an upstream.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect || strings.EqualFold(r.Method, http.MethodTrace): // the response to TRACE has the headers, and with them the upstream's key
		p.refuse(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "CONNECT and TRACE are not forwarded")
		return
	case climbs(r.URL.Path):
		p.refuse(w, r, http.StatusBadRequest, "invalid_path", "the path has a segment that leaves the upstream's path")
		return
	}
	c := newClient(w, r)
	defer c.close()
	r = r.WithContext(context.WithValue(r.Context(), clientKey{}, c))
	if c.request != nil {
		r.Body = c.request
	}
	if c.switches {
		p.switching.ServeHTTP(c, r)
	} else {
		p.exchange(c, r)
	}
	c.end()
}

// exchange serves a request that keeps its protocol.
func (p *proxy) exchange(c *Client, r *http.Request) {
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: c.informed})
	resp, err := p.base.RoundTrip(p.outgoing(ctx, r))
	if err == nil && (resp.StatusCode < http.StatusOK || resp.StatusCode > maxStatus) { // net/http panics at a status that does not have three digits
		_ = resp.Body.Close()
		err = errStatus
	}
	switch {
	case errors.Is(err, ErrSent):
		return
	case err == nil:
		err = c.pass(resp)
	case !c.hasBegun():
		p.failed(c, r, err)
		return
	}
	if err != nil && r.Context().Value(http.ServerContextKey) != nil { // without a server nothing recovers from a panic
		c.closeRequest(0) // net/http would wait for the rest of it, and the client for the end of the response
		panic(http.ErrAbortHandler)
	}
}

// maxStatus is the highest status. Source: RFC 9110, section 15.
const maxStatus = 999

var errStatus = errors.New("proxy: the upstream switched protocols without being asked, or ended its answer with a status below 200 or above 999")

// failed responds to a request that got no response.
func (p *proxy) failed(c *Client, r *http.Request, err error) {
	w := c.plainWriter()
	if c.request != nil && c.request.broken.Load() {
		p.refuse(w, r, http.StatusBadRequest, "invalid_body", "the request body broke off, came too slowly, or its framing is not valid")
		return
	}
	unreachable(w, r, err, p.refuse)
}

// outgoing returns r as the upstream gets it.
func (p *proxy) outgoing(ctx context.Context, r *http.Request) *http.Request {
	out := r.Clone(ctx)
	out.Close = false
	if r.ContentLength == 0 {
		out.Body = nil // http.Transport may then repeat the request on another connection
	}
	WithoutHops(out.Header)
	if hasToken(r.Header["Te"], "trailers") {
		out.Header.Set("Te", "trailers")
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // so net/http does not write its own
	}
	to := httputil.ProxyRequest{In: r, Out: out}
	to.SetURL(&p.to)
	if IsSigned(r) {
		out.Host = r.Host
	}
	out.URL.Opaque = spelled(r.URL, &p.to)
	out.URL.RawQuery = strings.ReplaceAll(out.URL.RawQuery, " ", "%20")
	out.Trailer = r.Trailer // this map gets the values after the body
	return out
}

// IsSigned reports whether r has a signature of AWS, version 4. It covers the Host and the
// body. Source: AWS Signature Version 4, "Create a signed AWS API request".
func IsSigned(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") || strings.Contains(r.URL.RawQuery, "X-Amz-Signature=")
}

// hops are the headers that belong to a connection even if Connection does not name them.
var hops = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// WithoutHops removes the hop-by-hop headers from h. A base that adds headers to a response calls
// it first: otherwise the upstream's Connection header may name them.
func WithoutHops(h http.Header) {
	for _, names := range h["Connection"] {
		for name := range strings.SplitSeq(names, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, k := range hops {
		delete(h, k)
	}
}

// WithoutOwn removes the headers that only the gateway may set, and returns h.
func WithoutOwn(h http.Header) http.Header {
	const prefix = "X-Toolmend-"
	for k := range h {
		if len(k) >= len(prefix) && strings.EqualFold(k[:len(prefix)], prefix) {
			delete(h, k)
		}
	}
	return h
}

// hasToken reports whether a header, a list of words, has one of them.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for word := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(word), token) {
				return true
			}
		}
	}
	return false
}

// spelled returns the whole path for the upstream as the client spelled it, if
// net/url would spell it in another way. That is so for characters that belong
// percent-encoded into a URL, such as "|", if the client did not encode them.
func spelled(in, to *url.URL) string {
	raw := in.RawPath
	if raw == "" || raw == in.EscapedPath() || strings.Contains(raw, " ") { // over HTTP/1, a path ends at a space
		return ""
	}
	if plain, err := url.PathUnescape(raw); err != nil || plain != in.Path {
		return "" // not the path that was checked
	}
	path := strings.TrimSuffix(to.EscapedPath(), "/") + "/" + strings.TrimPrefix(raw, "/")
	if strings.HasPrefix(path, "//") {
		return "" // net/url would take it for a host
	}
	return path
}

// climbs reports whether a server may read a segment of path as "..": with
// backslashes for slashes, with parameters after it, or with one more escape.
func climbs(path string) bool {
	if !strings.Contains(path, "..") && !strings.Contains(path, "%") {
		return false
	}
	const layers = 4 // of escapes
	for range layers {
		for _, seg := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			seg, _, _ = strings.Cut(seg, ";")
			if strings.Trim(seg, " \t") == ".." {
				return true
			}
		}
		plain, err := url.PathUnescape(path)
		if err != nil || plain == path {
			return false
		}
		path = plain
	}
	return true
}
