package transport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/toolmend/toolmend/middleware"
)

// whole turns the outcome of the chain into the client's response, if no byte
// was streamed yet. passed is the attempt whose body the client reads, if
// any.
func (s *step) whole(resp *middleware.Response, err error) (o outcome, passed *attempt) {
	if err == nil {
		status := statusOf(resp)
		r, e := s.answer(resp)
		if e == nil {
			s.call.mark(status)
			if status != "" {
				r.Header.Set(statusHeader, status)
			}
			return outcome{resp: r}, nil
		}
		err = e
		s.call.fail(err)
	}
	a, failure := s.failed(err)
	switch failure := failure.(type) {
	case *passedError:
		return outcome{resp: s.verbatim(a)}, a
	case *networkError:
		return outcome{err: failure.err}, nil
	case *middleware.ModelError:
		return outcome{resp: s.refusal(a, err)}, nil
	}
	if s.req.Context().Err() != nil {
		return outcome{err: err}, nil
	}
	if a := s.lastRefusal(); a != nil && errors.Is(err, ErrModelCalls) {
		return outcome{resp: s.refusal(a, err)}, nil
	}
	return outcome{resp: s.raised(err)}, nil
}

// encoded returns a response with body, and with the status and the headers of
// the attempt that resp comes from.
func (s *step) encoded(resp *middleware.Response, body []byte) *http.Response {
	from := s.origin(resp)
	r := from.response()
	streamed, status := from.stream.IsStream(), statusOf(resp)
	if streamed && status == invalid {
		body = append(bytes.Clone(body), from.stream.Comment(comment)...)
	}
	if string(body) != from.text() {
		withoutDigests(r.Header)
	}
	setBody(r, body, streamed)
	return r
}

// response returns a copy of the provider's response for the client, without a
// body.
func (a *attempt) response() *http.Response {
	r := *a.resp
	r.Header = a.resp.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Request = a.step.req
	withoutOurs(r.Header)
	if a.inflate {
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
		r.ContentLength, r.Uncompressed = -1, true
		withoutDigests(r.Header)
	}
	return &r
}

// withoutDigests removes the headers that hold a digest of the body.
func withoutDigests(h http.Header) {
	h.Del("Etag")
	for _, k := range digests {
		h.Del(k)
	}
}

// setBody sets the body of r, and its length unless it is a stream or has
// trailers.
func setBody(r *http.Response, body []byte, streamed bool) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.TransferEncoding = nil
	r.ContentLength = int64(len(body))
	switch {
	case streamed:
		r.Header.Del("Content-Length")
		r.ContentLength = -1
	case len(r.Trailer) == 0 || r.Header.Get("Content-Length") != "": // a server sends a body of known length in one piece
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
}

func newResponse(req *http.Request, status int, kind string) *http.Response {
	return &http.Response{
		Status:     strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode: status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {kind}},
		Request: req,
	}
}

// verbatim returns a response that is passed on unread.
func (s *step) verbatim(a *attempt) *http.Response {
	r := a.response()
	r.Body = a.rest
	if r, _ = unread(r, nil); r.Header.Get(statusHeader) != "" {
		s.call.mark(unchecked)
	}
	return r
}

// refusal returns the provider's own error response for an error of the chain.
// It asks the client not to retry in three cases: the chain used up
// MaxModelCalls by calls of its own, it has already re-asked because the provider
// refused the model's call, or the provider refused the history.
func (s *step) refusal(a *attempt, err error) *http.Response {
	r := a.response()
	switch {
	case a.stream != nil && s.partial(a):
		r.Header.Del("Content-Length")
		r.ContentLength = -1
		shown := bytes.Clone(a.stream.Take())
		events, _ := s.failure(a.stream, a, err)
		body := append(shown, events...)
		r.Body = io.NopCloser(bytes.NewReader(body))
	case a.stream != nil:
		setBody(r, []byte(a.text()), a.stream.IsStream())
	default:
		r.Body = io.NopCloser(bytes.NewReader(a.raw))
	}
	refused := errors.Is(err, middleware.ErrInvalidToolCall) && a.n > 0 || errors.Is(err, middleware.ErrInvalidHistory)
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused || s.usedUp() && len(s.attempts) > 1 {
		r.Header.Set("X-Should-Retry", "false")
	}
	return r
}

// partial reports whether a response that ended in the provider's error may
// hold tool calls before the error. Nothing has validated such calls.
func (s *step) partial(a *attempt) bool {
	return s.tools && a.stream.IsStream()
}

// lastRefusal returns the last attempt if it ended with the provider's error.
func (s *step) lastRefusal() *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.attempts); n > 0 {
		if _, ok := s.attempts[n-1].failure.(*middleware.ModelError); ok {
			return s.attempts[n-1]
		}
	}
	return nil
}

// answer returns resp for a client that has received nothing yet: the
// provider's response with the changes of the chain, or a response that the
// chain wrote.
func (s *step) answer(resp *middleware.Response) (*http.Response, error) {
	if changed := s.adopted(resp); s.origin(changed) != nil {
		body, err := s.codec.EncodeResponse(changed)
		if err == nil {
			return s.encoded(changed, body), nil
		}
		if resp.Native != nil {
			return nil, err
		}
	}
	body, kind, err := s.codec.EncodeAnswer(s.url.RequestURI(), s.body, resp)
	if err != nil {
		return nil, err
	}
	r := newResponse(s.req, http.StatusOK, kind)
	setBody(r, body, s.streams)
	return r, nil
}

// adopted returns resp as a change of the last response, if a middleware
// replaced the message and dropped its Native.
func (s *step) adopted(resp *middleware.Response) *middleware.Response {
	if resp.Native != nil {
		return resp
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := *resp
	for _, a := range s.attempts {
		if a.native != nil {
			own.Native = a.native
		}
	}
	return &own
}

// origin returns the attempt that resp comes from, or nil.
func (s *step) origin(resp *middleware.Response) *attempt {
	if resp.Native == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.attempts {
		if a.native == resp.Native {
			return a
		}
	}
	for _, a := range s.attempts { // a response that was stored in between is found by its text
		if n := a.native; n != nil && n.Dialect == resp.Native.Dialect && n.Raw == resp.Native.Raw {
			return a
		}
	}
	return nil
}

// inFormat returns resp as a response in the client's format, so that it can
// follow what the client has received.
func (s *step) inFormat(resp *middleware.Response) (*middleware.Response, error) {
	resp = s.adopted(resp)
	if resp.Native != nil && resp.Native.Dialect == s.codec.Dialect() {
		return resp, nil
	}
	return s.written(resp)
}

// written returns resp as a response in the client's format that no provider sent.
func (s *step) written(resp *middleware.Response) (*middleware.Response, error) {
	body, _, err := s.codec.EncodeAnswer(s.url.RequestURI(), s.body, resp)
	if err != nil {
		return nil, err
	}
	own, err := s.codec.DecodeResponse(nil, body)
	if err != nil {
		return nil, err
	}
	own.Usage = resp.Usage
	return own, nil
}
