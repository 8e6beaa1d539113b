package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// read reads the response of an attempt.
func (s *step) read(ctx context.Context, a *attempt) (*middleware.Response, error) {
	if a.resp.StatusCode >= 400 {
		return nil, s.readRefusal(ctx, a)
	}
	if err := s.redirected(a.resp); err != nil {
		return nil, err
	}
	if why := empty(a.resp); why != "" {
		return nil, a.passOn(errors.New(why))
	}
	body := io.Reader(a.resp.Body)
	if why := s.strange(a.resp); why != nil {
		return nil, s.unreadable(ctx, a, body, why)
	}
	if encoding(a.resp) == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, s.networkFailure(ctx, a, err)
		}
		body, a.inflate = z, true
	}
	if a.resp.StatusCode >= 300 { // the Go SDKs of OpenAI and Anthropic take every status below 400 for an answer
		return nil, s.unreadable(ctx, a, body, errors.New("status "+http.StatusText(a.resp.StatusCode)))
	}
	return s.readAnswer(ctx, a, body)
}

// passOn returns the error for a response that the client gets unchanged: the
// bytes that were read and those that follow. The client's context then
// governs it.
func (a *attempt) passOn(err error) error {
	a.step.mu.Lock()
	if a.step.latest == a {
		a.step.latest = nil
	}
	a.step.mu.Unlock()
	a.untie()
	stop := context.AfterFunc(a.step.req.Context(), func() { a.cancel(context.Cause(a.step.req.Context())) })
	body := a.resp.Body
	if body == nil {
		body = http.NoBody
	}
	rest := io.Reader(body)
	if text := a.text(); text != "" {
		rest = io.MultiReader(strings.NewReader(text), body)
	}
	whole := readCloser{rest, closer(func() error {
		stop()
		a.cancel(nil)
		return body.Close()
	})}
	a.step.mu.Lock()
	a.rest = whole
	late := a.step.closed
	a.step.mu.Unlock()
	if late {
		_ = whole.Close()
	}
	return a.fails(&passedError{err})
}

type closer func() error

func (c closer) Close() error { return c() }

// readRefusal reads a response with an error status.
func (s *step) readRefusal(ctx context.Context, a *attempt) error {
	if a.resp.Body != nil {
		raw, err := io.ReadAll(io.LimitReader(a.resp.Body, s.t.options.MaxBody+1))
		if err != nil {
			return s.networkFailure(ctx, a, err)
		}
		a.raw = raw
		if int64(len(raw)) > s.t.options.MaxBody {
			return a.passOn(errors.New("an error of more than MaxBody"))
		}
	}
	return a.fails(s.codec.DecodeError(a.resp.StatusCode, a.resp.Header, plain(a.resp, a.raw)))
}

// plain returns the decompressed body of an error. A body of more than 1 MiB
// is cut there.
func plain(resp *http.Response, raw []byte) []byte {
	if encoding(resp) != "gzip" {
		return raw
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return raw
	}
	b, _ := io.ReadAll(io.LimitReader(z, 1<<20))
	return b
}

// patience is how long a server may keep the connection open after the end of
// its stream. SDKs do not wait at all, but a connection can be reused only after
// it was read to its end.
const patience = time.Second

// text returns the part of the body that was read.
func (a *attempt) text() string {
	switch {
	case a.stream == nil:
		return string(a.raw)
	case len(a.raw) == 0:
		return a.stream.Text()
	}
	return a.stream.Text() + string(a.raw)
}

// untaken returns what was read of a stream behind the bytes that the client got.
func (a *attempt) untaken() []byte { return []byte(a.stream.Pending() + string(a.raw)) }

// readAnswer reads a response through the codec, and streams the safe part to
// the client.
func (s *step) readAnswer(ctx context.Context, a *attempt, body io.Reader) (*middleware.Response, error) {
	sink := a.req.Sink
	if s.ready != nil {
		s.watch.renew()
		sink = s.watch.emit(sink)
	}
	a.stream = s.codec.NewStream(a.req, sink)
	s.hears(a)
	buf := proxy.NewBuffer(a.resp.ContentLength)
	defer buf.Free()
	left := s.t.options.MaxBody
	var late *time.Timer // fires some time after the end mark
	a.reading.Lock()
	defer a.reading.Unlock()
	s.heeded.Store(a)
	for {
		n, readErr := s.awaited(a, body, buf.Bytes())
		p := buf.Bytes()[:n]
		if left -= int64(n); left < 0 {
			a.raw = bytes.Clone(p)
			return nil, s.unreadable(ctx, a, body, fmt.Errorf("%w: more than MaxBody", wire.ErrShape))
		}
		if n > 0 {
			if _, err := a.stream.Write(p); err != nil {
				if !errors.Is(err, wire.ErrShape) {
					return nil, err // the error of the sink
				}
				_, _ = a.stream.Close() // a later response may continue what was taken of this one
				return nil, s.unreadable(ctx, a, body, err)
			}
			s.begins(a, p)
			s.show(a)
		}
		if late == nil && a.stream.Ended() {
			late = time.AfterFunc(patience, func() { a.cancel(nil) })
			defer late.Stop()
		}
		if readErr == nil {
			readErr = ctx.Err() // a body need not report that the context ended
		}
		if readErr != nil {
			return s.closeAnswer(ctx, a, body, readErr)
		}
		buf.Next(n)
	}
}

// awaited reads from the body. Meanwhile events that the chain passes on are
// shown. The caller holds a.reading.
func (s *step) awaited(a *attempt, body io.Reader, buf []byte) (int, error) {
	a.idle = true
	a.reading.Unlock()
	defer func() {
		a.reading.Lock()
		a.idle = false
	}()
	s.showPassed(a)
	return body.Read(buf)
}

// begins records that the body of a, of which p was read, has begun. White space does
// not show yet whether a stream follows.
func (s *step) begins(a *attempt, p []byte) {
	if a.begun || len(bytes.TrimLeft(p, " \t\r\n")) == 0 {
		return
	}
	s.mu.Lock()
	a.begun = true
	s.mu.Unlock()
}

// closeAnswer takes the response from the codec. A network error after the end
// of the response is ignored.
func (s *step) closeAnswer(ctx context.Context, a *attempt, body io.Reader, readErr error) (*middleware.Response, error) {
	resp, err := a.stream.Close()
	if resp == nil && err == nil {
		err = middleware.ErrNoResponse
	}
	var refusal *middleware.ModelError
	switch {
	case err == nil:
		s.mu.Lock()
		a.native, s.answered = resp.Native, true
		s.mu.Unlock()
		return resp, nil
	case errors.As(err, &refusal):
		a.fails(refusal)
		return nil, err
	case readErr != io.EOF:
		return nil, s.networkFailure(ctx, a, readErr)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, s.networkFailure(ctx, a, err)
	}
	if !errors.Is(err, wire.ErrShape) {
		return nil, err
	}
	return nil, s.unreadable(ctx, a, body, err)
}
