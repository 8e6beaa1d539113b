package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/transport"
)

// A text with a call that rescue was not sure of is marked invalid for the client,
// or is an error, also after the step has re-asked for another call.
func TestUncertainCallsAreMarked(t *testing.T) {
	t.Parallel()
	const text = `{"role":"assistant","content":"<tool_call>{\"name\":\"pay\",\"arguments\":{\"to\":"}`
	const call = `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"pay","arguments":"{}"}}]}`
	for name, first := range map[string]string{"at once": text, "after a re-ask": call} {
		for policy, want := range map[middleware.OnExhausted]int{middleware.Pass: http.StatusOK, middleware.Raise: http.StatusBadRequest} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n := 0
				server := roundTrip(func(req *http.Request) (*http.Response, error) {
					message := text
					if n++; n == 1 {
						message = first
					}
					body := `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]}`
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}, nil
				})
				stack := middleware.Chain(argsvalidate.New(argsvalidate.Options{OnExhausted: policy}), rescue.New(rescue.Options{}))
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://upstream/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"go"}],
					"tools":[{"type":"function","function":{"name":"pay","parameters":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}}]}`))
				require.NoError(t, err)
				req.Header.Set("Content-Type", "application/json")
				resp, err := transport.RoundTripper(server, stack).RoundTrip(req)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, want, resp.StatusCode)
				if want == http.StatusOK {
					require.Equal(t, "invalid", resp.Header.Get("X-Toolmend-Status"))
				}
			})
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
