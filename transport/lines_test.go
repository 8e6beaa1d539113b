package transport_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/transport"
)

// A call in a stream whose lines not every reader ends in the same places is
// validated, or the client does not get it.
func TestLinesOfAStream(t *testing.T) {
	t.Parallel()
	const (
		request = `{"model":"m","stream":true,"messages":[{"role":"user","content":"Pay."}],"tools":[{"type":"function","function":` +
			`{"name":"pay","parameters":{"type":"object","properties":{"amount":{"type":"integer","maximum":100}}}}}]}`
		hello = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"}}]}` + "\n\n"
		call  = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":-1,"id":"c","type":"function","function":{"name":"pay","arguments":"{\"amount\":99999}"}}]}}]}` + "\n\n"
		end   = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	)
	stop := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for name, body := range map[string]string{
		"index -1":                hello + call + end,
		"index -1 in the first":   call + end,
		"an unknown line":         "foo\n\n" + hello + call + end,
		"a mark":                  "\ufeff" + hello + call + end,
		"CRLF":                    strings.ReplaceAll(hello+call+end, "\n", "\r\n"),
		"CR":                      strings.ReplaceAll(hello+call+end, "\n", "\r"),
		"a comment that CR ends":  hello + ": c\r" + strings.TrimSuffix(call, "\n\n") + "\r\r\n" + stop,
		"a name that CR ends":     hello + "event: x\r\r" + strings.TrimSuffix(call, "\n\n") + "\r\r\n" + stop,
		"CR before the data":      hello + edited(t, call, "data: ", "data: \r") + stop,
		"members in another case": hello + edited(t, call, "tool_calls", "Tool_calls") + stop,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, body)
			}))
			defer server.Close()
			client := http.Client{Transport: transport.RoundTripper(nil,
				argsvalidate.New(argsvalidate.Options{MaxAttempts: 2}))}
			resp, err := client.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(request))
			require.NoError(t, err)
			defer resp.Body.Close()
			got, _ := io.ReadAll(resp.Body)
			require.NotContains(t, string(got), "99999")
		})
	}
}
