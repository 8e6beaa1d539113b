package transport

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// The headers, and trailers of streams, that this package writes. Headers of these names
// that an upstream sends are removed.
const (
	errorHeader    = "X-Toolmend-Error"    // the code of an error of the chain
	statusHeader   = "X-Toolmend-Status"   // the result of validating the calls of a response
	attemptsHeader = "X-Toolmend-Attempts" // these six: see Options.Figures
	repairedHeader = "X-Toolmend-Repaired"
	rescuedHeader  = "X-Toolmend-Rescued"
	healedHeader   = "X-Toolmend-Healed"
	usageHeader    = "X-Toolmend-Usage"
	overheadHeader = "X-Toolmend-Overhead-Ms"
)

// Values of statusHeader. A response without a call has no status.
const (
	valid     = "valid"     // every call is valid
	invalid   = "invalid"   // at least one call is invalid
	unchecked = "unchecked" // at least one call was not validated, or the response was not read; no call is known to be invalid
)

// statusOf returns the status of resp, or "" if resp has no call and its text was not validated.
func statusOf(resp *middleware.Response) string {
	calls := func(m middleware.Message) bool { return len(m.ToolCalls) > 0 }
	switch {
	case resp.Report.Status != middleware.NoCalls:
		return string(resp.Report.Status)
	case calls(resp.Message) || slices.ContainsFunc(resp.Choices, calls): // no middleware validated them
		return unchecked
	}
	return ""
}

// comment ends a stream with an invalid call, if clients of the format accept comments.
const comment = "toolmend status=" + invalid

// writeTrailers stores the values of two trailers of a live response; "" leaves one out.
func (x *exchange) writeTrailers(status, code string) {
	x.mu.Lock()
	x.status, x.errorCode = status, code
	x.mu.Unlock()
	x.call.setStatus(status)
}

// trailerNames returns the trailers of a live response without values, as net/http announces
// them.
func (x *exchange) trailerNames() http.Header {
	h := http.Header{statusHeader: nil, errorHeader: nil}
	if x.t.options.Figures {
		h[attemptsHeader], h[repairedHeader], h[rescuedHeader], h[healedHeader], h[usageHeader], h[overheadHeader] = nil, nil, nil, nil, nil, nil
	}
	return h
}

// fillTrailers sets the values of the trailers of a live response.
func (x *exchange) fillTrailers(into http.Header) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, v := range map[string]string{statusHeader: x.status, errorHeader: x.errorCode} {
		if v != "" {
			into[k] = []string{v}
		}
	}
	x.fillFigures(into)
}

// addFigures adds the headers of Options.Figures to a response, which may be nil.
func (x *exchange) addFigures(r *http.Response) {
	if r != nil {
		x.mu.Lock()
		x.fillFigures(r.Header)
		x.mu.Unlock()
	}
}

// fillFigures sets the values of Options.Figures. The caller holds x.mu.
func (x *exchange) fillFigures(into http.Header) {
	if !x.t.options.Figures {
		return
	}
	overhead := max(time.Since(x.began)-x.upstream, 0)
	all := []string{strconv.Itoa(len(x.attempts)), strconv.Itoa(x.repaired), strconv.FormatFloat(overhead.Seconds()*1000, 'f', 3, 64)}
	into[attemptsHeader], into[repairedHeader], into[overheadHeader] = all[:1:1], all[1:2:2], all[2:]
	if x.rescued > 0 {
		into[rescuedHeader] = []string{strconv.Itoa(x.rescued)}
	}
	for _, r := range x.healed {
		into.Add(healedHeader, r)
	}
	if len(x.attempts) > 1 {
		into[usageHeader] = []string{fmt.Sprintf("input=%d, output=%d", x.usage.InputTokens, x.usage.OutputTokens)}
	}
}

// repairedCalls returns the number of calls of a response that were repaired.
func repairedCalls(resp *middleware.Response) int {
	if resp == nil || resp.Report.Final < 0 || resp.Report.Final >= len(resp.Report.Attempts) {
		return 0
	}
	n := 0
	for _, v := range resp.Report.Attempts[resp.Report.Final].Verdicts {
		if len(v.Changes) > 0 {
			n++
		}
	}
	return n
}
