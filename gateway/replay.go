package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// enforcedOutcome is what the mode Enforce would have done with an observed exchange.
type enforcedOutcome string

// The outcomes. If several apply, the first one in this list counts.
const (
	outcomeReasked  enforcedOutcome = "reasked"  // a second model call
	outcomeRefused  enforcedOutcome = "refused"  // the client gets an error in place of the answer
	outcomeDropped  enforcedOutcome = "dropped"  // the answer without its invalid calls
	outcomeRescued  enforcedOutcome = "rescued"  // the answer with calls that the model wrote as text
	outcomeRepaired enforcedOutcome = "repaired" // the answer with repaired calls
	outcomePassed   enforcedOutcome = "passed"   // the answer as it is
)

// errSecondCall ends the chain of a replay at the second model call.
var errSecondCall = errors.New("gateway: the replay of an exchange makes no second model call")

// newReplayer returns the Transport through which observed exchanges are replayed. It treats an
// answer as the mode Enforce does, up to the second model call.
func newReplayer(s Settings, decoders map[string]transport.Decoder, memory *transport.Memory, stack middleware.Middleware) *transport.Transport {
	s.Mode = Enforce
	o := s.transport()
	o.Hold, o.KeepAlive, o.Decoders, o.Memory = true, transport.Off, decoders, memory
	return transport.New(o, stack)
}

// replay validates the copy c and fills its exchange. A panic becomes the
// exchange's error.
func (p *pipeline) replay(ctx context.Context, c *copied) {
	x := c.x
	ctx, cancel := context.WithCancel(context.WithValue(ctx, clientName{}, x.key)) // for the hook
	defer cancel()
	ctx, call := transport.Watch(ctx)
	defer func() {
		if v := recover(); v != nil {
			var inStream *transport.Panic // of a streamed answer, with the stack of its goroutine
			if x.request, x.err = call.Request(), call.Err(); !errors.As(x.err, &inStream) {
				x.err = &transport.Panic{Value: v, Stack: debug.Stack()}
			}
		}
	}()
	calls := 0
	resp, err := p.replayer.Hook(c.replayed(ctx), func(r *http.Request) (*http.Response, error) {
		if calls++; calls > 1 {
			return nil, errSecondCall
		}
		return c.response(r)
	})
	refused := false
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body) // the report is complete at its end
		_ = resp.Body.Close()
		refused = transport.Cause(resp) != nil
	}
	x.request, x.report, x.status, x.err = call.Request(), call.Report(), call.Status(), call.Err()
	if x.request == nil && err != nil { // the request was not read, and there is no answer
		x.err = err
	}
	passed := x.status == "unchecked" && x.err != nil // the error is the reason why the answer was passed on unread
	if passed {
		x.err = nil
	}
	x.unread = x.request == nil || passed || c.status == http.StatusSwitchingProtocols || errors.Is(x.err, transport.ErrUnreadable)
	x.conclude(c, calls > 1, refused)
}

// conclude sets the outcome in the mode Enforce. reasked means that there would have been a second
// model call, and refused that the chain ended with an error of its own.
func (x *exchange) conclude(c *copied, reasked, refused bool) {
	var verdicts []middleware.Verdict
	if len(x.report.Attempts) > 0 { // the client got the first one
		x.report.Attempts = x.report.Attempts[:1]
		first := &x.report.Attempts[0]
		first.Start, first.Duration = c.sent, c.took
		if verdicts = first.Verdicts; first.Err == nil {
			x.report.Final = 0
		}
	}
	if reasked {
		x.err = nil
	}
	status := string(middleware.StatusOf(verdicts))
	x.enforced = outcomePassed
	switch {
	case reasked:
		x.enforced = outcomeReasked
	case refused:
		x.enforced = outcomeRefused
	case status == "invalid" && x.status != "invalid":
		x.enforced = outcomeDropped
	case x.report.Rescued() > 0:
		x.enforced = outcomeRescued
	case repaired(verdicts):
		x.enforced = outcomeRepaired
	}
	switch {
	case x.unread:
		x.status = "unchecked"
	case x.status == "":
		x.status = status
	}
}

// repaired reports whether a call was repaired.
func repaired(verdicts []middleware.Verdict) bool {
	for _, v := range verdicts {
		if v.OK() && len(v.Changes) > 0 {
			return true
		}
	}
	return false
}

// replayed returns the request of c, with only the headers that are needed to read its body.
func (c *copied) replayed(ctx context.Context) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: "observed", Path: c.x.path}, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(c.request)), ContentLength: int64(len(c.request)),
	}
	for _, k := range []string{"Content-Type", "Content-Encoding"} {
		if values, ok := c.x.header[k]; ok {
			r.Header[k] = values
		}
	}
	return r.WithContext(proxy.WithClient(ctx)) // a request that only a Handler refuses counts as refused
}

// response returns the answer of c to r.
func (c *copied) response(r *http.Request) (*http.Response, error) {
	if c.status == 0 {
		return nil, c.end
	}
	resp := &http.Response{
		StatusCode: c.status, Header: c.header, Request: r, ContentLength: -1,
		Body: io.NopCloser(io.MultiReader(bytes.NewReader(c.answer), failing{c.end})),
	}
	if c.end == io.EOF {
		resp.ContentLength = int64(len(c.answer))
	}
	return resp, nil
}

// failing is a reader that returns an error.
type failing struct{ err error }

// Read returns the error.
func (f failing) Read([]byte) (int, error) { return 0, f.err }
