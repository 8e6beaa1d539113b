package transport_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

// stalled is a client that takes nothing until it is told to, and then has gone.
type stalled struct {
	*httptest.ResponseRecorder
	taken chan struct{}
}

func (s *stalled) Write([]byte) (int, error) {
	<-s.taken
	return 0, io.ErrClosedPipe
}

// counted is a body without an end. It counts its reads until it is closed.
type counted struct {
	reads  int
	closed bool
}

func (c *counted) Read(p []byte) (int, error) {
	if c.closed {
		return 0, io.ErrClosedPipe
	}
	c.reads++
	return copy(p, event(toyAnswer{Text: "word "})), nil
}

func (c *counted) Close() error { c.closed = true; return nil }

// A slow client of a Handler makes the provider wait, and one that has gone ends the
// model call.
func TestHandlerWaitsForItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body := &counted{}
		base := doer(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Request: r, ContentLength: -1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
		})
		h := toysWith(transport.Options{Base: base}, validate()).Handler(&url.URL{Scheme: "http", Host: "up"})
		w := &stalled{ResponseRecorder: httptest.NewRecorder(), taken: make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/toy", strings.NewReader(ask(true))))
		}()
		synctest.Wait()
		require.Equal(t, 1, body.reads)
		close(w.taken)
		<-done
		require.True(t, body.closed)
	})
}

// heard is a client that notes the longest silence between two flushes.
type heard struct {
	*httptest.ResponseRecorder
	since   time.Time
	silence time.Duration
}

func (h *heard) Flush() {
	h.silence, h.since = max(h.silence, time.Since(h.since)), time.Now()
}

// The client of a Handler hears something while the provider is silent, or while a
// call is held.
func TestKeepAliveOfHandler(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		good := eventsOf(s.stream("two", `{"n":2}`))
		for kind, answer := range map[string]played{
			"slow call":           {pieces: good, pauses: []time.Duration{0, 9 * time.Second}},
			"nothing but headers": {pieces: good, pauses: []time.Duration{40 * time.Second, 0}},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					answer.kind = s.kind
					w := &heard{ResponseRecorder: httptest.NewRecorder(), since: time.Now()}
					transport.New(transport.Options{Base: doer(play(answer))}, validate()).Handler(&url.URL{Scheme: "http", Host: "up"}).ServeHTTP(w, s.streamRequest(t))
					w.Flush()
					require.LessOrEqual(t, w.silence, longest)
					got := s.decode(t, w.Body.String())
					require.Len(t, got.Message.ToolCalls, 1)
					require.Contains(t, got.Message.ToolCalls[0].Arguments, `"n":2`)
				})
			})
		}
	}
}

// A stream also reaches its client through a ResponseWriter that cannot flush, such as
// that of http.TimeoutHandler.
func TestHandlerWithoutFlush(t *testing.T) {
	t.Parallel()
	s := chat()
	sent := s.stream("Hello.", `{"n":1}`)
	to, err := url.Parse(serve(t, events(sent)).URL)
	require.NoError(t, err)
	h := transport.New(transport.Options{}, validate()).Handler(to)
	front := httptest.NewServer(http.TimeoutHandler(h, time.Minute, ""))
	t.Cleanup(front.Close)
	resp, err := front.Client().Post(front.URL+s.path, "application/json", strings.NewReader(s.request(true)))
	require.NoError(t, err)
	require.Equal(t, sent, read(t, resp))
}
