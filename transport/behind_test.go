package transport_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/transport"
)

// TestProvidersErrorBehindKeepAlives: in a Responses stream the error that the
// provider sent belongs to the response that the client knows, and has the next
// number.
func TestProvidersErrorBehindKeepAlives(t *testing.T) {
	t.Parallel()
	s := responses()
	failed := namedEvent("response.failed", `{"type":"response.failed","sequence_number":1,"response":{"id":"x","object":"response","status":"failed",`+
		`"model":"m","output":[],"error":{"code":"server_error","message":"out of order"}}}`)
	opened := eventsOf(s.stream("", `{}`))[:1]
	slow := played{kind: s.kind, pieces: append(opened, failed), pauses: []time.Duration{0, 20 * time.Second}}
	invalid := played{kind: s.kind, pieces: eventsOf(s.stream("", `{}`)), pauses: []time.Duration{0, 9 * time.Second, 0}}
	other := played{kind: s.kind, pieces: []string{strings.ReplaceAll(opened[0]+failed, `"id":"x"`, `"id":"y"`)}}
	for name, c := range map[string]struct {
		tools   bool
		answers []played
	}{
		"of the answer":                {true, []played{slow}},
		"of the answer, without tools": {false, []played{slow}},
		"of a later answer":            {true, []played{invalid, other}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				req := s.streamRequest(t)
				if !c.tools {
					var err error
					req, err = http.NewRequestWithContext(t.Context(), http.MethodPost, req.URL.String(), strings.NewReader(`{"model":"m","stream":true,"input":"1?"}`))
					require.NoError(t, err)
				}
				resp, err := transport.New(transport.Options{}, validate()).Hook(req, play(c.answers...))
				require.NoError(t, err)
				body := read(t, resp)
				require.Contains(t, body, "out of order")
				n := 0
				for line := range strings.SplitSeq(body, "\n") {
					data, ok := strings.CutPrefix(line, "data: ")
					if !ok {
						continue
					}
					var event struct {
						Number   int `json:"sequence_number"`
						Response struct{ ID string }
					}
					require.NoError(t, json.Unmarshal([]byte(data), &event))
					require.Equal(t, n, event.Number, body)
					require.Equal(t, "x", event.Response.ID, body)
					n++
				}
				require.Greater(t, n, 2, body)
			})
		})
	}
}

// TestMarkBehindKeepAlive: a byte order mark is one at the beginning of the
// client's body only.
func TestMarkBehindKeepAlive(t *testing.T) {
	t.Parallel()
	const mark = "\ufeff"
	for name, s := range speeches() {
		for _, options := range []transport.Options{{}, {Hold: true}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					sent := played{kind: s.kind, pieces: eventsOf(mark + s.stream("two", `{"n":2}`)), pauses: []time.Duration{20 * time.Second, 0}}
					resp, err := transport.New(options, validate()).Hook(s.streamRequest(t), play(sent))
					require.NoError(t, err)
					body := read(t, resp)
					require.NotContains(t, strings.TrimPrefix(body, mark), mark)
					require.Len(t, s.decode(t, body).Message.ToolCalls, 1)
				})
			})
		}
	}
}
