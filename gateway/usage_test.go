package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// The client gets the usage of the answer that it gets, because it is the size of the
// context that the client holds. The sum of the model calls is in X-Toolmend-Usage.
func TestUsageOfTheAnswer(t *testing.T) {
	t.Parallel()
	usage := func(input, read, written int) string {
		return fmt.Sprintf(`"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"cache_creation":{"ephemeral_5m_input_tokens":%[3]d,"ephemeral_1h_input_tokens":0},"output_tokens":%d}`, input, read, written, input)
	}
	whole := func(arguments, usage string) string {
		return `{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"Read","input":` + arguments + `}],"stop_reason":"tool_use","stop_sequence":null,` + usage + `}`
	}
	event := func(kind, members string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + members + "}\n\n"
	}
	stream := func(text, arguments, usage string) string {
		blocks, index := "", 0
		if text != "" {
			blocks = event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`) +
				event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"`+text+`"}`) + event("content_block_stop", `"index":0`)
			index = 1
		}
		return event("message_start", `"message":{"id":"r","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,`+usage+`}`) + blocks +
			event("content_block_start", fmt.Sprintf(`"index":%d,"content_block":{"type":"tool_use","id":"c","name":"Read","input":%s}`, index, arguments)) +
			event("content_block_stop", fmt.Sprintf(`"index":%d`, index)) +
			event("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":`+usage[strings.LastIndex(usage, ":")+1:]) + event("message_stop", `"x":1`)
	}
	// the re-ask reads from the cache what the first call wrote to it
	first, second := usage(100, 0, 5000), usage(300, 5000, 0)
	want := middleware.Usage{InputTokens: 5300, Cached: 5000, OutputTokens: 300}
	const good, bad = `{"file_path":"a.txt"}`, `{}`
	for name, c := range map[string]struct {
		answers []string // "" is a refusal with status 503
		want    middleware.Usage
		sum     string
	}{
		"whole":                {[]string{whole(bad, first), whole(good, second)}, want, "input=10400, output=400"},
		"stream, nothing sent": {[]string{stream("", bad, first), stream("", good, second)}, want, "input=10400, output=400"},
		"stream, text sent":    {[]string{stream("One. ", bad, first), stream("Two.", good, second)}, want, "input=10400, output=400"},
		"exhausted": {[]string{whole(bad, first), whole(bad, second), whole(bad, usage(200, 5000, 0))},
			middleware.Usage{InputTokens: 5200, Cached: 5000, OutputTokens: 200}, "input=15600, output=600"},
		"stream, exhausted": {[]string{stream("One. ", bad, first), stream("Two.", bad, second), stream("Three.", bad, usage(200, 5000, 0))},
			middleware.Usage{InputTokens: 5200, Cached: 5000, OutputTokens: 200}, "input=15600, output=600"},
		"the re-ask fails": {[]string{whole(bad, first), "", "", "", ""}, middleware.Usage{InputTokens: 5100, CacheWrite: 5000, OutputTokens: 100}, "input=5100, output=100"},
		"one call":         {[]string{whole(good, first)}, middleware.Usage{InputTokens: 5100, CacheWrite: 5000, OutputTokens: 100}, ""},
		"one live call":    {[]string{stream("One. ", good, first)}, middleware.Usage{InputTokens: 5100, CacheWrite: 5000, OutputTokens: 100}, ""},
		"repaired":         {[]string{whole(`{"file_path":"a.txt","lines":"5"}`, first)}, middleware.Usage{InputTokens: 5100, CacheWrite: 5000, OutputTokens: 100}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				answer := c.answers[min(int(calls.Add(1)), len(c.answers))-1]
				if answer == "" {
					http.Error(w, `{"type":"error","error":{"type":"api_error","message":"no"}}`, http.StatusServiceUnavailable)
					return
				}
				w.Header().Set("Content-Type", map[bool]string{true: "application/json", false: "text/event-stream"}[answer[0] == '{'])
				_, _ = io.WriteString(w, answer)
			}))
			t.Cleanup(up.Close)
			request := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Read a.txt."}],"tools":[{"name":"Read","input_schema":{"type":"object","properties":{"file_path":{"type":"string"},"lines":{"type":"integer"}},"required":["file_path"]}}]}`
			if c.answers[0][0] != '{' {
				request = strings.Replace(request, "{", `{"stream":true,`, 1)
			}
			url := serve(t, gateway.Config{Settings: gateway.Settings{}, Upstreams: []gateway.Upstream{{URL: up.URL}}})
			resp, got := send(t, http.MethodPost, url+"/v1/messages", request)
			require.Equal(t, http.StatusOK, resp.StatusCode, got)
			read, err := wire.Anthropic().DecodeResponse(nil, []byte(got))
			require.NoError(t, err, got)
			require.Equal(t, c.want, read.Usage, got)
			require.Equal(t, c.sum, resp.Header.Get("X-Toolmend-Usage")+resp.Trailer.Get("X-Toolmend-Usage"))
			if last := c.answers[len(c.answers)-1]; name == "whole" || name == "exhausted" {
				require.Equal(t, last, got, "an answer that the client gets unchanged has the bytes of the provider")
			}
		})
	}
}
