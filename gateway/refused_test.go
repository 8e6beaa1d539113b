package gateway_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// TestRefusedUpstream: the client gets an error of its format that it does not
// repeat, in each mode. Codex would repeat a 5xx thirty times.
func TestRefusedUpstream(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, mode := range []gateway.Mode{gateway.Enforce, gateway.Repair, gateway.Observe} {
		url := serve(t, gateway.Config{Settings: gateway.Settings{Mode: mode}, Upstreams: []gateway.Upstream{{URL: closed.URL, Timeouts: gateway.Timeouts{Refused: gateway.Off}}}})
		for path, c := range map[string]struct {
			body   string
			status int
			begins string
		}{
			"/v1/responses":                    {`{"model":"m","input":"Hello.","stream":true}`, 400, `{"error":{`},
			"/v1/chat/completions":             {chatRequest("m"), 502, `{"error":{`},
			"/v1/messages":                     {`{"model":"m","max_tokens":1,"messages":[]}`, 502, `{"type":"error","error":{`},
			"/v1beta/models/m:generateContent": {`{"contents":[]}`, 502, `{"error":{"code":502,`},
			"/api/chat":                        {`{"model":"m","messages":[]}`, 502, `{"error":"`},
			"/v1/models":                       {`{}`, 502, `{"error":{"code":"upstream_refused"`},
		} {
			status, body, header := post(t, url+path, c.body)
			require.Equal(t, c.status, status, "%s %s", mode, path)
			require.Equal(t, "false", header.Get("X-Should-Retry"), "%s %s", mode, path)
			require.True(t, strings.HasPrefix(body, c.begins), body)
			require.Contains(t, body, "check that it runs")
			require.NotContains(t, body, "127.0.0.1")
		}
	}
}

// TestSilentUpstream: the limits header and idle end a request with 504, or
// close the connection of a response that has begun.
func TestSilentUpstream(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("X-Begin") != "" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":`)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	limit := gateway.Duration(50 * time.Millisecond)
	url := serve(t, gateway.Config{Upstreams: []gateway.Upstream{{URL: s.URL, Timeouts: gateway.Timeouts{Header: limit, Idle: limit}}}})
	for _, path := range []string{"/v1/chat/completions", "/v1/models"} {
		resp, body := send(t, "POST", url+path, chatRequest("m"))
		require.Equal(t, http.StatusGatewayTimeout, resp.StatusCode, body)
		require.Contains(t, body, "did not answer in time")
		require.Empty(t, resp.Header.Get("X-Should-Retry"), "the client may try again")
	}
	resp, body := send(t, "POST", url+"/v1/chat/completions", chatRequest("m"), "X-Begin", "1")
	require.Equal(t, http.StatusGatewayTimeout, resp.StatusCode, body)

	req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/models", nil)
	require.NoError(t, err)
	req.Header.Set("X-Begin", "1")
	client := &http.Transport{}
	defer client.CloseIdleConnections()
	resp, err = client.RoundTrip(req)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the client sees that it is not whole")
	require.NoError(t, resp.Body.Close())
}

// TestHTTP2Clients: the rules hold for requests over HTTP/2 as well.
func TestHTTP2Clients(t *testing.T) {
	t.Parallel()
	to, last := echo(t)
	g, err := gateway.New(gateway.Config{Access: gateway.Access{ClientKeyFile: keyFile(t, clientKey)},
		Upstreams: []gateway.Upstream{{URL: to, Headers: gateway.HeaderRules{Set: map[string]string{"Authorization": "Bearer up"}}}}}, gateway.Options{})
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(g)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() { s.Close(); require.NoError(t, g.Close()) })
	client := &http.Transport{Protocols: s.Config.Protocols}
	t.Cleanup(client.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for name, c := range map[string]struct {
		method  string
		host    string
		headers []string
		status  int
	}{
		"good":           {"POST", "", []string{"x-api-key", clientKey}, 200},
		"no key":         {"POST", "", nil, 401},
		"another host":   {"POST", "evil.example", []string{"x-api-key", clientKey}, 421},
		"a foreign page": {"POST", "", []string{"x-api-key", clientKey, "Origin", "https://evil.example"}, 403},
		"connect":        {"CONNECT", "", []string{"x-api-key", clientKey}, 405},
	} {
		before := last()
		req, err := http.NewRequestWithContext(ctx, c.method, s.URL+"/v1/models", strings.NewReader("{}"))
		require.NoError(t, err)
		if c.host != "" {
			req.Host = c.host
		}
		for i := 0; i < len(c.headers); i += 2 {
			req.Header.Set(c.headers[i], c.headers[i+1])
		}
		resp, err := client.RoundTrip(req)
		require.NoError(t, err, name)
		require.Equal(t, "HTTP/2.0", resp.Proto)
		require.Equal(t, c.status, resp.StatusCode, name)
		require.NoError(t, resp.Body.Close())
		if c.status != 200 {
			require.Same(t, before, last(), name)
			continue
		}
		require.Equal(t, "Bearer up", last().Header.Get("Authorization"))
		require.NotContains(t, last().Header, "X-Api-Key")
	}
}
