package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// TestKeepAliveBeforeAnObject: the headers announce a stream, but one object
// comes, or an error that is one. Behind a keep-alive it is framed as a stream.
func TestKeepAliveBeforeAnObject(t *testing.T) {
	t.Parallel()
	failures := map[string]string{
		"anthropic": `{"type":"error","error":{"type":"overloaded_error","message":"boom"}}`,
		"gemini":    `{"error":{"code":503,"message":"boom","status":"UNAVAILABLE"}}`,
		"ollama":    `{"error":"boom"}`,
	}
	for name, s := range speeches() {
		failure := failures[name]
		if failure == "" {
			failure = `{"error":{"message":"boom","type":"server_error","code":"x"}}`
		}
		late := func(t *testing.T, body string) string {
			resp, err := transport.New(transport.Options{}, validate()).Hook(s.streamRequest(t),
				play(played{kind: s.kind, pieces: []string{body}, pauses: []time.Duration{20 * time.Second}}))
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err, string(got))
			require.NotEqual(t, body, string(got), "without a keep-alive")
			return string(got)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := s.decode(t, late(t, s.whole("two", `{"n":2}`)))
				require.Len(t, got.Message.ToolCalls, 1)
			})
			synctest.Test(t, func(t *testing.T) {
				var refused *middleware.ModelError
				body := late(t, failure)
				_, err := s.codec.DecodeResponse(nil, []byte(body))
				require.ErrorAs(t, err, &refused, body)
				require.Contains(t, body, "boom")
			})
		})
	}
}

// TestKeepAliveOffInWhiteSpace: some servers pad one object with white space
// while they work, to a client that asked for a stream too.
func TestKeepAliveOffInWhiteSpace(t *testing.T) {
	t.Parallel()
	for name, s := range speeches() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body := s.whole("two", `{"n":2}`)
				resp, err := transport.New(transport.Options{}, validate()).Hook(s.streamRequest(t),
					play(played{kind: "application/json", pieces: []string{"\n", body}, pauses: []time.Duration{0, 20 * time.Second}}))
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, resp.StatusCode)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, body, strings.TrimSpace(string(got)))
			})
		})
	}
}
