package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/wire"
)

const key = "key-of-the-test-0123456789"

// provider is one provider's side: an answer with a tool call, unary and
// streamed, and where it serves.
type provider struct {
	codec          wire.Codec
	path, streamed string
	header, value  string
	unary, stream  string
}

func providers() map[string]provider {
	return map[string]provider{
		"chat": {
			codec: wire.OpenAIChat(), path: "/chat/completions", header: "Authorization", value: "Bearer " + key,
			unary: `{"id":"c1","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`,
			stream: "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"}}]}\n\n" +
				"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"}}]}\n\n" +
				"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		},
		"responses": {
			codec: wire.OpenAIResponses(), path: "/responses", header: "Authorization", value: "Bearer " + key,
			unary: `{"id":"r1","object":"response","status":"completed","model":"m-1","output":[{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{\"city\":\"Oslo\"}","status":"completed"}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`,
			stream: "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r1\",\"status\":\"in_progress\",\"output\":[]}}\n\n" +
				"event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"in_progress\",\"content\":[]}}\n\n" +
				"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":2,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"Hel\"}\n\n" +
				"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":3,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"lo\"}\n\n" +
				"event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"sequence_number\":4,\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hello\",\"annotations\":[]}]}}\n\n" +
				"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":5,\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hello\",\"annotations\":[]}]}]}}\n\n",
		},
		"anthropic": {
			codec: wire.Anthropic(), path: "/v1/messages", header: "X-Api-Key", value: key,
			unary: `{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[{"type":"tool_use","id":"call_1","name":"get_weather","input":{"city":"Oslo"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`,
			stream: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m-1\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n" +
				"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
				"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hel\"}}\n\n" +
				"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"lo\"}}\n\n" +
				"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
				"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":5}}\n\n" +
				"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		},
		"gemini": {
			codec: wire.Gemini(), path: "/models/m-1:generateContent", streamed: "/models/m-1:streamGenerateContent", header: "X-Goog-Api-Key", value: key,
			unary: `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"get_weather","args":{"city":"Oslo"}}}]},"finishReason":"STOP"}],"modelVersion":"m-1","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`,
			stream: "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Hel\"}]}}]}\r\n\r\n" +
				"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"lo\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n",
		},
		"ollama": {
			codec: wire.Ollama(), path: "/api/chat", header: "Authorization", value: "Bearer " + key,
			unary: `{"model":"m-1","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Oslo"}}}]},"done":true,"done_reason":"stop","prompt_eval_count":10,"eval_count":5}`,
			stream: `{"model":"m-1","message":{"role":"assistant","content":"Hel"},"done":false}` + "\n" +
				`{"model":"m-1","message":{"role":"assistant","content":"lo"},"done":false}` + "\n" +
				`{"model":"m-1","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n",
		},
	}
}

func question() *middleware.Request {
	return &middleware.Request{
		Model:    "m-1",
		Messages: []middleware.Message{middleware.System("Be brief."), middleware.User("How is the weather in Oslo?")},
		Tools: []middleware.Tool{{
			Name: "get_weather", Description: "Weather of a city",
			Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}},
	}
}

func eachProvider(t *testing.T, test func(t *testing.T, p provider)) {
	for name, p := range providers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections() // of the tests in which the server never ends
		s.Close()
	})
	return s.URL
}

func TestModelAsksAndReads(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, p provider) {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.URL.Path != p.path || r.Header.Get(p.header) != p.value || r.Header.Get("X-Own") != "yes" {
				http.Error(w, fmt.Sprint(err, r.URL.Path, r.Header), http.StatusTeapot)
				return
			}
			got, err := p.codec.DecodeRequest(body)
			if err != nil || !p.codec.Match(r.URL.Path, body) || len(got.Tools) != 1 || len(got.Messages) != 2 {
				http.Error(w, fmt.Sprint(err, string(body)), http.StatusTeapot)
				return
			}
			fmt.Fprint(w, p.unary)
		})
		req := question()
		req.Header = http.Header{"X-Own": {"yes"}}
		resp, err := p.codec.Model(wire.Endpoint{URL: url, Key: key})(t.Context(), req)
		require.NoError(t, err)
		require.Len(t, resp.Message.ToolCalls, 1)
		require.Equal(t, "get_weather", resp.Message.ToolCalls[0].Name)
		require.JSONEq(t, `{"city":"Oslo"}`, resp.Message.ToolCalls[0].Arguments)
		require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
		require.Equal(t, middleware.Usage{InputTokens: 10, OutputTokens: 5}, resp.Usage)
		require.Equal(t, "m-1", resp.Model)
	})
}

func TestModelNamesTheEndpointsModel(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, p provider) {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if !strings.Contains(r.URL.Path+string(body), "m-default") {
				w.WriteHeader(http.StatusTeapot)
			}
			fmt.Fprint(w, p.unary)
		})
		req := question()
		req.Model = ""
		_, err := p.codec.Model(wire.Endpoint{URL: url, Model: "m-default"})(t.Context(), req)
		require.NoError(t, err)
		require.Empty(t, req.Model)
	})
}

// The server goes on only when the sink has seen the first piece: without
// streaming this would not end.
func TestModelStreams(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, p provider) {
		seen := make(chan struct{})
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if p.streamed != "" && r.URL.Path != p.streamed {
				http.Error(w, r.URL.Path, http.StatusTeapot)
				return
			}
			at := strings.Index(p.stream, "lo\"")
			at = strings.LastIndex(p.stream[:at], "\n") + 1
			fmt.Fprint(w, p.stream[:at])
			w.(http.Flusher).Flush()
			select {
			case <-seen:
				fmt.Fprint(w, p.stream[at:])
			case <-r.Context().Done():
			}
		})
		var text strings.Builder
		req := question()
		req.Sink = func(e middleware.Event) error {
			if text.Len() == 0 {
				close(seen)
			}
			text.WriteString(e.Text)
			return nil
		}
		resp, err := p.codec.Model(wire.Endpoint{URL: url})(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, "Hello", text.String())
		require.Equal(t, "Hello", resp.Message.Text())
		require.Equal(t, middleware.FinishStop, resp.FinishReason)
	})
}

func TestModelReturnsTheSinksError(t *testing.T) {
	t.Parallel()
	full := errors.New("nobody listens")
	eachProvider(t, func(t *testing.T, p provider) {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, p.stream) })
		req := question()
		req.Sink = func(middleware.Event) error { return full }
		_, err := p.codec.Model(wire.Endpoint{URL: url})(t.Context(), req)
		require.ErrorIs(t, err, full)
	})
}

func TestModelErrors(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		status int
		body   func(wire.Codec) string
		text   string
	}{
		"overloaded": {529, func(c wire.Codec) string { return string(c.EncodeError(529, "overloaded_error", "Overloaded")) }, "Overloaded"},
		"rate limit": {429, func(c wire.Codec) string { return string(c.EncodeError(429, "rate_limit_error", "Slow down")) }, "Slow down"},
		"HTML":       {502, func(wire.Codec) string { return "<html>secret page</html>" }, "HTML"},
		"nothing":    {503, func(wire.Codec) string { return "" }, "nothing"},
		"redirect":   {307, func(wire.Codec) string { return "" }, "nothing"},
		"its key": {401, func(c wire.Codec) string {
			return string(c.EncodeError(401, "auth", "Incorrect key "+key))
		}, "Incorrect key [key]"},
		"half of its key": {401, func(c wire.Codec) string {
			return string(c.EncodeError(401, "auth", strings.Repeat("a", 289)+" "+key))
		}, "a [key]…"},
	}
	eachProvider(t, func(t *testing.T, p provider) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After", "7")
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(c.status)
					fmt.Fprint(w, c.body(p.codec))
				})
				_, err := p.codec.Model(wire.Endpoint{URL: url, Key: key})(t.Context(), question())
				var m *middleware.ModelError
				require.ErrorAs(t, err, &m)
				require.Equal(t, c.status, m.StatusCode)
				require.Equal(t, 7*time.Second, m.RetryAfter)
				require.ErrorContains(t, err, c.text)
				require.NotContains(t, err.Error(), key[:8])
				require.NotContains(t, err.Error(), "secret")
				require.Equal(t, c.status == 429 || c.status >= 500, retry.Transient(err))
			})
		}
	})
}

func TestModelOnABrokenLine(t *testing.T) {
	t.Parallel()
	half := func(s string) string { return s[:len(s)*2/3] }
	cases := map[string]struct {
		serve func(w http.ResponseWriter, r *http.Request, stream string)
		want  error
	}{
		"a page for an answer": {func(w http.ResponseWriter, _ *http.Request, _ string) { fmt.Fprint(w, "<html>") }, wire.ErrShape},
		"half an answer":       {func(w http.ResponseWriter, _ *http.Request, s string) { fmt.Fprint(w, half(s)) }, io.ErrUnexpectedEOF},
		"a reset": {func(w http.ResponseWriter, _ *http.Request, s string) {
			w.Header().Set("Content-Length", fmt.Sprint(len(s)))
			fmt.Fprint(w, half(s))
		}, wire.ErrIncomplete},
		"silence": {func(w http.ResponseWriter, r *http.Request, s string) {
			fmt.Fprint(w, half(s))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, os.ErrDeadlineExceeded},
		"silence before the answer": {func(_ http.ResponseWriter, r *http.Request, _ string) {
			_, _ = io.Copy(io.Discard, r.Body) // else the server does not see the client go
			<-r.Context().Done()
		}, os.ErrDeadlineExceeded},
	}
	eachProvider(t, func(t *testing.T, p provider) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url := serve(t, func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, p.stream) })
				req := question()
				req.Sink = func(middleware.Event) error { return nil }
				e := wire.Endpoint{URL: url}
				if errors.Is(c.want, os.ErrDeadlineExceeded) {
					e.Silence = 100 * time.Millisecond
				}
				_, err := p.codec.Model(e)(t.Context(), req)
				require.ErrorIs(t, err, c.want)
				require.Equal(t, c.want != wire.ErrShape, retry.Transient(err), "%v", err)
			})
		}
	})
}

func TestModelIsCancelled(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, p provider) {
		ctx, cancel := context.WithCancel(t.Context())
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, p.stream[:len(p.stream)/2])
			w.(http.Flusher).Flush()
			cancel()
			<-r.Context().Done()
		})
		_, err := p.codec.Model(wire.Endpoint{URL: url})(ctx, question())
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestModelKeepsAddressesToItself(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://127.0.0.1:1/?key=" + key, "http://127.0.0.1:1/%zz?key=" + key, "http://me:" + key + "/x@127.0.0.1:1"} {
		_, err := wire.OpenAIChat().Model(wire.Endpoint{URL: url})(t.Context(), question())
		require.Error(t, err)
		require.NotContains(t, err.Error(), key)
	}
}

// A 529 in the middle of a re-ask is retried, and the turn that failed before
// it is still there.
func TestModelInAStack(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, p provider) {
		asked := 0
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			req, err := p.codec.DecodeRequest(body)
			switch asked++; {
			case err != nil:
				w.WriteHeader(http.StatusTeapot)
			case asked == 1:
				fmt.Fprint(w, strings.Replace(p.unary, "city", "town", 1))
			case asked == 2:
				w.WriteHeader(529)
			case len(req.Messages) == 4 && req.Messages[3].Role == middleware.RoleTool:
				fmt.Fprint(w, p.unary)
			}
		})
		wait := retry.Options{MinDelay: time.Millisecond, MaxDelay: time.Millisecond}
		call := middleware.Chain(argsvalidate.New(argsvalidate.Options{}), retry.New(wait))(p.codec.Model(wire.Endpoint{URL: url}))
		resp, err := call(t.Context(), question())
		require.NoError(t, err)
		require.Equal(t, 3, asked)
		require.Equal(t, middleware.Valid, resp.Report.Status)
		require.Equal(t, middleware.Usage{InputTokens: 20, OutputTokens: 10}, resp.Usage)
	})
}

func TestEndpointValidate(t *testing.T) {
	t.Parallel()
	for _, silence := range []time.Duration{0, time.Second, middleware.Unlimited} {
		require.NoError(t, wire.Endpoint{Silence: silence}.Validate())
	}
	bad := wire.Endpoint{Silence: -time.Second}
	require.EqualError(t, bad.Validate(), "wire: Endpoint.Silence: must not be negative, unless it is middleware.Unlimited, got -1s")
	require.PanicsWithError(t, bad.Validate().Error(), func() { wire.Ollama().Model(bad) })
}
