package gateway_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
)

// claudeRequest is a request as Claude Code sends it, with members that no
// version of this module has heard of, and odd white space.
const claudeRequest = `{ "model":"claude-x",  "max_tokens":32000,"stream":true,"thinking":{"type":"adaptive"},"context_management":{"edits":[{"type":"clear_thinking_20251015"}]},` +
	`"system":[{"type":"text","text":"You are Claude Code.","cache_control":{"type":"ephemeral","ttl":"1h"}}],"metadata":{"user_id":"u"},"output_config":{"effort":"high"},"unheard":1.0e0,` +
	`"messages":[{"role":"user","content":[{"type":"text","text":"Read a.txt.","cache_control":{"type":"ephemeral"}}]}],` +
	`"tools":[{"name":"Read","description":"Reads a file.","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"],"additionalProperties":false},"defer_loading":false,"eager_input_streaming":true}]}`

const (
	claudeText = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-x\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":7,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"I will read it.\"}}\n\n"
	claudeCall = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"Read\",\"input\":{}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"file_path\\\":\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\" \\\"a.txt\\\"}\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":21},\"unheard\":{}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// TestClaudeCodeContract is the list of what Claude Code needs of a gateway.
// Source: code.claude.com/docs/en/llm-gateway-protocol, and what its users
// reported about other gateways.
func TestClaudeCodeContract(t *testing.T) {
	t.Parallel()
	type call struct {
		method, uri, body string
		header            http.Header
	}
	var got call
	var play http.HandlerFunc
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = call{r.Method, r.RequestURI, string(body), r.Header.Clone()}
		play(w, r)
	}))
	t.Cleanup(s.Close)
	url := serve(t, gateway.Config{Upstreams: []gateway.Upstream{{URL: s.URL, Prefix: "/anthropic"}, {Name: "root", URL: s.URL, Default: true}}})
	answers := func(status int, kind, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	own := []string{
		"Authorization", "Bearer sk-ant-oat01-x", "X-Api-Key", "sk-ant-api03-x", "Anthropic-Version", "2023-06-01",
		"Anthropic-Beta", "claude-code-20250219,interleaved-thinking-2025-05-14,unheard-2031-01-01", "Anthropic-Dangerous-Direct-Browser-Access", "true",
		"X-App", "cli", "User-Agent", "claude-cli/2.1.197 (external, sdk-cli)", "X-Stainless-Retry-Count", "0", "X-Stainless-Timeout", "600", "X-Claude-Code-Session-Id", "s-1",
		"Accept", "application/json", "Content-Type", "application/json",
	}
	// forwarded checks that the upstream got the request as the client sent it.
	forwarded := func(t *testing.T, method, uri, body string) {
		require.Equal(t, method, got.method)
		require.Equal(t, uri, got.uri)
		require.Equal(t, body, got.body, "byte for byte")
		for i := 0; i < len(own); i += 2 {
			require.Equal(t, []string{own[i+1]}, got.header[http.CanonicalHeaderKey(own[i])], own[i])
			got.header.Del(own[i])
		}
		got.header.Del("Content-Length")
		require.Empty(t, got.header, "nothing is added")
	}
	for name, c := range map[string]struct{ method, uri, body, answer string }{
		"messages":                        {"POST", "/v1/messages?beta=true", strings.Replace(claudeRequest, `"stream":true`, `"stream":false`, 1), `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},"unheard":null}`},
		"token counts":                    {"POST", "/v1/messages/count_tokens?beta=true", claudeRequest, `{"input_tokens": 2095}`},
		"model discovery":                 {"GET", "/v1/models?limit=1000", "", `{"data":[{"id":"claude-x","type":"model"}],"has_more":false}`},
		"the warm-up":                     {"HEAD", "/api/hello", "", ""},
		"the first request":               {"HEAD", "/", "", ""},
		"the machine-readable contract":   {"GET", "/protocol", "", `{"v":1}`},
		"the classifier of the auto mode": {"POST", "/v1/messages", `{"model":"claude-h","max_tokens":64,"system":"Classify.","messages":[{"role":"user","content":"rm -rf /"}],"stop_sequences":["</block>"]}`, `{"id":"msg_2","type":"message","role":"assistant","model":"claude-h","content":[{"type":"text","text":"<block>yes"}],"stop_reason":"stop_sequence","stop_sequence":"</block>","usage":{"input_tokens":1,"output_tokens":1}}`},
	} {
		for _, base := range []string{"", "/anthropic"} {
			t.Run(name+base, func(t *testing.T) {
				play = answers(200, "application/json; charset=utf-8", c.answer, "Request-Id", "req_1", "Anthropic-Ratelimit-Requests-Remaining", "49", "Anthropic-Organization-Id", "o")
				resp, body := send(t, c.method, url+base+c.uri, c.body, own...)
				forwarded(t, c.method, c.uri, c.body)
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, c.answer, body)
				require.Equal(t, "application/json; charset=utf-8", resp.Header.Get("Content-Type"))
				require.Equal(t, "req_1", resp.Header.Get("Request-Id"))
				require.Equal(t, "49", resp.Header.Get("Anthropic-Ratelimit-Requests-Remaining"))
				require.Equal(t, "o", resp.Header.Get("Anthropic-Organization-Id"))
			})
		}
	}

	for status, body := range map[int]string{
		400: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 200001 tokens > 200000 maximum"},"request_id":"req_1"}`,
		401: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`,
		413: `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`,
		429: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit."}}`,
		529: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) { // the client decides whether to repeat it
			play = answers(status, "application/json", body, "Retry-After", "7", "X-Should-Retry", "true", "Request-Id", "req_1", "Anthropic-Ratelimit-Unified-Status", "rejected")
			resp, text := send(t, "POST", url+"/v1/messages?beta=true", claudeRequest, own...)
			forwarded(t, "POST", "/v1/messages?beta=true", claudeRequest)
			require.Equal(t, status, resp.StatusCode)
			require.Equal(t, body, text)
			for k, v := range map[string]string{"Retry-After": "7", "X-Should-Retry": "true", "Request-Id": "req_1", "Anthropic-Ratelimit-Unified-Status": "rejected"} {
				require.Equal(t, v, resp.Header.Get(k))
			}
		})
	}

	t.Run("a stream", func(t *testing.T) { // text flows while the call is still to come
		shown := make(chan struct{})
		play = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			_, _ = io.WriteString(w, claudeText)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-shown:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, claudeCall)
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/messages?beta=true", strings.NewReader(claudeRequest))
		require.NoError(t, err)
		for i := 0; i < len(own); i += 2 {
			req.Header.Set(own[i], own[i+1])
		}
		client := &http.Transport{DisableCompression: true}
		defer client.CloseIdleConnections()
		resp, err := client.RoundTrip(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		first := make([]byte, len(claudeText))
		_, err = io.ReadFull(in, first)
		require.NoError(t, err)
		require.Equal(t, claudeText, string(first))
		close(shown)
		rest, err := io.ReadAll(in)
		require.NoError(t, err)
		require.Equal(t, strings.NewReplacer( // the call comes in one piece, and the end has all figures
			"{\\\"file_path\\\":\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\" ", "{\\\"file_path\\\": ",
			`{"output_tokens":21}`, `{"input_tokens":9,"cache_read_input_tokens":7,"output_tokens":21}`,
		).Replace(claudeCall), string(rest))
		forwarded(t, "POST", "/v1/messages?beta=true", claudeRequest)
		require.Equal(t, "text/event-stream; charset=utf-8", resp.Header.Get("Content-Type"))
		require.Equal(t, "valid", resp.Trailer.Get("X-Toolmend-Status"))
	})
}

