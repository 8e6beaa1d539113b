package main

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, ""))
	require.Equal(t, `get_forecast {"the_city": "Bergen", "days": 5}
get_forecast {"city": "Bergen", "days": "5", "unit": null}
get_forecast {"city": "Bergen", "days": "1", "unit": "C"}
`, out.String())
}

// In every format, streamed or not, a stack gets a valid call out of it at last, and
// the answer after a result.
func TestFormats(t *testing.T) {
	t.Parallel()
	tool := middleware.Tool{Name: "add", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"integer"},"note":{"type":"string"}},
		"required":["x"],"additionalProperties":false}`)}
	for _, codec := range wire.Codecs() {
		for _, sink := range []middleware.Sink{nil, func(middleware.Event) error { return nil }} {
			t.Run(codec.Dialect(), func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(newHandler())
				defer server.Close()
				url := server.URL
				switch codec.Dialect() {
				case "openai-chat", "openai-responses", "anthropic":
					url += "/v1"
				}
				call := argsvalidate.New(argsvalidate.Options{MaxAttempts: 10})(codec.Model(wire.Endpoint{URL: url, Model: "faulty"}))
				req := &middleware.Request{Messages: []middleware.Message{middleware.User("Add.")}, Tools: []middleware.Tool{tool}, Sink: sink}
				resp, err := call(t.Context(), req)
				require.NoError(t, err)
				require.Equal(t, middleware.Valid, resp.Report.Status)
				c := resp.Message.ToolCalls[0]
				resp, err = call(t.Context(), req.With(resp.Message, middleware.ToolReply(c, "3")))
				require.NoError(t, err)
				require.Equal(t, "Done.", resp.Message.Text())
			})
		}
	}
}
