package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Endpoint is the address of a model. The zero value is the provider's own address,
// without a key.
type Endpoint struct {
	// URL is the address to which the provider's paths are appended, such as
	// https://gateway.example/v1. "" means the provider's own.
	URL string
	// Key is sent in the header that the provider expects; "" sends none.
	Key string
	// Model is the model for requests that name none. A model that the request
	// names is used instead, also by the Endpoint of a fallback.
	Model string
	// Client sends the requests; nil means http.DefaultClient. Its redirect
	// policy and cookies are not used.
	Client *http.Client
	// Silence is the longest time without a byte from the server. After it the call ends with an
	// error that wraps os.ErrDeadlineExceeded. 0 means 5 minutes. middleware.Unlimited means that
	// only the context and the client limit the call. Other negative values are an error.
	Silence time.Duration
}

// Validate returns the first invalid field as an error, or nil. Codec.Model panics
// with the same error.
func (e Endpoint) Validate() error {
	if e.Silence < 0 && e.Silence != middleware.Unlimited {
		return fmt.Errorf("wire: Endpoint.Silence: must not be negative, unless it is middleware.Unlimited, got %s", e.Silence)
	}
	return nil
}

const (
	defaultSilence = 5 * time.Minute
	maxErrorBody   = 1 << 20
)

// Model returns a model call over HTTP.
func (f format) Model(e Endpoint) middleware.ModelCall {
	if err := e.Validate(); err != nil {
		panic(err)
	}
	if e.Client == nil {
		e.Client = http.DefaultClient
	}
	client := *e.Client
	// A redirected POST loses its body or takes a key of a provider's own
	// header to another host: net/http takes back Authorization only.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Jar = nil
	e.Client = &client
	e.Silence = cmp.Or(e.Silence, defaultSilence)
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		body, err := f.encode(e, req)
		if err != nil {
			return nil, err
		}
		ctx, watch := watchSilence(ctx, e.Silence)
		defer watch.stop()
		resp, err := f.post(ctx, e, req, body)
		if err != nil {
			return nil, watch.explain(err)
		}
		defer resp.Body.Close()
		watch.wait()
		if resp.StatusCode >= 300 {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // of a broken body, what there is
			return nil, e.withoutKey(f.DecodeError(resp.StatusCode, resp.Header, body))
		}
		answer, err := f.read(req, resp.Body, watch)
		return answer, e.withoutKey(err)
	}
}

func (f format) encode(e Endpoint, req *middleware.Request) ([]byte, error) {
	if req.Model == "" && (req.Native == nil || req.Native.Dialect != f.Dialect()) {
		named := *req
		named.Model = e.Model
		req = &named
	}
	return f.EncodeRequest(req)
}

func (f format) post(ctx context.Context, e Endpoint, req *middleware.Request, body []byte) (*http.Response, error) {
	target := f.URL(e.URL, cmp.Or(req.Model, e.Model), req.Sink != nil)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil { // which quotes what it cannot read
		return nil, errors.New("wire: Endpoint.URL: not an address")
	}
	for name, values := range req.Header {
		for _, v := range values {
			r.Header.Add(name, v)
		}
	}
	r.Header.Del("Accept-Encoding") // net/http unpacks only what it asked for itself
	r.Header.Set("Content-Type", "application/json")
	f.Authorize(r.Header, e.Key)
	resp, err := e.Client.Do(r)
	if u, ok := errors.AsType[*url.Error](err); ok { // without the address: people put keys into it
		err = u.Err
	}
	if err != nil {
		return nil, fmt.Errorf("wire: asking %s: %w", r.URL.Host, err)
	}
	return resp, nil
}

// keyHint is how many bytes of a key an error may show.
const keyHint = 3

// withoutKey removes the key from the provider's error, because some providers quote it. A
// message that was cut may end with a part of the key.
func (e Endpoint) withoutKey(err error) error {
	var m *middleware.ModelError
	if e.Key == "" || !errors.As(err, &m) || m.Err == nil || errors.Is(m.Err, middleware.ErrInvalidToolCall) {
		return err
	}
	text := strings.ReplaceAll(m.Err.Error(), e.Key, "[key]")
	if cut, ok := strings.CutSuffix(text, "…"); ok {
		for n := len(e.Key) - 1; n > keyHint; n-- {
			if begin, ok := strings.CutSuffix(cut, e.Key[:n]); ok {
				text = begin + "[key]…"
				break
			}
		}
	}
	switch {
	case text == m.Err.Error():
	case errors.Is(m.Err, middleware.ErrInvalidHistory):
		m.Err = middleware.ErrInvalidHistory
	default:
		m.Err = errors.New(text)
	}
	return err
}

func (f format) read(req *middleware.Request, body io.Reader, watch *silence) (*middleware.Response, error) {
	s := f.NewStream(req, req.Sink)
	buf := make([]byte, 16<<10)
	for {
		watch.wait()
		n, err := body.Read(buf)
		watch.heard() // the time that the sink takes does not count as silence of the server
		if n > 0 {
			if _, err := s.Write(buf[:n]); err != nil {
				return nil, err
			}
		}
		switch {
		case err == io.EOF:
			return s.Close()
		case err != nil && watch.ctx.Err() != nil:
			return nil, watch.explain(fmt.Errorf("wire: reading the answer: %w", err))
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
		}
	}
}

// silence ends a call whose server has stalled.
type silence struct {
	bound  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
	ctx    context.Context
}

func watchSilence(ctx context.Context, bound time.Duration) (context.Context, *silence) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &silence{bound: bound, cancel: cancel, ctx: ctx}
	if bound > 0 {
		w.timer = time.AfterFunc(bound, func() {
			cancel(fmt.Errorf("wire: the server sent nothing for %v: %w", bound, os.ErrDeadlineExceeded))
		})
	}
	return ctx, w
}

// wait measures the silence from now on.
func (w *silence) wait() {
	if w.timer != nil {
		w.timer.Reset(w.bound)
	}
}

// heard ends the silence, until the next wait.
func (w *silence) heard() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *silence) stop() {
	w.heard()
	w.cancel(nil)
}

// explain puts the silence in the place of the cancellation that it caused.
func (w *silence) explain(err error) error {
	if cause := context.Cause(w.ctx); errors.Is(cause, os.ErrDeadlineExceeded) {
		return cause
	}
	return err
}