// TestEagerStreaming: with eager_input_streaming the provider streams arguments that it has not
// validated. The client gets none that are not valid, whatever the pieces are, and the request keeps
// the flag and the header of older models.
func TestEagerStreaming(t *testing.T) {
	t.Parallel()
	const beta = "fine-grained-tool-streaming-2025-05-14"
	call := func(partial string) string { // the second delta ends the arguments
		return claudeText + strings.Replace(claudeCall, ` \"a.txt\"}`, partial, 1)
	}
	for name, c := range map[string]struct {
		first    string
		requests int
	}{
		"whole":                       {` \"a.txt\"}`, 1},
		"cut off":                     {` \"a.t`, 2},
		"a wrong type":                {` [1]}`, 2},
		"a member too many":           {` \"a.txt\",\"mode\":1}`, 2},
		"a quote that is not escaped": {` \"a\".txt\"}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = append(got, r.Header.Get("Anthropic-Beta")+" "+string(body))
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, call([]string{c.first, ` \"a.txt\"}`}[len(got)-1]))
			}))
			t.Cleanup(s.Close)
			url := serve(t, gateway.Config{Settings: gateway.Settings{Attempts: 2, OnExhausted: middleware.Raise}, Upstreams: []gateway.Upstream{{URL: s.URL}}})
			resp, body := send(t, http.MethodPost, url+"/v1/messages", claudeRequest, "Content-Type", "application/json", "Anthropic-Beta", beta)
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, 1, strings.Count(body, "input_json_delta"), "the arguments come in one piece")
			require.Contains(t, body, `{\"file_path\": \"a.txt\"}`)
			require.Equal(t, "valid", resp.Trailer.Get("X-Toolmend-Status"))
			require.Len(t, got, c.requests)
			for _, sent := range got {
				require.True(t, strings.HasPrefix(sent, beta+" "))
				require.Contains(t, sent, `"eager_input_streaming":true`)
			}
		})
	}
}
