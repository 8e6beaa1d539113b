package transport

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Headers, and trailers of streams, that this package writes. Headers of these
// names that an upstream sends are removed.
const (
	errorHeader    = "X-Toolmend-Error"    // the code of an error of the chain
	statusHeader   = "X-Toolmend-Status"   // the result of validating the calls of a response
	attemptsHeader = "X-Toolmend-Attempts" // these five: see Options.Figures
	repairedHeader = "X-Toolmend-Repaired"
	rescuedHeader  = "X-Toolmend-Rescued"
	healedHeader   = "X-Toolmend-Healed"
	overheadHeader = "X-Toolmend-Overhead-Ms"
	headerPrefix   = "X-Toolmend-"
)

// Values of statusHeader. A response without a call has no status.
const (
	valid     = "valid"     // every call is valid
	invalid   = "invalid"   // at least one call is invalid
	unchecked = "unchecked" // at least one call was not validated, or the response was not read; no call is known to be invalid
)

// statusOf returns the status of resp. It is "" if resp has no call and its
// text was not validated.
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

// withoutOurs removes the headers of this package from h, and returns h.
func withoutOurs(h http.Header) http.Header {
	for k := range h {
		if len(k) >= len(headerPrefix) && strings.EqualFold(k[:len(headerPrefix)], headerPrefix) {
			delete(h, k)
		}
	}
	return h
}

// comment ends a stream with an invalid call, if clients of the format accept
// comments.
const comment = "toolmend status=" + invalid

// ended holds the values for the trailers of a stream.
type ended struct{ status, code string }

func (e ended) trailer(into http.Header) {
	for k, v := range map[string]string{statusHeader: e.status, errorHeader: e.code} {
		if v != "" {
			into[k] = []string{v}
		}
	}
}

// announced returns the trailers with empty values, as http announces them.
func announced() http.Header { return http.Header{statusHeader: nil, errorHeader: nil} }

// announced returns the trailers of a live response.
func (s *step) announced() http.Header {
	h := announced()
	if s.t.options.Figures {
		h[attemptsHeader], h[repairedHeader], h[rescuedHeader], h[healedHeader], h[overheadHeader] = nil, nil, nil, nil, nil
	}
	return h
}

// describe adds the headers of Options.Figures to a response, which may be nil.
func (s *step) describe(r *http.Response) {
	if r != nil {
		s.mu.Lock()
		s.figures(r.Header)
		s.mu.Unlock()
	}
}

// figures sets the values of Options.Figures. The caller holds s.mu.
func (s *step) figures(into http.Header) {
	if !s.t.options.Figures {
		return
	}
	overhead := max(time.Since(s.began)-s.upstream, 0)
	into[attemptsHeader] = []string{strconv.Itoa(len(s.attempts))}
	into[repairedHeader] = []string{strconv.Itoa(s.repaired)}
	if s.rescued > 0 {
		into[rescuedHeader] = []string{strconv.Itoa(s.rescued)}
	}
	for _, r := range s.healed {
		into.Add(healedHeader, r)
	}
	into[overheadHeader] = []string{strconv.FormatFloat(overhead.Seconds()*1000, 'f', 3, 64)}
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

// shownBody is the body of a stream that is passed on as it arrives. It sets
// the trailers in Read, at the end of the body: net/http does so too, and a
// proxy reads the trailer map only after that.
type shownBody struct {
	*pipe
	step    *step
	trailer http.Header
}

// Read is part of io.Reader.
func (b *shownBody) Read(p []byte) (int, error) {
	n, err := b.pipe.Read(p)
	if err == io.EOF {
		b.step.trailers(b.trailer)
	}
	return n, err
}

// trailers sets the values for the trailers of a stream.
func (s *step) trailers(into http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended.trailer(into)
	s.figures(into)
}

// says stores the values for the trailers of a stream.
func (s *step) says(e ended) {
	s.mu.Lock()
	s.ended = e
	s.mu.Unlock()
	s.call.mark(e.status)
}
