package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// exchange is one request of a client on the path of a model call, with all
// model calls that were made for it.
type exchange struct {
	upstream string
	mode     Mode
	dialect  string // of the format
	path     string
	start    time.Time
	duration time.Duration // until the last byte of the response was sent

	request *middleware.Request // as the client sent it; nil if it was not read
	report  middleware.Report   // of all attempts
	status  string              // valid, invalid, unchecked, or "" without a call
	code    int                 // the HTTP status that the client got
	err     error               // with which the chain ended; it may be a *transport.Panic
}

// observer is told about each exchange after its end. It must return fast: the
// client's connection waits for it.
type observer interface{ observed(*exchange) }

type exchangeKey struct{}

// captured keeps the request for the exchange. It is the outermost middleware.
func captured(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
			x.request = req
		}
		return next(ctx, req)
	}
}

// watched serves r by h and tells the observers about the exchange.
func (p *pipeline) watched(h http.Handler, w http.ResponseWriter, r *http.Request, dialect string) {
	x := &exchange{upstream: p.upstream, mode: p.settings.Mode, dialect: dialect, path: r.URL.Path, start: time.Now()}
	ctx, call := transport.Watch(context.WithValue(r.Context(), exchangeKey{}, x))
	code := &statusWriter{ResponseWriter: w}
	defer func() { // also if the handler panics: ReverseProxy does so if a response breaks off
		x.duration = time.Since(x.start)
		x.report, x.status, x.err, x.code = call.Report(), call.Status(), call.Err(), code.status
		for _, o := range p.observers {
			o.observed(x)
		}
	}()
	h.ServeHTTP(code, r.WithContext(ctx))
}

// statusWriter keeps the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int // 0 if there was no response
}

// WriteHeader is part of http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write is part of http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
