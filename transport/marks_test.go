package transport_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// respondingWith is a server that answers each request with the same bytes.
func respondingWith(t *testing.T, response string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, strings.ReplaceAll(response, "\n", "\r\n"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestUpstreamCannotRemoveMarks: the upstream's Connection header may name the marks of the
// Transport. They are added after its hop-by-hop headers are removed.
func TestUpstreamCannotRemoveMarks(t *testing.T) {
	t.Parallel()
	pass := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass})
	at := proxy(t, toys(pass), respondingWith(t, "HTTP/1.1 200 OK\nConnection: X-Toolmend-Status, close\nX-Toolmend-Status: valid\nContent-Type: application/json\n\n"+badCall))
	resp, err := http.DefaultClient.Do(post(t, t.Context(), at, ask(false, addTool)))
	require.NoError(t, err)
	read(t, resp)
	require.Equal(t, []string{"invalid"}, resp.Header.Values("X-Toolmend-Status"))
}

// TestUpstreamCannotForgeMarks: an informational response must not have a mark.
func TestUpstreamCannotForgeMarks(t *testing.T) {
	t.Parallel()
	at := proxy(t, toys(), respondingWith(t, "HTTP/1.1 103 Early Hints\nX-Toolmend-Status: valid\nLink: x\n\nHTTP/1.1 200 OK\nContent-Type: application/json\nConnection: close\n\n"+badCall))
	var mu sync.Mutex
	informed := map[int]textproto.MIMEHeader{}
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		mu.Lock()
		defer mu.Unlock()
		informed[status] = h
		return nil
	}})
	resp, err := http.DefaultClient.Do(post(t, ctx, at, ask(false, addTool)))
	require.NoError(t, err)
	read(t, resp)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, "x", informed[103].Get("Link"))
	require.Empty(t, informed[103].Get("X-Toolmend-Status"))
}

// TestOddStatus: some clients read an answer in a response with a status from 600 on.
func TestOddStatus(t *testing.T) {
	t.Parallel()
	at := proxy(t, toys(), respondingWith(t, "HTTP/1.1 700 Odd\nContent-Type: application/json\nConnection: close\n\n"+badCall))
	resp, err := http.DefaultClient.Do(post(t, t.Context(), at, ask(false, addTool)))
	require.NoError(t, err)
	read(t, resp)
	require.Equal(t, "unreadable_answer", resp.Header.Get("X-Toolmend-Error"), resp.Status)

	at = proxy(t, toys(), respondingWith(t, "HTTP/1.1 700 Odd\nContent-Type: application/json\nConnection: close\n\n"+words))
	resp, err = http.DefaultClient.Do(post(t, t.Context(), at, ask(false, addTool)))
	require.NoError(t, err)
	require.Equal(t, words, read(t, resp))
	require.Equal(t, 700, resp.StatusCode)
	require.Equal(t, "unchecked", resp.Header.Get("X-Toolmend-Status"))
}

// TestUnvalidatedRequestsAreMarked: responses to other methods on the path of a model call, and
// stored answers, are not validated.
func TestUnvalidatedRequestsAreMarked(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, badCall) }))
	t.Cleanup(s.Close)
	at := proxy(t, transport.New(transport.Options{}), s.URL)
	for name, c := range map[string]struct {
		method, path, status string
	}{
		"put":             {http.MethodPut, "/v1/chat/completions", "unchecked"},
		"patch":           {http.MethodPatch, "/v1/messages", "unchecked"},
		"odd":             {"ODD", "/v1/responses", "unchecked"},
		"list of stored":  {http.MethodGet, "/v1/chat/completions", "unchecked"},
		"stored":          {http.MethodGet, "/v1/responses/resp_1", "unchecked"},
		"stored stream":   {http.MethodGet, "/v1/responses/resp_1?stream=true", "unchecked"},
		"canceled":        {http.MethodPost, "/v1/responses/resp_1/cancel", "unchecked"},
		"conversation":    {http.MethodGet, "/v1/conversations/conv_1/items", "unchecked"},
		"batch":           {http.MethodGet, "/v1/messages/batches/b1/results", "unchecked"},
		"file of a batch": {http.MethodGet, "/v1/files/f1/content", "unchecked"},
		"models":          {http.MethodGet, "/v1/models", ""},
		"model":           {http.MethodGet, "/v1/models/gpt", ""},
		"files":           {http.MethodGet, "/v1/files", ""},
		"count":           {http.MethodPost, "/v1/responses/input_tokens", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body io.Reader
			if c.method != http.MethodGet {
				body = strings.NewReader(`{"model":"m"}`)
			}
			req, err := http.NewRequestWithContext(t.Context(), c.method, at+c.path, body)
			require.NoError(t, err)
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, bufio.NewReader(resp.Body))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, c.status, resp.Header.Get("X-Toolmend-Status"))
		})
	}
}
