package transport_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

// TestConnectionBreaksBehindTheAnswer: wherever the connection to the provider breaks, a client
// gets a whole stream with its end, or the broken connection. It never gets a stream that ends
// as if nothing were missing.
func TestConnectionBreaksBehindTheAnswer(t *testing.T) {
	t.Parallel()
	streams := map[string]struct {
		speech
		body string
	}{}
	for format, s := range speeches() {
		streams[format] = struct {
			speech
			body string
		}{s, stops(s.stream("Sunny."))}
	}
	listed := gemini()
	listed.path = strings.Replace(listed.path, "?alt=sse", "", 1)
	streams["gemini, a list"] = struct {
		speech
		body string
	}{listed, `[{"candidates":[{"content":{"role":"model","parts":[{"text":"Sun"}]},"index":0}],"modelVersion":"m"}` + ",\r\n" +
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"ny."}]},"finishReason":"STOP","index":0}],"modelVersion":"m"}]`}
	for format, c := range streams {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; n < len(c.body); n++ {
					if !strings.ContainsAny(c.body[n-1:n+1], "\n]") { // in the middle of a line
						continue
					}
					for _, hold := range []bool{false, true} {
						at := fmt.Sprintf("%q, held: %t", c.body[max(0, n-20):n], hold)
						resp, err := transport.New(transport.Options{KeepAlive: transport.Off, Hold: hold}, validate()).
							Hook(c.streamRequest(t), play(played{kind: c.kind, pieces: []string{c.body[:n]}, end: io.ErrUnexpectedEOF}))
						if err != nil {
							continue
						}
						b, err := io.ReadAll(resp.Body)
						require.NoError(t, resp.Body.Close())
						if err != nil {
							continue
						}
						got := c.decode(t, string(b))
						require.Equal(t, "Sunny.", got.Message.Text(), at)
						require.Equal(t, endOf(c.body), endOf(string(b)), at)
					}
				}
			})
		})
	}
}

// endOf returns how a stream ends: its last event, if that is a mark, and its framing.
func endOf(body string) string {
	switch {
	case strings.HasSuffix(body, "data: [DONE]\n\n"):
		return "[DONE]"
	case strings.Contains(body, "message_stop") && strings.HasSuffix(body, "}\n\n"):
		return "message_stop"
	case strings.Contains(body, `"response.completed"`) && strings.HasSuffix(body, "}\n\n"):
		return "completed"
	}
	return body[max(0, len(body)-1):]
}
