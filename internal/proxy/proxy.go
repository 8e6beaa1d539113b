// Package proxy is a reverse proxy that passes requests and responses on as they
// are. It removes hop-by-hop headers (RFC 9110, section 7.6.1) and replaces the
// Host, and changes nothing else that net/http lets it keep. net/http writes
// header names in their canonical case and in the order of the alphabet, writes
// its own reason phrases, frames bodies anew, and drops trailers of a request
// that were not announced.
package proxy

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Refuse writes a response of the proxy itself. code is a word for programs,
// and message a text for people. It holds nothing of the request.
type Refuse func(w http.ResponseWriter, r *http.Request, status int, code, message string)

// flushInterval is how long bytes of a response with a Content-Length may wait for
// more. Such a response mostly comes in one piece, and to flush its headers apart
// from its body costs a goroutine and a packet. ReverseProxy does not let
// event streams and bodies of unknown length wait.
const flushInterval = 5 * time.Millisecond

// bufferSize is that of the buffers through which bodies are copied. An open
// stream keeps one. httputil's 32 KiB would be most of what a stream takes.
const bufferSize = 8 << 10

// New returns a proxy that appends the path of a request to that of upstream,
// and sends the request by base. Event streams and responses of unknown length are
// flushed as they arrive, and others after a few milliseconds. A response body with a
// method Begun() has its first bytes when base returns it. If a response breaks
// off, the client's connection is closed.
//
// refuse responds if the upstream cannot be reached (502 or 504, see Refused), to
// CONNECT and TRACE (405), to a path with a ".." segment in any spelling (400), and to a
// body that breaks off before the upstream has answered (400).
func New(upstream *url.URL, base http.RoundTripper, refuse Refuse) http.Handler {
	to := *upstream
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { rewrite(r, &to) },
		Transport:     base,
		FlushInterval: flushInterval,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			own := w.(*writer)
			if own.request != nil && own.request.broken.Load() {
				refuse(own.ResponseWriter, r, http.StatusBadRequest, "invalid_body", "the request body broke off, or its framing is not valid")
				return
			}
			unreachable(own.ResponseWriter, r, err, refuse)
		},
		BufferPool: &buffers{},
		ModifyResponse: func(resp *http.Response) error {
			if _, begun := resp.Body.(interface{ Begun() }); begun && resp.Request != nil {
				if own, ok := resp.Request.Context().Value(writerKey{}).(*writer); ok {
					own.begun = true
				}
			}
			return nil
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect || strings.EqualFold(r.Method, http.MethodTrace): // the response to TRACE has the headers, and with them the upstream's key
			refuse(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "CONNECT and TRACE are not forwarded")
		case climbs(r.URL.Path):
			refuse(w, r, http.StatusBadRequest, "invalid_path", "the path has a segment that leaves the upstream's path")
		default:
			// The upstream may answer before it has read the whole request. Without
			// this, net/http would then take the rest of the body away from the
			// upstream. An HTTP/2 connection needs no switch for it.
			_ = http.NewResponseController(w).EnableFullDuplex()
			own := &writer{ResponseWriter: w, continues: strings.EqualFold(r.Header.Get("Expect"), "100-continue")}
			if r.Body != nil && r.Body != http.NoBody {
				own.request = &endedBody{ReadCloser: r.Body}
				r = r.WithContext(context.WithValue(r.Context(), writerKey{}, own))
				r.Body = own.request
			}
			proxy.ServeHTTP(own, r)
			own.end()
		}
	})
}

// forwarding are the headers that ReverseProxy removes before Rewrite.
var forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// rewrite undoes what ReverseProxy changes, and sends the request to the URL to.
func rewrite(r *httputil.ProxyRequest, to *url.URL) {
	r.Out.URL.RawQuery = r.In.URL.RawQuery // also the parameters that net/url cannot parse
	r.SetURL(to)
	r.Out.URL.Opaque = spelled(r.In.URL, to)
	r.Out.Trailer = r.In.Trailer // this map gets the values after the body
	for _, k := range forwarding {
		if values, ok := r.In.Header[k]; ok && !ofConnection(r.In.Header, k) {
			r.Out.Header[k] = values
		}
	}
}

// spelled returns the whole path for the upstream as the client spelled it, if
// net/url would spell it in another way. That is so for characters that belong
// percent-encoded into a URL, such as "|", if the client did not encode them.
func spelled(in, to *url.URL) string {
	raw := in.RawPath
	if raw == "" || raw == in.EscapedPath() {
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

// ofConnection reports whether the header Connection names k as a hop-by-hop
// header.
func ofConnection(h http.Header, k string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(h["Connection"], ","), ","), func(name string) bool {
		return strings.EqualFold(strings.TrimSpace(name), k)
	})
}

// endedBody returns io.EOF again and again at its end. http.Transport reads once
// more there, to see that nothing follows. It takes every other error for a broken
// request and closes the connection while the response is read. Without full
// duplex, as behind a middleware that hides it, the body of net/http's server
// returns such an error from the first byte of the response on.
type endedBody struct {
	io.ReadCloser
	ended  atomic.Bool
	broken atomic.Bool // the client's fault
}

// Read is part of io.Reader.
func (b *endedBody) Read(p []byte) (int, error) {
	if b.ended.Load() {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	switch err {
	case nil:
	case io.EOF:
		b.ended.Store(true)
	default:
		b.broken.Store(true)
	}
	return n, err
}

// writer keeps net/http from adding headers to the upstream's response.
type writer struct {
	http.ResponseWriter
	hijacked  bool
	request   *endedBody // nil if the request has no body
	continues bool       // the client waits for the status 100, which net/http sends by itself
	bare      bool       // the headers have no length, and no body has followed
	begun     bool       // the body has a method Begun, and nothing of it was written
}

type writerKey struct{}

// WriteHeader is part of http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if status == http.StatusContinue && w.continues {
		return
	}
	if h := w.Header(); status >= http.StatusOK {
		for _, k := range []string{"Content-Type", "Date"} {
			if _, ok := h[k]; !ok {
				h[k] = nil // so net/http does not write its own
			}
		}
		w.bare = h.Get("Content-Length") == ""
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write is part of http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.bare, w.begun = false, false
	return w.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController. ReverseProxy flushes the headers of an
// event stream in a goroutine of its own, while it reads the body. If the first bytes
// of that are there, the headers go with them.
func (w *writer) FlushError() error {
	if w.begun {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// end sends the headers of a response without a body, before net/http could add
// a Content-Length of 0. It also closes a request body of which a part was not
// read: in full duplex, net/http does so too late, and panics at the next request
// of the connection ("invalid concurrent Body.Read call").
func (w *writer) end() {
	if w.hijacked {
		return
	}
	unread := w.request != nil && !w.request.ended.Load()
	if w.bare || unread {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
	if unread {
		_ = w.request.Close()
	}
}

// Hijack is part of http.Hijacker. The connection is no longer net/http's.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.hijacked = err == nil
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// climbs reports whether a server may read a segment of path as "..": with
// backslashes for slashes, with parameters after it, or with one more escape.
func climbs(path string) bool {
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

// buffers keeps the buffers through which response bodies are copied.
type buffers struct{ pool sync.Pool }

// Get is part of httputil.BufferPool.
func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return buf[:]
	}
	return make([]byte, bufferSize)
}

// Put is part of httputil.BufferPool.
func (b *buffers) Put(buf []byte) { b.pool.Put((*[bufferSize]byte)(buf)) }
