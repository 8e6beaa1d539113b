package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// speech writes bodies of one real format.
type speech struct {
	codec   wire.Codec
	path    string // of a streamed request, if that is another: behind a space
	request func(stream bool) string
	// whole and stream are an answer with text, if any, and calls of the tool
	// add with these arguments.
	whole, stream func(text string, arguments ...string) string
	kind          string // Content-Type of a stream
}

const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

// namedEvent returns an event of that name, or one without a name.
func namedEvent(name, format string, args ...any) string {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return name + "data: " + fmt.Sprintf(format, args...) + "\n\n"
}

// stops is an answer without calls whose finish reason announces none.
func stops(answer string) string {
	return strings.NewReplacer(`"tool_calls"`, `"stop"`, `"tool_use"`, `"end_turn"`).Replace(answer)
}

func speeches() map[string]speech {
	return map[string]speech{"chat": chat(), "anthropic": anthropic(), "responses": responses(), "gemini": gemini(), "ollama": ollama()}
}

func chat() speech {
	calls := func(index bool, arguments []string) string {
		var all []string
		for i, a := range arguments {
			at := ""
			if index {
				at = fmt.Sprintf(`"index":%d,`, i)
			}
			all = append(all, fmt.Sprintf(`{%s"id":"c%d","type":"function","function":{"name":"add","arguments":%q}}`, at, i, a))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	usage := `"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`
	return speech{codec: wire.OpenAIChat(), path: "/v1/chat/completions", kind: "text/event-stream",
		request: func(stream bool) string {
			return fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"1?"}],"tools":[{"type":"function","function":{"name":"add","parameters":%s}}]}`, stream, schema)
		},
		whole: func(text string, arguments ...string) string {
			all := ""
			if len(arguments) > 0 {
				all = `,"tool_calls":` + calls(false, arguments)
			}
			return fmt.Sprintf(`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q%s},"finish_reason":"tool_calls"}],%s}`, text, all, usage)
		},
		stream: func(text string, arguments ...string) string {
			head := `{"id":"x","object":"chat.completion.chunk","model":"m","choices":`
			s := namedEvent("", `%s[{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":null}]}`, head, text)
			if len(arguments) > 0 {
				s += namedEvent("", `%s[{"index":0,"delta":{"tool_calls":%s},"finish_reason":null}]}`, head, calls(true, arguments))
			}
			return s + namedEvent("", `%s[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, head) +
				namedEvent("", `%s[],%s}`, head, usage) + namedEvent("", "[DONE]")
		}}
}

func anthropic() speech {
	return speech{codec: wire.Anthropic(), path: "/v1/messages", kind: "text/event-stream",
		request: func(stream bool) string {
			return fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%t,"messages":[{"role":"user","content":"1?"}],"tools":[{"name":"add","input_schema":%s}]}`, stream, schema)
		},
		whole: func(text string, arguments ...string) string {
			blocks := fmt.Sprintf(`{"type":"text","text":%q}`, text)
			for i, a := range arguments {
				blocks += fmt.Sprintf(`,{"type":"tool_use","id":"c%d","name":"add","input":%s}`, i, a)
			}
			return `{"id":"x","type":"message","role":"assistant","model":"m","content":[` + blocks + `],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`
		},
		stream: func(text string, arguments ...string) string {
			s := namedEvent("message_start", `{"type":"message_start","message":{"id":"x","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`) +
				namedEvent("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
				namedEvent("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text) +
				namedEvent("content_block_stop", `{"type":"content_block_stop","index":0}`)
			for i, a := range arguments {
				s += namedEvent("content_block_start", `{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"c%d","name":"add","input":{}}}`, i+1, i) +
					namedEvent("content_block_delta", `{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i+1, a) +
					namedEvent("content_block_stop", `{"type":"content_block_stop","index":%d}`, i+1)
			}
			return s + namedEvent("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":10,"output_tokens":5}}`) +
				namedEvent("message_stop", `{"type":"message_stop"}`)
		}}
}

func responses() speech {
	item := func(i int, a, status string) string {
		return fmt.Sprintf(`{"id":"fc%d","type":"function_call","status":%q,"call_id":"c%d","name":"add","arguments":%q}`, i, status, i, a)
	}
	message := func(text string) string {
		return fmt.Sprintf(`{"id":"m1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, text)
	}
	whole := func(text string, arguments ...string) string {
		items := message(text)
		for i, a := range arguments {
			items += "," + item(i, a, "completed")
		}
		return `{"id":"x","object":"response","status":"completed","model":"m","output":[` + items + `],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`
	}
	return speech{codec: wire.OpenAIResponses(), path: "/v1/responses", kind: "text/event-stream",
		request: func(stream bool) string {
			return fmt.Sprintf(`{"model":"m","stream":%t,"store":false,"input":[{"role":"user","content":"1?"}],"tools":[{"type":"function","name":"add","parameters":%s}]}`, stream, schema)
		},
		whole: whole,
		stream: func(text string, arguments ...string) string {
			n := -1
			ev := func(name, format string, args ...any) string {
				n++
				return namedEvent(name, `{"type":%q,"sequence_number":%d,%s}`, name, n, fmt.Sprintf(format, args...))
			}
			s := ev("response.created", `"response":{"id":"x","object":"response","status":"in_progress","model":"m","output":[]}`) +
				ev("response.output_item.added", `"output_index":0,"item":{"id":"m1","type":"message","status":"in_progress","role":"assistant","content":[]}`) +
				ev("response.content_part.added", `"item_id":"m1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`) +
				ev("response.output_text.delta", `"item_id":"m1","output_index":0,"content_index":0,"delta":%q,"logprobs":[]`, text) +
				ev("response.output_text.done", `"item_id":"m1","output_index":0,"content_index":0,"text":%q,"logprobs":[]`, text) +
				ev("response.content_part.done", `"item_id":"m1","output_index":0,"content_index":0,"part":{"type":"output_text","text":%q,"annotations":[]}`, text) +
				ev("response.output_item.done", `"output_index":0,"item":%s`, message(text))
			for i, a := range arguments {
				s += ev("response.output_item.added", `"output_index":%d,"item":%s`, i+1, item(i, "", "in_progress")) +
					ev("response.function_call_arguments.delta", `"item_id":"fc%d","output_index":%d,"delta":%q`, i, i+1, a) +
					ev("response.function_call_arguments.done", `"item_id":"fc%d","output_index":%d,"arguments":%q`, i, i+1, a) +
					ev("response.output_item.done", `"output_index":%d,"item":%s`, i+1, item(i, a, "completed"))
			}
			return s + ev("response.completed", `"response":%s`, whole(text, arguments...))
		}}
}

func gemini() speech {
	usage := `"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15},"modelVersion":"m"`
	parts := func(text string, arguments []string) string {
		all := []string{fmt.Sprintf(`{"text":%q}`, text)}
		for _, a := range arguments {
			all = append(all, fmt.Sprintf(`{"functionCall":{"name":"add","args":%s}}`, a))
		}
		return strings.Join(all, ",")
	}
	return speech{codec: wire.Gemini(), path: "/v1beta/models/m:generateContent /v1beta/models/m:streamGenerateContent?alt=sse", kind: "text/event-stream",
		request: func(bool) string {
			return `{"contents":[{"role":"user","parts":[{"text":"1?"}]}],"tools":[{"functionDeclarations":[{"name":"add","parametersJsonSchema":` + schema + `}]}]}`
		},
		whole: func(text string, arguments ...string) string {
			return `{"candidates":[{"content":{"role":"model","parts":[` + parts(text, arguments) + `]},"finishReason":"STOP","index":0}],` + usage + `}`
		},
		stream: func(text string, arguments ...string) string {
			s := namedEvent("", `{"candidates":[{"content":{"role":"model","parts":[%s]},"index":0}],"modelVersion":"m"}`, parts(text, nil))
			rest := `{"text":""}`
			if len(arguments) > 0 {
				rest = strings.TrimPrefix(parts("", arguments), `{"text":""},`)
			}
			return s + namedEvent("", `{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":"STOP","index":0}],%s}`, rest, usage)
		}}
}

func ollama() speech {
	line := func(done bool, text string, arguments ...string) string {
		calls := ""
		for i, a := range arguments {
			calls += fmt.Sprintf(`,{"function":{"index":%d,"name":"add","arguments":%s}}`, i, a)
		}
		if calls != "" {
			calls = `,"tool_calls":[` + calls[1:] + `]`
		}
		end := `"done":false}`
		if done {
			end = `"done":true,"done_reason":"stop","prompt_eval_count":10,"eval_count":5}`
		}
		return fmt.Sprintf(`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":%q%s},%s`, text, calls, end)
	}
	return speech{codec: wire.Ollama(), path: "/api/chat", kind: "application/x-ndjson",
		request: func(stream bool) string {
			return fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"1?"}],"tools":[{"type":"function","function":{"name":"add","parameters":%s}}]}`, stream, schema)
		},
		whole: func(text string, arguments ...string) string { return line(true, text, arguments...) },
		stream: func(text string, arguments ...string) string {
			return line(false, text) + "\n" + line(false, "", arguments...) + "\n" + line(true, "") + "\n"
		}}
}

// talk sends a request and reads the answer; got is what the codec makes of it.
func (s speech) talk(t *testing.T, tr *transport.Transport, stream bool, answers ...string) (got *middleware.Response, body string) {
	path, streamed, _ := strings.Cut(s.path, " ")
	kind := "application/json"
	if stream {
		kind = s.kind
		if streamed != "" {
			path = streamed
		}
	}
	var script []http.HandlerFunc
	for _, a := range answers {
		script = append(script, answer(http.StatusOK, a, "Content-Type", kind))
	}
	u := serve(t, script...)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+path, strings.NewReader(s.request(stream)))
	require.NoError(t, err)
	resp, err := hooked(t, tr)(req)
	require.NoError(t, err)
	require.Equal(t, kind, resp.Header.Get("Content-Type"))
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err, string(b))
	require.NoError(t, resp.Body.Close())
	asked, err := s.codec.DecodeRequest([]byte(s.request(stream)))
	require.NoError(t, err)
	got, err = s.codec.DecodeResponse(asked, b)
	require.NoError(t, err, string(b))
	for _, sent := range u.body[min(1, len(u.body)):] {
		again, err := s.codec.DecodeRequest(sent)
		require.NoError(t, err)
		require.Equal(t, middleware.RoleTool, again.Messages[len(again.Messages)-1].Role)
		calls, replies := 0, 0
		for _, m := range again.Messages {
			calls += len(m.ToolCalls)
			if m.Role == middleware.RoleTool {
				replies++
			}
		}
		require.Equal(t, calls, replies, "each call in the history has its reply")
	}
	return got, string(b)
}

// requireSame requires that a client reads in got the answer that it reads in sent.
func (s speech) requireSame(t *testing.T, sent, got string) {
	t.Helper()
	if sent == got {
		return
	}
	want, have := s.decode(t, sent), s.decode(t, got)
	require.Equal(t, bare(want.Message), bare(have.Message), got)
	require.Equal(t, want.Usage, have.Usage, got)
	require.Equal(t, want.FinishReason, have.FinishReason, got)
}

func arguments(resp *middleware.Response) []string {
	var all []string
	for _, c := range resp.Message.ToolCalls {
		all = append(all, c.Arguments)
	}
	return all
}

func TestWires(t *testing.T) {
	t.Parallel()
	drop := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.DropInvalid})
	for name, s := range speeches() {
		for _, stream := range []bool{false, true} {
			form := s.whole
			if stream {
				form = s.stream
			}
			t.Run(fmt.Sprintf("%s/stream=%t", name, stream), func(t *testing.T) {
				t.Parallel()
				t.Run("unchanged", func(t *testing.T) {
					sent := form("hi", `{"n":1}`)
					_, body := s.talk(t, transport.New(transport.Options{}, validate()), stream, sent)
					require.Equal(t, sent, body)
				})
				t.Run("mended", func(t *testing.T) {
					got, _ := s.talk(t, transport.New(transport.Options{}, validate()), stream, form("hi", `{"n":"1"}`))
					require.Equal(t, []string{`{"n":1}`}, arguments(got))
					require.Equal(t, "hi", text(got))
				})
				t.Run("dropped", func(t *testing.T) {
					got, _ := s.talk(t, transport.New(transport.Options{}, drop), stream, form("hi", `{}`, `{"n":2}`))
					require.Equal(t, []string{`{"n":2}`}, arguments(got))
					require.Equal(t, "hi", text(got))
				})
				t.Run("too many calls", func(t *testing.T) {
					limited := argsvalidate.New(argsvalidate.Options{Limits: argsvalidate.Limits{Calls: 2}, OnExhausted: middleware.DropInvalid})
					got, _ := s.talk(t, transport.New(transport.Options{}, limited), stream, form("hi", `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`))
					require.Equal(t, []string{`{"n":1}`, `{"n":2}`}, arguments(got), "they end the step: a re-ask cannot mend them")
					require.Equal(t, "hi", text(got))
				})
				for _, hold := range []bool{false, true} {
					t.Run(fmt.Sprintf("asked again, hold=%t", hold), func(t *testing.T) {
						tr := transport.New(transport.Options{Hold: hold}, validate())
						got, body := s.talk(t, tr, stream, form("one ", `{}`), form("two", `{"n":2}`))
						require.Equal(t, []string{`{"n":2}`}, arguments(got), body)
						require.EqualValues(t, 10, got.Usage.InputTokens, "the usage of the answer: "+body)
						require.EqualValues(t, 5, got.Usage.OutputTokens, body)
						if stream && !hold {
							require.Equal(t, "one two", text(got), body)
						} else {
							require.Equal(t, "two", text(got), body)
						}
					})
				}
			})
		}
	}
}

// TestRaisedInStreams: the error of the chain is an event of the format, behind
// the text that was shown.
func TestRaisedInStreams(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"chat":      "data: {\"error\":{",
		"anthropic": "event: error\ndata: {\"type\":\"error\",\"error\":{",
		"responses": "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":",
		"gemini":    "data: {\"error\":{",
		"ollama":    "{\"error\":",
	}
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1})
	for name, s := range speeches() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, streamed, _ := strings.Cut(s.path, " ")
			if streamed != "" {
				path = streamed
			}
			sent := s.stream("one ", `{}`)
			u := serve(t, answer(http.StatusOK, sent, "Content-Type", s.kind))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+path, strings.NewReader(s.request(true)))
			require.NoError(t, err)
			ctx, watched := transport.Watch(t.Context())
			resp, err := hooked(t, transport.New(transport.Options{}, raise))(req.WithContext(ctx))
			require.NoError(t, err)
			b, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.ErrorIs(t, watched.Err(), argsvalidate.ErrExhausted)
			shown, event, ok := strings.Cut(string(b), want[name])
			require.True(t, ok, string(b))
			require.True(t, strings.HasPrefix(sent, shown))
			require.Contains(t, shown, "one ")
			require.NotContains(t, event, "add(")
			asked, err := s.codec.DecodeRequest([]byte(s.request(true)))
			require.NoError(t, err)
			_, err = s.codec.DecodeResponse(asked, b)
			var refusal *middleware.ModelError
			require.ErrorAs(t, err, &refusal, "the format itself reads it as an error")
		})
	}
}
