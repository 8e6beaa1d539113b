package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// exchange is one request of a client on the path of a model call, with all
// model calls that were made for it.
type exchange struct {
	upstream     string
	mode         Mode
	dialect      string // of the format
	path         string
	client       string      // a label for logs; see clientLabel
	key          string      // the name of the client whose key the request had, or ""
	header       http.Header // of the request; do not modify it
	start        time.Time
	duration     time.Duration // until the last byte of the response was sent
	upstreamTime time.Duration // the part of duration that was spent on model calls

	checker *report.Checker     // with the settings of the upstream
	request *middleware.Request // as the client sent it; nil if it was not read
	report  middleware.Report   // of all attempts
	status  string              // valid, invalid, unchecked, or "" without a call
	code    int                 // the HTTP status that the client got
	err     error               // with which the chain ended; it may be a *transport.Panic

	// In the mode Observe the fields above describe the exchange as in the mode Enforce,
	// with the one attempt that was made. Its verdicts have the repaired calls.
	enforced enforcedOutcome
	dropped  string // why the exchange was not validated, such as droppedQueue, or ""
	unread   bool   // the request or the answer could not be read, so no call was validated; also of a WebSocket
}

// overhead returns the time that the gateway added.
func (x *exchange) overhead() time.Duration { return max(x.duration-x.upstreamTime, 0) }

// final returns the attempt whose message the client got, or a zero Attempt.
func (x *exchange) final() middleware.Attempt {
	if x.report.Final < 0 || x.report.Final >= len(x.report.Attempts) {
		return middleware.Attempt{}
	}
	return x.report.Attempts[x.report.Final]
}

// repairs counts the repairs of the response by rule. It may be nil.
func (x *exchange) repairs() (n map[string]int) {
	for _, v := range x.final().Verdicts {
		for _, c := range v.Changes {
			n = count(n, c.By)
		}
	}
	return n
}

// issues counts the first issues of all invalid calls, and of all invalid messages without a
// call, of all attempts, by code. It may be nil.
func (x *exchange) issues() (n map[string]int) {
	for _, a := range x.report.Attempts {
		if len(a.Issues) > 0 {
			n = count(n, a.Issues[0].Code)
		}
		for _, v := range a.Verdicts {
			if len(v.Issues) > 0 {
				n = count(n, v.Issues[0].Code)
			}
		}
	}
	return n
}

// announced returns the number of calls, of all attempts, to tools that the request
// announces and does not list.
func (x *exchange) announced() (n int) {
	for _, a := range x.report.Attempts {
		for _, v := range a.Verdicts {
			if v.Announced && v.OK() {
				n++
			}
		}
	}
	return n
}

// count adds one to n[key], and makes the map for it.
func count(n map[string]int, key string) map[string]int {
	if n == nil {
		n = map[string]int{}
	}
	n[key]++
	return n
}

// longestModel is how many bytes of a model's name are logged and recorded: the
// client chooses it.
const longestModel = 256

// model returns the name of the model that the client asked for, or "". A long
// name is cut.
func (x *exchange) model() string {
	if x.request == nil {
		return ""
	}
	return text.Clip(x.request.Model, longestModel)
}

// errorWord returns the word for the error of x, or "".
func (x *exchange) errorWord() string {
	if x.err == nil {
		return ""
	}
	return errorCode(x.err)
}

// errorCode returns a word for an error of a step or an attempt: the status of a response, or a
// word such as "timeout". "refused", "dns" and "tls" are the reasons for a missing connection, and
// "network" is any other network error.
func errorCode(err error) string {
	var typed interface{ ErrorType() string }
	var refused *middleware.ModelError
	switch {
	case errors.As(err, &typed):
		return typed.ErrorType()
	case errors.As(err, &refused):
		return strconv.Itoa(refused.StatusCode)
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	}
	return cmp.Or(proxy.Cause(err), "network")
}

// ms returns d in milliseconds.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// clientLabel returns a label for the client of r: its header X-Toolmend-Client,
// else the product of its User-Agent. It has at most 64 printable characters.
func clientLabel(r *http.Request) string {
	label := r.Header.Get("X-Toolmend-Client")
	if label == "" {
		label, _, _ = strings.Cut(r.Header.Get("User-Agent"), " ")
	}
	label = strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, label)
	return label[:min(len(label), 64)]
}

