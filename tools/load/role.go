package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/transport"
)

// The servers that this program can be.
const (
	roleMock    = "mock"    // role mock ADDRESS GAP [ADDRESS], the second one for HTTP/2 over TLS
	roleProxy   = "proxy"   // role proxy ADDRESS UPSTREAM
	roleHandler = "handler" // role handler ADDRESS UPSTREAM [PROFILE]
)

// serveRole is one of the servers until ctx is done or stdin ends, which it does
// when the process that started this one ends.
func serveRole(ctx context.Context, args []string, stdin io.Reader) error {
	if len(args) < 3 {
		return errors.New("role: want a name, an address and an argument")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	handler, err := roleOf(args[0], args[2])
	if err != nil {
		return err
	}
	if len(args) > 3 && args[0] == roleMock {
		secure := httptest.NewUnstartedServer(handler)
		secure.EnableHTTP2 = true
		_ = secure.Listener.Close()
		if secure.Listener, err = net.Listen("tcp", args[3]); err != nil {
			return err
		}
		secure.StartTLS()
		defer secure.Close()
	} else if len(args) > 3 {
		f, err := os.Create(args[3])
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	server := &http.Server{Addr: args[1], Handler: handler}
	defer server.Close()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func roleOf(name, arg string) (http.Handler, error) {
	switch name {
	case roleMock:
		gap, err := time.ParseDuration(arg)
		debug.SetGCPercent(lazyGC)
		return &mock{gap: gap}, err
	case roleProxy, roleHandler:
		upstream, err := url.Parse(arg)
		if err != nil {
			return nil, err
		}
		keepConnections()
		if name == roleHandler {
			return transport.New(transport.Options{}, argsvalidate.New(argsvalidate.Options{})).Handler(upstream), nil
		}
		return &httputil.ReverseProxy{BufferPool: &buffers{}, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Body = exactly(r.Out.Body, r.Out.ContentLength)
		}}, nil
	}
	return nil, fmt.Errorf("role %q: want %s, %s or %s", name, roleMock, roleProxy, roleHandler)
}

// buffers are a BufferPool. Without one a ReverseProxy allocates 32 KB for each response, and takes
// more processor time than a plain one has to.
type buffers struct{ pool sync.Pool }

// Get returns a buffer of the size that httputil uses.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

// Put keeps a buffer.
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

// lazyGC keeps the garbage collector of the mock and of the clients out of the
// figures. The servers that are measured run with the default.
const lazyGC = 400

// keepConnections gives http.DefaultTransport an idle connection for each client.
// By default it keeps two for each host: ten clients at once would open a new
// connection for most requests, and be slower for that reason alone.
func keepConnections() {
	t := http.DefaultTransport.(*http.Transport)
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1024
}

// exactly returns body without what a reader may ask for past its declared
// length. Without it the ReverseProxy breaks off about one stream in a hundred
// if the upstream answers at once: the server closes the request's body as soon
// as the response begins, and the transport looks once more whether the body has
// ended (go.dev/issue/40747).
func exactly(body io.ReadCloser, length int64) io.ReadCloser {
	if body == nil || length < 0 {
		return body
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, length), body}
}
