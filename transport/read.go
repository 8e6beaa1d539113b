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
func (x *exchange) read(ctx context.Context, a *attempt) (*middleware.Response, error) {
	if a.resp.StatusCode >= 400 {
		return nil, x.readRefusal(ctx, a)
	}
	if err := x.redirectError(a.resp); err != nil {
		return nil, err
	}
	if why := emptyReason(a.resp); why != "" {
		return nil, a.passOn(errors.New(why))
	}
	body := io.Reader(a.resp.Body)
	if why := x.unsupported(a.resp); why != nil {
		return nil, x.unreadable(ctx, a, body, why)
	}
	if encoding(a.resp) == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, x.networkFailure(ctx, a, err)
		}
		body, a.inflate = z, true
	}
	if a.resp.StatusCode >= 300 { // the Go SDKs of OpenAI and Anthropic take every status below 400 for an answer
		return nil, x.unreadable(ctx, a, body, errors.New("status "+http.StatusText(a.resp.StatusCode)))
	}
	return x.readAnswer(ctx, a, body)
}

// passOn returns the error for a response that the client gets unchanged: the
// bytes that were read and those that follow. The client's context then
// governs it.
func (a *attempt) passOn(err error) error {
	a.exchange.mu.Lock()
	if a.exchange.latest == a {
		a.exchange.latest = nil
	}
	a.exchange.mu.Unlock()
	a.untie()
	stop := context.AfterFunc(a.exchange.req.Context(), func() { a.cancel(context.Cause(a.exchange.req.Context())) })
	body := a.resp.Body
	if body == nil {
		body = http.NoBody
	}
	rest := io.Reader(body)
	if text := a.receivedText(); text != "" {
		rest = io.MultiReader(strings.NewReader(text), body)
	}
	whole := readCloser{rest, closer(func() error {
		stop()
		a.cancel(nil)
		return body.Close()
	})}
	a.exchange.mu.Lock()
	a.passedBody = whole
	late := a.exchange.closed
	a.exchange.mu.Unlock()
	if late {
		_ = whole.Close()
	}
	return a.fail(&passedError{err})
}

type closer func() error

func (c closer) Close() error { return c() }

// readRefusal reads a response with an error status.
func (x *exchange) readRefusal(ctx context.Context, a *attempt) error {
	if a.resp.Body != nil {
		raw, err := io.ReadAll(io.LimitReader(a.resp.Body, x.t.options.MaxBody+1))
		if err != nil {
			return x.networkFailure(ctx, a, err)
		}
		a.raw = raw
		if int64(len(raw)) > x.t.options.MaxBody {
			return a.passOn(errors.New("an error of more than MaxBody"))
		}
	}
	return a.fail(x.codec.DecodeError(a.resp.StatusCode, a.resp.Header, decompressed(a.resp, a.raw)))
}

// decompressed returns the decompressed body of an error. A body of more than 1 MiB
// is cut there.
func decompressed(resp *http.Response, raw []byte) []byte {
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

// endGrace is how long a server may keep the connection open after the end of
// its stream. SDKs do not wait at all, but a connection can be reused only after
// it was read to its end.
const endGrace = time.Second

// receivedText returns the part of the body that was read.
func (a *attempt) receivedText() string {
	switch {
	case a.stream == nil:
		return string(a.raw)
	case len(a.raw) == 0:
		return a.stream.Text()
	}
	return a.stream.Text() + string(a.raw)
}

// unsent returns what was read of a stream behind the bytes that the client got.
func (a *attempt) unsent() []byte { return []byte(a.stream.Untaken() + string(a.raw)) }

// readAnswer reads a response through the codec, and streams the safe part to
// the client.
func (x *exchange) readAnswer(ctx context.Context, a *attempt, body io.Reader) (*middleware.Response, error) {
	sink := a.req.Sink
	if x.ready != nil {
		x.events.reset()
		sink = x.events.track(sink)
	}
	a.stream = x.codec.NewStream(a.req, sink)
	x.startKeepAlive(a)
	buf := proxy.NewBuffer(a.resp.ContentLength)
	defer buf.Free()
	left := x.t.options.MaxBody
	var late *time.Timer // fires some time after the end mark
	a.streaming.Lock()
	defer a.streaming.Unlock()
	x.reading.Store(a)
	for {
		n, readErr := x.readMore(a, body, buf.Bytes())
		p := buf.Bytes()[:n]
		if left -= int64(n); left < 0 {
			a.raw = bytes.Clone(p)
			return nil, x.unreadable(ctx, a, body, fmt.Errorf("%w: more than MaxBody", wire.ErrShape))
		}
		if n > 0 {
			if _, err := a.stream.Write(p); err != nil {
				if !errors.Is(err, wire.ErrShape) {
					return nil, err // the error of the sink
				}
				_, _ = a.stream.Close() // a later response may continue what was taken of this one
				return nil, x.unreadable(ctx, a, body, err)
			}
			x.noteBegun(a, p)
			x.show(a)
		}
		if late == nil && a.stream.Ended() {
			late = time.AfterFunc(endGrace, func() { a.cancel(nil) })
			defer late.Stop()
		}
		if readErr == nil {
			readErr = ctx.Err() // a body need not report that the context ended
		}
		if readErr != nil {
			return x.closeAnswer(ctx, a, body, readErr)
		}
		buf.Next(n)
	}
}

// readMore reads from the body. Meanwhile events that the chain passes on are
// shown. The caller holds a.reading.
func (x *exchange) readMore(a *attempt, body io.Reader, buf []byte) (int, error) {
	a.awaitsBody = true
	a.streaming.Unlock()
	defer func() {
		a.streaming.Lock()
		a.awaitsBody = false
	}()
	x.showPassed(a)
	return body.Read(buf)
}

// noteBegun records that the body of a, of which p was read, has begun. White space does
// not show yet whether a stream follows.
func (x *exchange) noteBegun(a *attempt, p []byte) {
	if a.begun || len(bytes.TrimLeft(p, " \t\r\n")) == 0 {
		return
	}
	x.mu.Lock()
	a.begun = true
	x.mu.Unlock()
}

// closeAnswer takes the response from the codec. A network error after the end
// of the response is ignored.
func (x *exchange) closeAnswer(ctx context.Context, a *attempt, body io.Reader, readErr error) (*middleware.Response, error) {
	resp, err := a.stream.Close()
	if resp == nil && err == nil {
		err = middleware.ErrNoResponse
	}
	var refusal *middleware.ModelError
	switch {
	case err == nil:
		x.mu.Lock()
		a.native, x.answered = resp.Native, true
		x.mu.Unlock()
		return resp, nil
	case errors.As(err, &refusal):
		a.fail(refusal)
		return nil, err
	case readErr != io.EOF:
		return nil, x.networkFailure(ctx, a, readErr)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, x.networkFailure(ctx, a, err)
	}
	if !errors.Is(err, wire.ErrShape) {
		return nil, err
	}
	return nil, x.unreadable(ctx, a, body, err)
}