// observer gets each exchange after its end. It must return fast: the client's connection waits
// for it, or in the mode Observe the next exchange.
type observer interface{ observed(*exchange) }

// watched serves r by h, and notifies the observers of the exchange.
func (p *pipeline) watched(h http.Handler, w http.ResponseWriter, r *http.Request, dialect string) {
	x := p.newExchange(r, dialect)
	ctx, call := transport.Watch(r.Context())
	code := &statusWriter{ResponseWriter: w}
	returned := false
	defer func() { // also if the handler panics: the proxy does so if a response breaks off
		if returned && code.status >= http.StatusOK { // the client does not wait for the observers
			defer sendEnd(w)()
		}
		x.duration = time.Since(x.start)
		x.request, x.report, x.status, x.err, x.code = call.Request(), call.Report(), call.Status(), call.Err(), code.status
		x.upstreamTime = call.ModelTime()
		if u := usingOf(r.Context()); u != nil {
			if limit := u.refused.Load(); limit != nil {
				x.report.Notes = append(slices.Clip(x.report.Notes), "no further model call: "+limit.Error())
			}
		}
		if x.code == http.StatusSwitchingProtocols {
			x.status, x.unread = "unchecked", true
		}
		if x.status == "unchecked" && x.code < http.StatusBadRequest && (x.request == nil || x.err != nil) {
			x.unread, x.err = true, nil // it was passed on, which is not a failure
		}
		if x.err == nil && !(returned && x.code < http.StatusInternalServerError) && r.Context().Err() != nil { // the client has disconnected; the chain ends a little later; after a response it may go
			x.err = r.Context().Err()
		}
		p.notify(x)
	}()
	h.ServeHTTP(code, r.WithContext(ctx))
	returned = true
}

// sendEnd sends the end of a response. The end of a stream may wait a moment for its trailers, which
// can follow when the handler returns. The handler calls wait before it returns. A panic of w, which
// would end the program in the goroutine of the timer, is a panic of wait.
func sendEnd(w http.ResponseWriter) (wait func()) {
	flush := func() { _ = http.NewResponseController(w).Flush() }
	if w.Header().Get("Content-Length") != "" {
		flush()
		return func() {}
	}
	flushed := make(chan any, 1)
	late := time.AfterFunc(time.Millisecond, func() {
		defer func() { flushed <- recover() }()
		flush()
	})
	return func() {
		if late.Stop() {
			return
		}
		if value := <-flushed; value != nil {
			panic(value)
		}
	}
}

// otherFormat is the dialect of an exchange in none of the formats.
const otherFormat = "other"

// other serves a request on the path of no format. If the request offers tools, the observers
// get an exchange whose calls were not validated.
func (p *pipeline) other(w http.ResponseWriter, r *http.Request) {
	x := p.newExchange(r, otherFormat)
	r, offers := proxy.WatchTools(r, nil)
	code := &statusWriter{ResponseWriter: w}
	defer func() { // also if the handler panics
		if offers == nil || !offers.Load() {
			return
		}
		x.duration, x.code, x.report.Final = time.Since(x.start), code.status, -1
		if x.upstreamTime = x.duration; code.status < http.StatusBadRequest {
			x.status, x.unread = "unchecked", true
		}
		p.notify(x)
	}()
	p.handler.ServeHTTP(code, r)
}

func (p *pipeline) newExchange(r *http.Request, dialect string) *exchange {
	return &exchange{upstream: p.upstream, mode: p.settings.Mode, dialect: dialect, path: r.URL.Path, client: clientLabel(r), key: clientOf(r), header: r.Header, start: time.Now(), checker: p.checker}
}

// notify gives an exchange to the observers.
func (p *pipeline) notify(x *exchange) {
	for _, o := range p.observers {
		o.observed(x)
	}
}

// statusWriter keeps the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int // 0 if there was no response
}

// WriteHeader keeps the status, unless it is an informational one.
func (w *statusWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write keeps the status 200 if there was none.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
