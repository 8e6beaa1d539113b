package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/wire"
)

// ErrUnreadable is the error of an answer that cannot be read and may hold a
// tool call, to a request that offered tools. Options.PassUnreadable passes such
// answers on instead.
var ErrUnreadable error = &ownError{"unreadable_answer", "transport: the answer cannot be read and may hold a tool call that was not validated"}

// errOpaque marks an answer that cannot even be searched for calls.
var errOpaque = errors.New("its bytes cannot be searched")

// strict reports whether an answer has to be read before the client gets it.
func (s *step) strict() bool { return s.tools && !s.t.options.PassUnreadable }

// empty returns why an answer has no body that could hold anything, "" if it
// has one.
func empty(resp *http.Response) string {
	switch {
	case resp.StatusCode < 200 || resp.StatusCode >= 300 || resp.StatusCode == http.StatusNoContent:
		return "status " + http.StatusText(resp.StatusCode)
	case resp.Body == nil || resp.Body == http.NoBody || resp.ContentLength == 0:
		return "no body"
	}
	return ""
}

// strange returns why the body of an answer is not given to the codec; nil if it
// is. It wraps errOpaque if the body cannot be searched either.
func (s *step) strange(resp *http.Response) error {
	coding := encoding(resp)
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	media, _, _ := strings.Cut(kind, "/")
	switch {
	case resp.ContentLength > s.t.options.MaxBody:
		return fmt.Errorf("a body of more than MaxBody: %w", errOpaque)
	case coding != "" && coding != "gzip":
		return fmt.Errorf("a Content-Encoding that is not known: %w", errOpaque)
	case kind == "application/vnd.amazon.eventstream": // its payloads are base64
		return fmt.Errorf("a binary stream: %w", errOpaque)
	case s.strict(): // the body shows what it is, whatever the header says
		return nil
	case kind == "text/html", slices.Contains([]string{"multipart", "audio", "image", "video"}, media):
		return errors.New("a Content-Type of another kind") // it need not be read to its end to see so
	}
	return nil
}

// encoding returns the content coding of an answer: "" for none, gzip, or all
// that its headers say. Source: RFC 9110, section 8.4.1.
func encoding(resp *http.Response) string {
	var codings []string
	for name := range strings.SplitSeq(strings.Join(resp.Header.Values("Content-Encoding"), ","), ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "", "identity", "none", "utf-8": // the last two are no codings, but are sent
		case "x-gzip":
			codings = append(codings, "gzip")
		default:
			codings = append(codings, name)
		}
	}
	return strings.Join(codings, ", ")
}

// unreadable returns the error of an answer that the codec cannot read: it goes
// on to the client as it is, or is ErrUnreadable if it may hold a call.
func (s *step) unreadable(ctx context.Context, a *attempt, body io.Reader, why error) error {
	if s.strict() {
		may, err := s.mayHoldCall(ctx, a, body, why)
		if err != nil {
			return err
		}
		if may {
			return fmt.Errorf("%w: %w", ErrUnreadable, why)
		}
	}
	s.mu.Lock()
	live := s.live == a
	if !live && s.latest == a { // no keep-alive makes it live behind this
		s.latest = nil
	}
	s.mu.Unlock()
	if live {
		return s.passThrough(a, body, why)
	}
	if a.inflate {
		a.resp.Body = readCloser{body, a.resp.Body}
	}
	return a.foreign(why)
}

// mayHoldCall reads the rest of an answer, and reports whether a call may be in
// it.
func (s *step) mayHoldCall(ctx context.Context, a *attempt, body io.Reader, why error) (bool, error) {
	most := s.t.options.MaxBody
	if errors.Is(why, errOpaque) || int64(len(a.raw)) > most {
		return true, nil
	}
	rest, err := io.ReadAll(io.LimitReader(body, most+1-int64(len(a.raw))))
	a.raw = append(a.raw, rest...)
	switch {
	case err != nil:
		return true, s.lineFailure(ctx, a, err)
	case int64(len(a.raw)) > most:
		return true, nil
	}
	return s.codec.MayHoldCall(a.raw), nil
}

// passThrough shows the client the rest of the answer as it comes.
func (s *step) passThrough(a *attempt, body io.Reader, why error) error {
	s.mu.Lock()
	s.mute = true
	s.mu.Unlock()
	s.shown.write(a.stream.Passed(a.raw[a.stream.Taken():]))
	buf := make([]byte, 32<<10)
	for a.lineErr == nil {
		n, readErr := body.Read(buf)
		if !s.shown.write(buf[:n]) {
			readErr = io.ErrClosedPipe
		}
		a.lineErr = readErr
	}
	if a.lineErr == io.EOF {
		a.lineErr = nil
	}
	a.through = true
	return &foreignError{a, why}
}

// refused answers for a request to a path of codec c that cannot be read and may
// offer tools: nobody could validate the answer.
func (t *Transport) refused(req *http.Request, c wire.Codec) *http.Response {
	s := &step{t: t, req: req, codec: c}
	return s.raised(errRequest)
}

var errRequest = &ownError{"unreadable_request", "transport: the request cannot be read, and offers tools whose calls could not be validated; Options.PassUnreadable passes it on"}

// unread marks an answer that nobody has looked at.
func unread(resp *http.Response, err error) (*http.Response, error) {
	if err != nil || resp == nil {
		return resp, err
	}
	withoutOurs(resp.Header)
	if empty(resp) == "" {
		if resp.Header == nil {
			resp.Header = http.Header{}
		}
		resp.Header.Set(statusHeader, unchecked)
	}
	return resp, err
}
