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

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// brittle is a codec whose streams panic in the methods of that name. Take does
// so behind the first bytes that it gives if it is there as "Take again".
type brittle struct {
	wire.Codec
	in string
}

func (b brittle) NewStream(req *middleware.Request, sink middleware.Sink) wire.Stream {
	return brittleStream{b.Codec.NewStream(req, sink), b.in}
}

type brittleStream struct {
	wire.Stream
	in string
}

func (s brittleStream) breaks(method string) {
	if strings.Contains(s.in, method) {
		panic(io.ErrNoProgress)
	}
}

func (s brittleStream) KeepAlive() []byte {
	s.breaks("KeepAlive")
	return s.Stream.KeepAlive()
}

func (s brittleStream) Take() []byte {
	if s.Taken() > 0 || !strings.Contains(s.in, "again") {
		s.breaks("Take")
	}
	return s.Stream.Take()
}

func (s brittleStream) Fail(status int, code, message string) []byte {
	s.breaks("Fail")
	return s.Stream.Fail(status, code, message)
}

// TestPanicsOfACodec: a codec that panics ends neither the program nor leaves a
// client waiting, whatever goroutine it does so in.
func TestPanicsOfACodec(t *testing.T) {
	t.Parallel()
	s := chat()
	for name, c := range map[string]struct {
		raises bool   // the panic goes on in the caller's goroutine
		left   string // what the client reads
		broken bool   // and an error behind it
	}{
		"KeepAlive":        {left: `a middleware panicked`},
		"KeepAlive, held":  {left: `"code":"panic"`},
		"Take":             {raises: true},
		"Take again":       {left: `a middleware panicked`},
		"Take again, Fail": {left: `"content":"one`, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pieces := append(eventsOf(s.stream("one", `{"n":1}`))[:1], eventsOf(s.stream("two", `{"n":2}`))...)
				tr := transport.New(transport.Options{Codecs: []wire.Codec{brittle{s.codec, name}}, Hold: strings.Contains(name, "held")}, validate())
				ctx, watched := transport.Watch(t.Context())
				hook := func() (string, error) {
					resp, err := tr.Hook(s.streamRequest(t).WithContext(ctx), play(played{kind: s.kind, pieces: pieces, pauses: []time.Duration{0, 9 * time.Second}}))
					require.NoError(t, err)
					body, err := io.ReadAll(resp.Body)
					require.NoError(t, resp.Body.Close())
					return string(body), err
				}
				if c.raises {
					require.PanicsWithValue(t, io.ErrNoProgress, func() { _, _ = hook() })
					return
				}
				body, err := hook()
				require.Contains(t, body, c.left)
				require.Equal(t, c.broken, err != nil, err)
				var p *transport.Panic
				require.ErrorAs(t, watched.Err(), &p)
				require.Equal(t, io.ErrNoProgress, p.Value)
			})
		})
	}
}

// unmatched is a codec that panics before the format of a request is known.
type unmatched struct{ wire.Codec }

func (unmatched) MatchPath(string) bool { panic(io.ErrNoProgress) }

// TestPanicBeforeTheFormatIsKnown: the client of a Handler gets an error in no
// format's form.
func TestPanicBeforeTheFormatIsKnown(t *testing.T) {
	t.Parallel()
	h := transport.New(transport.Options{Codecs: []wire.Codec{unmatched{}}}).Handler(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader("{}")))
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, "panic", w.Header().Get("X-Toolmend-Error"))
	require.JSONEq(t, `{"error":{"code":"panic","message":"a middleware panicked"}}`, w.Body.String())
}
