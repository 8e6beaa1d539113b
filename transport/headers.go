package transport

import (
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// Headers, and trailers of streams, that this package writes. Those of an
// upstream are taken away.
const (
	errorHeader  = "X-Toolmend-Error"  // the code of an error of the chain
	statusHeader = "X-Toolmend-Status" // what is known about the calls of an answer
	headerPrefix = "X-Toolmend-"
)

// Values of statusHeader. An answer without a call has none.
const (
	valid     = "valid"     // every call is valid
	invalid   = "invalid"   // at least one call is not
	unchecked = "unchecked" // at least one call was not validated, or the answer was not read; none is known to be invalid
)

// statusOf returns what is known about resp, "" if it has no call and its text
// was not validated.
func statusOf(resp *middleware.Response) string {
	calls := func(m middleware.Message) bool { return len(m.ToolCalls) > 0 }
	switch {
	case resp.Report.Status != middleware.NoCalls:
		return string(resp.Report.Status)
	case calls(resp.Message) || slices.ContainsFunc(resp.Choices, calls): // no layer validated them
		return unchecked
	}
	return ""
}

// withoutOurs removes the headers of this package from h, and returns h.
func withoutOurs(h http.Header) http.Header {
	for k := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(k), headerPrefix) {
			delete(h, k)
		}
	}
	return h
}

// comment is what a stream with an invalid call ends with, where its clients
// accept comments.
const comment = "toolmend status=" + invalid

// ended is what the trailers of a stream say.
type ended struct{ status, code string }

func (e ended) trailer(into http.Header) {
	for k, v := range map[string]string{statusHeader: e.status, errorHeader: e.code} {
		if v != "" {
			into[k] = []string{v}
		}
	}
}

// announced returns trailers that are announced and have no values yet.
func announced() http.Header { return http.Header{statusHeader: nil, errorHeader: nil} }

// shownBody is the body of a stream that is shown as it comes. It sets the
// trailers when it has been read to its end, where the reader is: net/http does
// so too, and a proxy reads the map of the trailers meanwhile.
type shownBody struct {
	*pipe
	step    *step
	trailer http.Header
}

// Read is part of io.Reader.
func (b *shownBody) Read(p []byte) (int, error) {
	n, err := b.pipe.Read(p)
	if err == io.EOF {
		b.step.mu.Lock()
		b.step.ended.trailer(b.trailer)
		b.step.mu.Unlock()
	}
	return n, err
}

// says notes what the trailers of a stream will say.
func (s *step) says(e ended) {
	s.mu.Lock()
	s.ended = e
	s.mu.Unlock()
	s.call.mark(e.status)
}
