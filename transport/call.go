package transport

import (
	"context"
	"sync"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Call reports the outcome of one call of a client. It is safe for concurrent
// use.
type Call struct {
	mu        sync.Mutex
	watched   bool
	answered  bool // the last request has its response: the next request is a new call
	request   *middleware.Request
	tally     middleware.Tally
	report    middleware.Report
	err       error
	status    string
	modelTime time.Duration
}

// locked returns what get reads under the lock mu.
func locked[T any](mu *sync.Mutex, get func() T) T {
	mu.Lock()
	defer mu.Unlock()
	return get()
}

type callKey struct{}

// Watch returns a context for one call of a client, and a Call that reports
// its outcome. Use it for clients that hide the response or the error. The
// client's own retries under that context belong to the call. A request after
// a successful response begins a new call.
func Watch(ctx context.Context) (context.Context, *Call) {
	c := &Call{watched: true, report: middleware.Report{Final: -1}}
	return context.WithValue(ctx, callKey{}, c), c
}

// Report returns a report of every attempt, also of attempts that the client did not see, and
// of earlier retries. Final is -1 until there is a response. The report of a stream is complete
// when its last byte was read.
func (c *Call) Report() middleware.Report {
	return locked(&c.mu, func() middleware.Report { return c.report })
}

// Request returns the client's last request, decoded, as the chain got it but without its
// Sink. It is nil until a request was decoded, so also for a request that bypassed the
// chain. It shares everything with the request of the chain: do not modify it.
func (c *Call) Request() *middleware.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request == nil {
		return nil
	}
	req := *c.request
	req.Sink = nil
	return &req
}

// Err returns the error with which the chain ended; it may come from a
// provider. It is nil if the chain succeeded or has not ended.
func (c *Call) Err() error { return locked(&c.mu, func() error { return c.err }) }

// Status returns the status of the tool calls that the client got: valid;
// invalid if at least one call is invalid; unchecked if at least one call was
// not validated or the response was not read. It is "" for a response without
// a call, and until the response has ended. The header or trailer
// X-Toolmend-Status has the same value.
func (c *Call) Status() string { return locked(&c.mu, func() string { return c.status }) }

// ModelTime returns the time that the attempts of Report took, from sending a
// request until its response was read.
func (c *Call) ModelTime() time.Duration {
	return locked(&c.mu, func() time.Duration { return c.modelTime })
}

// begin starts a further request of the call. first means that it is the client's first attempt.
func (c *Call) begin(req *middleware.Request, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered || first {
		c.tally, c.modelTime = middleware.Tally{}, 0
	}
	c.request, c.answered, c.err, c.status, c.report = req, false, nil, "", middleware.Report{Final: -1}
}

// end records the outcome of a request and the time that its model calls took.
func (c *Call) end(resp *middleware.Response, err error, spent time.Duration) {
	if !c.watched {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered, c.err = err == nil, err
	c.modelTime += spent
	c.tally.Add(resp, err)
	resp, err = c.tally.Finish(resp, err)
	c.report = middleware.ReportOf(resp, err)
}

// setStatus sets the status.
func (c *Call) setStatus(status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// setError records an error after the end of the chain.
func (c *Call) setError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered, c.err = false, err
}
