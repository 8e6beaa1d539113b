package gateway

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// ClientLimits limit what a client may use in a minute. A zero field does not limit.
//
// Each limit is a bucket that holds the amount of a minute and fills continuously: a client that
// was idle may use the amount of a minute at once. Each Gateway counts for itself.
type ClientLimits struct {
	RequestsPerMinute   int64 `toml:"requests_per_minute,omitempty"`    // requests to upstreams, of any kind
	ModelCallsPerMinute int64 `toml:"model_calls_per_minute,omitempty"` // requests on the path of a model call, and their re-asks, retries and healed requests
	// TokensPerMinute limits the input and output tokens of the model calls, cached ones included. The
	// usage of a call is known after it, so the calls under way may exceed the limit. The client
	// then waits until the excess is filled up.
	TokensPerMinute int64 `toml:"tokens_per_minute,omitempty"`
}

// rateLimited is the code of a request that exceeds a limit of its client.
const rateLimited = "rate_limit_exceeded"

// longestWait bounds how long the tokens of one answer keep a client waiting, because the upstream
// writes their number.
const longestWait = time.Hour

// bucket is one limit of a client.
type bucket struct {
	name  string // its key
	limit int64  // 0 means none
	full  time.Time
}

// without returns when the bucket is full again after n more are taken.
func (b *bucket) without(n int64, now time.Time) time.Time {
	if b.full.After(now) {
		now = b.full
	}
	return now.Add(time.Duration(min(float64(n)/float64(b.limit)*float64(time.Minute), float64(longestWait))))
}

// amount is a number of requests, of model calls and of tokens.
type amount [3]int64

// allowance is what a client with limits may use. It is safe for concurrent use. A reload keeps
// it if the limits stay the same.
type allowance struct {
	client string
	limits ClientLimits

	mu      sync.Mutex
	buckets [len(amount{})]bucket
}

// allowances are the allowances of the clients with limits, by name.
type allowances map[string]*allowance

// newAllowances returns the allowances of clients. They share with old what has not changed.
func newAllowances(clients []Client, old *state) allowances {
	all := allowances{}
	for _, c := range clients {
		l := c.ClientLimits
		if l == (ClientLimits{}) {
			continue
		}
		if old != nil && old.limits[c.Name] != nil && old.limits[c.Name].limits == l {
			all[c.Name] = old.limits[c.Name]
			continue
		}
		all[c.Name] = &allowance{client: c.Name, limits: l, buckets: [...]bucket{
			{name: "requests_per_minute", limit: l.RequestsPerMinute}, {name: "model_calls_per_minute", limit: l.ModelCallsPerMinute}, {name: "tokens_per_minute", limit: l.TokensPerMinute},
		}}
	}
	return all
}

// take uses requests and model calls, and returns nil if each bucket holds n. Of tokens nothing is
// used. Else it uses nothing.
func (a *allowance) take(n amount) *limitError {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	var refused *limitError
	for i, b := range a.buckets {
		if b.limit == 0 || n[i] == 0 {
			continue
		}
		if wait := b.without(n[i], now).Sub(now) - time.Minute; wait > 0 && (refused == nil || wait > refused.wait) {
			refused = &limitError{a.client, b.name, b.limit, wait}
		}
	}
	if refused != nil {
		return refused
	}
	n[2] = 0
	a.use(n, now)
	return nil
}

// use takes n from the buckets. The caller holds a.mu.
func (a *allowance) use(n amount, now time.Time) {
	for i := range a.buckets {
		if b := &a.buckets[i]; b.limit > 0 && n[i] > 0 {
			b.full = b.without(n[i], now)
		}
	}
}

// charge takes the tokens of a model call. Their counts are not negative: see Report.Usage.
func (a *allowance) charge(u middleware.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.use(amount{0, 0, u.InputTokens + min(u.OutputTokens, math.MaxInt64-u.InputTokens)}, time.Now())
}

// observed charges the tokens of an exchange in the mode Observe, whose answers are read later.
func (all allowances) observed(x *exchange) {
	if a := all[x.key]; a != nil && x.mode == Observe {
		a.charge(x.report.Usage())
	}
}

// admit returns r with the allowance of its client, or the limit that it exceeds.
func (all allowances) admit(r *http.Request) (*http.Request, *limitError) {
	a := all[clientOf(r)]
	if a == nil {
		return r, nil
	}
	n := amount{1}
	if r.Method == http.MethodPost && formatOf(r) != nil {
		n = amount{1, 1, 1}
	}
	if err := a.take(n); err != nil {
		return r, err
	}
	return r.WithContext(context.WithValue(r.Context(), usingKey{}, &using{allowance: a})), nil
}

// using is the allowance of a request whose first model call is taken already.
type using struct {
	*allowance
	asked   atomic.Bool // the first model call was made
	refused atomic.Pointer[limitError]
}

type usingKey struct{} // of the *using of a context

func usingOf(ctx context.Context) *using {
	u, _ := ctx.Value(usingKey{}).(*using)
	return u
}

// limitCalls takes each further model call of a request from the allowance of its client, and
// charges the tokens of all of them.
func limitCalls(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		u := usingOf(ctx)
		if u == nil {
			return next(ctx, req)
		}
		if u.asked.Swap(true) {
			if err := u.take(amount{0, 1, 1}); err != nil {
				u.refused.Store(err)
				var nothing middleware.Tally // no attempt was made
				return nothing.Finish(nil, err)
			}
		}
		resp, err := next(ctx, req)
		u.charge(middleware.ReportOf(resp, err).Usage())
		return resp, err
	}
}

// limitError is the error of a request or a model call that exceeds a limit of its client.
type limitError struct {
	client, name string
	limit        int64
	wait         time.Duration // until the limit allows it
}

// seconds returns the wait in whole seconds.
func (e *limitError) seconds() time.Duration { return (e.wait + time.Second - 1).Truncate(time.Second) }

// retryAfter sets the headers that say when the client may try again. SDKs prefer the one in
// milliseconds, and the Vercel AI SDK ignores a wait of 60 seconds. 10 ms are added for timers that
// end early.
func (e *limitError) retryAfter(h http.Header) {
	h.Set("Retry-After", strconv.Itoa(int(e.seconds().Seconds())))
	h.Set("Retry-After-Ms", strconv.FormatInt(e.wait.Milliseconds()+10, 10))
}

// Error returns a text for the client, which may see its own name.
func (e *limitError) Error() string {
	return fmt.Sprintf("the client %q has used what %s = %d allows; try again in %s", e.client, e.name, e.limit, e.seconds())
}

// ErrorType returns the code for labels and clients.
func (e *limitError) ErrorType() string { return rateLimited }

// ClientMessage returns the text of Error.
func (e *limitError) ClientMessage() string { return e.Error() }

// Is reports that the model call was not made.
func (e *limitError) Is(target error) bool { return target == middleware.ErrNotSent }
