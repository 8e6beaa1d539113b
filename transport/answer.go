package transport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/middleware"
)

// respond returns the outcome for the result of the chain, if no byte was streamed. passed is
// the attempt whose body the client reads, or nil.
func (x *exchange) respond(resp *middleware.Response, err error) (o outcome, passed *attempt) {
	if err == nil {
		status := statusOf(resp)
		r, e := x.answerResponse(resp)
		if e == nil {
			x.call.setStatus(status)
			if status != "" {
				r.Header.Set(statusHeader, status)
			}
			return outcome{resp: r}, nil
		}
		err = e
		x.call.setError(err)
	}
	a, failure := x.failedAttempt(err)
	switch failure := failure.(type) {
	case *passedError:
		if !a.isReask { // else the client would get a page in place of a response that was read
			return outcome{resp: x.passedResponse(a)}, a
		}
	case *networkError:
		return outcome{err: failure.err}, nil
	case *middleware.ModelError:
		return outcome{resp: x.refusalResponse(a, err)}, nil
	}
	if x.req.Context().Err() != nil {
		return outcome{err: err}, nil
	}
	if a := x.lastRefusal(); a != nil && errors.Is(err, ErrModelCalls) {
		return outcome{resp: x.refusalResponse(a, err)}, nil
	}
	return outcome{resp: errorResponse(x.req, x.codec, err)}, nil
}

// answerResponse returns the client's response for resp: the provider's response with the
// changes of the chain, or a response that the chain wrote.
func (x *exchange) answerResponse(resp *middleware.Response) (*http.Response, error) {
	if changed := x.withNative(resp); x.origin(changed) != nil {
		body, err := x.codec.EncodeResponse(changed)
		if err == nil {
			return x.changedResponse(changed, body), nil
		}
		if resp.Native != nil {
			return nil, err
		}
	}
	body, kind, err := x.codec.EncodeAnswer(x.url.RequestURI(), x.body, resp)
	if err != nil {
		return nil, err
	}
	r := newResponse(x.req, http.StatusOK, kind)
	setBody(r, body, x.streams)
	return r, nil
}

// changedResponse returns a response with body, and with the status and the headers of the
// attempt that sent resp.
func (x *exchange) changedResponse(resp *middleware.Response, body []byte) *http.Response {
	from := x.origin(resp)
	r := from.clientHeader()
	streamed, status := from.stream.IsStream(), statusOf(resp)
	if streamed && status == invalid {
		body = append(bytes.Clone(body), from.stream.Comment(comment)...)
	}
	if string(body) != from.receivedText() {
		withoutDigests(r.Header)
	}
	setBody(r, body, streamed)
	return r
}

// clientHeader returns the status and the headers of the provider's response for the client.
func (a *attempt) clientHeader() *http.Response {
	r := *a.resp
	r.Header = a.resp.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Request = a.exchange.req
	proxy.WithoutOwn(r.Header)
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

// setBody sets the body of r. It sets the length too, unless r is a stream or has trailers.
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

// withNative returns resp with the Native of the last response if it has none: a middleware has
// then replaced the message of that response.
func (x *exchange) withNative(resp *middleware.Response) *middleware.Response {
	if resp.Native != nil {
		return resp
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	own := *resp
	for _, a := range x.attempts {
		if a.native != nil {
			own.Native = a.native
		}
	}
	return &own
}

// origin returns the attempt that sent resp, or nil.
func (x *exchange) origin(resp *middleware.Response) *attempt {
	if resp.Native == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, a := range x.attempts {
		if a.native == resp.Native {
			return a
		}
	}
	for _, a := range x.attempts { // a response that was stored in between is found by its text
		if n := a.native; n != nil && n.Dialect == resp.Native.Dialect && n.Raw == resp.Native.Raw {
			return a
		}
	}
	return nil
}

// inClientFormat returns resp in the client's format, so that it can follow the bytes that the
// client has got.
func (x *exchange) inClientFormat(resp *middleware.Response) (*middleware.Response, error) {
	resp = x.withNative(resp)
	if resp.Native != nil && resp.Native.Dialect == x.codec.Dialect() {
		return resp, nil
	}
	return x.ownAnswer(resp)
}

// ownAnswer returns resp in the client's format if it came from another one, or from no provider.
func (x *exchange) ownAnswer(resp *middleware.Response) (*middleware.Response, error) {
	body, _, err := x.codec.EncodeAnswer(x.url.RequestURI(), x.body, resp)
	if err != nil {
		return nil, err
	}
	own, err := x.codec.DecodeResponse(nil, body)
	if e, ok := errors.AsType[*middleware.ModelError](err); ok && e.Response != nil {
		own, err = e.Response, nil
	}
	if err != nil {
		return nil, err
	}
	own.Usage = resp.Usage
	return own, nil
}

// passedResponse returns the response of a, which is passed on unread.
func (x *exchange) passedResponse(a *attempt) *http.Response {
	r := a.clientHeader()
	r.Body = a.passedBody
	if r, _ = markUnread(r, nil); r.Header.Get(statusHeader) != "" {
		x.call.setStatus(unchecked)
	}
	return r
}

// refusalResponse returns the error response that the provider sent to a. It asks the client not
// to retry in three cases: the chain has made MaxModelCalls calls and more than one, it has
// already re-asked because the provider refused the model's call, or the provider refused the
// history.
func (x *exchange) refusalResponse(a *attempt, err error) *http.Response {
	r := a.clientHeader()
	switch {
	case a.stream != nil && x.mayHoldCalls(a):
		r.Header.Del("Content-Length")
		r.ContentLength = -1
		body := bytes.Clone(a.stream.Take())
		events, _ := x.failureEvents(a.stream, a, err)
		body = append(body, events...)
		r.Body = io.NopCloser(bytes.NewReader(body))
	case a.stream != nil:
		setBody(r, []byte(a.receivedText()), a.stream.IsStream())
	default:
		r.Body = io.NopCloser(bytes.NewReader(a.raw))
	}
	refused := errors.Is(err, middleware.ErrInvalidToolCall) && a.n > 0 || errors.Is(err, middleware.ErrInvalidHistory)
	x.mu.Lock()
	defer x.mu.Unlock()
	if refused || x.callsUsedUp() && len(x.attempts) > 1 {
		r.Header.Set("X-Should-Retry", "false")
	}
	return r
}

// lastRefusal returns the last attempt if it ended with the provider's error, or nil.
func (x *exchange) lastRefusal() *attempt {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.attempts); n > 0 {
		if _, ok := x.attempts[n-1].failure.(*middleware.ModelError); ok {
			return x.attempts[n-1]
		}
	}
	return nil
}

// mayHoldCalls reports whether a response that ended with the provider's error may hold tool
// calls in front of the error. They were not validated.
func (x *exchange) mayHoldCalls(a *attempt) bool { return x.tools && a.stream.IsStream() }
