package transport

import (
	"net/http"

	"github.com/toolmend/toolmend/middleware"
)

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
	body, kind, err := s.codec.EncodeAnswer(s.req.URL.RequestURI(), s.body, resp)
	if err != nil {
		return nil, err
	}
	r := newResponse(s.req, http.StatusOK, kind)
	r.Header.Set("Content-Length", "0")
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
	body, _, err := s.codec.EncodeAnswer(s.req.URL.RequestURI(), s.body, resp)
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
