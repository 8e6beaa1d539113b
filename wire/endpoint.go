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

// Endpoint is where a model is served. The zero Endpoint is the provider's own
// address, without a key.
type Endpoint struct {
	// URL is the address below which the provider's paths begin, such as
	// https://gateway.example/v1; "" is the provider's own.
	URL string
	// Key is sent as the provider wants it, in a header; "" sends none.
	Key string
	// Model is for requests that name none.
	Model string
	// Client sends the requests; nil is http.DefaultClient. Its redirect
	// policy and cookies are not used.
	Client *http.Client
	// Silence is how long the server may send nothing before the call ends with
	// an error that wraps os.ErrDeadlineExceeded; 0 is 5 minutes, a negative
	// value no bound but that of the context and the client.
	Silence time.Duration
}

const (
	defaultSilence = 5 * time.Minute
	maxErrorBody   = 1 << 20
)

// Model is part of Codec.
func (f format) Model(e Endpoint) middleware.ModelCall {
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
		watch.heard()
		if resp.StatusCode >= 300 {
			return nil, f.refusal(e, resp)
		}
		return f.read(req, resp.Body, watch)
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
	if err != nil {
		return nil, fmt.Errorf("wire: Endpoint.URL: %w", withoutURL(err))
	}
	for name, values := range req.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	r.Header.Set("Content-Type", "application/json")
	f.Authorize(r.Header, e.Key)
	resp, err := e.Client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("wire: asking %s: %w", r.URL.Host, withoutURL(err))
	}
	return resp, nil
}

// withoutURL takes the address out of an error: people put keys into it.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (f format) refusal(e Endpoint, resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // of a broken body, what there is
	m := f.DecodeError(resp.StatusCode, resp.Header, body)
	if e.Key != "" && m.Err != nil && strings.Contains(m.Err.Error(), e.Key) {
		m.Err = errors.New(strings.ReplaceAll(m.Err.Error(), e.Key, "[key]"))
	}
	return m
}

func (f format) read(req *middleware.Request, body io.Reader, watch *silence) (*middleware.Response, error) {
	s := f.NewStream(req, req.Sink)
	buf := make([]byte, 16<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			watch.heard()
			if _, err := s.Write(buf[:n]); err != nil {
				return nil, err
			}
		}
		switch {
		case err == io.EOF:
			return s.Close()
		case err != nil:
			return nil, watch.explain(fmt.Errorf("wire: reading the answer: %w", err))
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

func (w *silence) heard() {
	if w.timer != nil {
		w.timer.Reset(w.bound)
	}
}

func (w *silence) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(nil)
}

// explain puts the silence in the place of the cancellation that it caused.
func (w *silence) explain(err error) error {
	if cause := context.Cause(w.ctx); errors.Is(cause, os.ErrDeadlineExceeded) {
		return cause
	}
	return err
}
