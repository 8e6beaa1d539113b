package transport

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipeLetsGo looks inside: a reader that is always a little late costs
// memory for what it has not read, not for all there was.
func TestPipeLetsGo(t *testing.T) {
	t.Parallel()
	p := newPipe(t.Context(), func() {})
	piece := make([]byte, 64<<10)
	p.write(piece)
	for range 1000 {
		p.write(piece)
		n, err := p.Read(piece)
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
	}
	require.Less(t, cap(p.buf), 16*len(piece))
	require.NoError(t, p.Close())
}

// A stream reaches the client's body with its first bytes, so that a proxy need not
// flush its headers apart.
func TestStreamHasBegun(t *testing.T) {
	t.Parallel()
	const text = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"}}]}` + "\n\n"
	next := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Request: r, ContentLength: -1, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: io.NopCloser(strings.NewReader(text + "data: [DONE]\n\n"))}, nil
	}
	req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[],"stream":true}`))
	resp, err := New(Options{}).Hook(req, next)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, ok := resp.Body.(interface{ Begun() })
	require.True(t, ok)
	body.Begun()
	require.True(t, resp.Body.(*shownBody).unread())
}
