package transport

import (
	"context"
	"sync"

	"github.com/toolmend/toolmend/middleware"
)

// Call is what becomes of one call of a client. It is safe for concurrent use.
type Call struct {
	mu      sync.Mutex
	watched bool
	settled bool // the last request was answered: the next one is a new call
	tally   middleware.Tally
	report  middleware.Report
	err     error
	status  string
}

type callKey struct{}

// Watch returns a context for one call of a client, and where to read what
// became of it: for clients that hide the response, or the error. The client's
// own retries under that context belong to the call; a request after a good
// answer begins a new one.
func Watch(ctx context.Context) (context.Context, *Call) {
	c := &Call{watched: true, report: middleware.Report{Final: -1}}
	return context.WithValue(ctx, callKey{}, c), c
}

// Report returns the ledger of every attempt, those that the client did not see
// and those of its earlier tries included. Final is -1 until there is an
// answer. Of a stream it is complete when its last byte has been read.
func (c *Call) Report() middleware.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}

// Err returns the error with which the chain ended, a provider's own included,
// and nil if it ended well or has not ended.
func (c *Call) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Status returns what is known about the tool calls that the client got: valid;
// invalid, if at least one is; unchecked, if at least one was not validated or
// the answer was not read. It is "" for an answer without a call, and until the
// answer has ended. The header, or the trailer, X-Toolmend-Status says the same.
func (c *Call) Status() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// mark sets the status.
func (c *Call) mark(status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// begin opens the call for one more request; first says that the client calls
// it the first.
func (c *Call) begin(first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled || first {
		c.tally = middleware.Tally{}
	}
	c.settled, c.err, c.status, c.report = false, nil, "", middleware.Report{Final: -1}
}

// end records the outcome of a request.
func (c *Call) end(resp *middleware.Response, err error) {
	if !c.watched {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled, c.err = err == nil, err
	c.tally.Add(resp, err)
	resp, err = c.tally.Finish(resp, err)
	c.report = middleware.ReportOf(resp, err)
}

// fail records an error that came behind the end of the chain.
func (c *Call) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled, c.err = false, err
}
