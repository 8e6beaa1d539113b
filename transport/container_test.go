package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/transport"
)

// TestContainerOfAShownPart: a client that got the blocks of code that ran, in a stream that was
// re-asked, has to learn the container. Otherwise its next request cannot name it.
func TestContainerOfAShownPart(t *testing.T) {
	t.Parallel()
	event := func(kind, members string) string {
		return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, members)
	}
	answer := func(ran bool, arguments, container string) string {
		s, at := event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}`), 0
		if ran {
			s += event("content_block_start", `,"index":0,"content_block":{"type":"server_tool_use","id":"srv","name":"bash_code_execution","input":{"command":"ls"}}`) +
				event("content_block_stop", `,"index":0`) +
				event("content_block_start", `,"index":1,"content_block":{"type":"bash_code_execution_tool_result","tool_use_id":"srv","content":{"type":"bash_code_execution_result","stdout":"a","stderr":"","return_code":0,"content":[]}}`) +
				event("content_block_stop", `,"index":1`)
			at = 2
		}
		return s + event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":{"type":"tool_use","id":"t","name":"add","input":{}}`, at)) +
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":"input_json_delta","partial_json":%q}`, at, arguments)) +
			event("content_block_stop", fmt.Sprintf(`,"index":%d`, at)) +
			event("message_delta", `,"delta":{"stop_reason":"tool_use","stop_sequence":null`+container+`},"usage":{"output_tokens":5}`) +
			event("message_stop", "")
	}
	const first, second = `,"container":{"id":"ctr_1","expires_at":"x"}`, `,"container":{"id":"ctr_2","expires_at":"x"}`
	for name, c := range map[string]struct {
		ran       bool
		accepted  string // the container of the accepted answer
		container []string
	}{
		"the accepted answer names none": {true, "", []string{"ctr_1"}},
		"it names null":                  {true, `,"container":null`, []string{"ctr_1"}},
		"it names its own":               {true, second, []string{"ctr_2"}},
		"nothing was shown":              {false, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			next := func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				text := answer(c.ran, `{}`, first)
				if asked++; asked > 1 {
					require.Contains(t, string(body), `"container":"ctr_1"`)
					text = answer(false, `{"n":1}`, c.accepted)
				}
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(text))}, nil
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/v1/messages", strings.NewReader(
				`{"model":"c","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"add","input_schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}`))
			require.NoError(t, err)
			resp, err := transport.New(transport.Options{}, argsvalidate.New(argsvalidate.Options{})).Hook(req, next)
			require.NoError(t, err)
			got := read(t, resp)
			require.Equal(t, 2, asked)
			require.Contains(t, got, `{\"n\":1}`)
			require.LessOrEqual(t, strings.Count(got, `"container"`), 1, got)
			for _, id := range []string{"ctr_1", "ctr_2"} {
				want := 0
				if len(c.container) > 0 && c.container[0] == id {
					want = 1
				}
				require.Equal(t, want, strings.Count(got, id), got)
			}
		})
	}
}
