package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// ends returns, for each format, answers with that text and a member for the end, whole and
// streamed.
var ends = map[string]struct {
	codec         wire.Codec
	whole, stream func(text, word string) string
}{
	"chat": {wire.OpenAIChat(),
		func(text, word string) string {
			return fmt.Sprintf(`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":%q}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, text, word)
		},
		func(text, word string) string {
			return fmt.Sprintf("data: "+`{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":%q}}]}`+"\n\ndata: "+
				`{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":%q}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`+"\n\ndata: [DONE]\n\n", text, word)
		}},
	"anthropic": {wire.Anthropic(),
		func(text, word string) string {
			return fmt.Sprintf(`{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%q}],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`, text, word)
		},
		func(text, word string) string {
			return fmt.Sprintf(`data: {"type":"message_start","message":{"id":"x","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}`+"\n\n"+
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":%q}}`+"\n\n"+`data: {"type":"content_block_stop","index":0}`+"\n\n"+
				`data: {"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":5}}`+"\n\n"+`data: {"type":"message_stop"}`+"\n\n", text, word)
		}},
	"responses": {wire.OpenAIResponses(), responsesEnd,
		func(text, word string) string {
			return fmt.Sprintf(`data: {"type":"response.incomplete","sequence_number":0,"response":%s}`+"\n\n", responsesEnd(text, word))
		}},
	"gemini": {wire.Gemini(), geminiEnd,
		func(text, word string) string { return "data: " + geminiEnd(text, word) + "\n\n" }},
	"ollama": {wire.Ollama(), ollamaEnd,
		func(text, word string) string {
			return fmt.Sprintf(`{"model":"m","message":{"role":"assistant","content":%q},"done":false}`+"\n", text) + ollamaEnd("", word) + "\n"
		}},
}

func responsesEnd(text, word string) string {
	return fmt.Sprintf(`{"id":"x","object":"response","status":"incomplete","incomplete_details":{"reason":%q},"model":"m","output":[{"id":"m1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`, word, text)
}

func geminiEnd(text, word string) string {
	return fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"text":%q}]},"finishReason":%q,"index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15},"modelVersion":"m"}`, text, word)
}

func ollamaEnd(text, word string) string {
	return fmt.Sprintf(`{"model":"m","message":{"role":"assistant","content":%q},"done":true,"done_reason":%q,"prompt_eval_count":10,"eval_count":5}`, text, word)
}

// offering is a request with a tool.
var offering = &middleware.Request{Tools: []middleware.Tool{{Name: "weather"}}}

// TestUnreadCallOfOneChoice: an answer with further choices is not asked again, and the unread call does not make it an error.
func TestUnreadCallOfOneChoice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		codec wire.Codec
		body  string
	}{
		"chat": {wire.OpenAIChat(), `{"choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"malformed_function_call"},` +
			`{"index":1,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`},
		"gemini": {wire.Gemini(), `{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"MALFORMED_FUNCTION_CALL","index":0},` +
			`{"content":{"role":"model","parts":[{"text":"Hello"}]},"finishReason":"STOP","index":1}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := c.codec.DecodeResponse(offering, []byte(c.body))
			require.NoError(t, err)
			require.Equal(t, middleware.Invalid, resp.Report.Status)
			require.Equal(t, "Hello", resp.Choices[0].Text())
		})
	}
}

// TestUnreadCall: a finish word for a call that the provider could not read is an error in each
// format, and the answer comes with it.
func TestUnreadCall(t *testing.T) {
	t.Parallel()
	for name, f := range ends {
		for form, write := range map[string]func(text, word string) string{"whole": f.whole, "stream": f.stream} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				for _, word := range []string{"MALFORMED_FUNCTION_CALL", "malformed_function_call", "function_call_filter: MALFORMED_FUNCTION_CALL", "FinishReason.MALFORMED_FUNCTION_CALL",
					"UNEXPECTED_TOOL_CALL", "unexpected_tool_call", "TOO_MANY_TOOL_CALLS", "malformed_tool_use"} {
					for _, text := range []string{"", "Let me see."} {
						body := write(text, word)
						for _, req := range []*middleware.Request{offering, nil} {
							_, err := f.codec.DecodeResponse(req, []byte(body))
							var e *middleware.ModelError
							require.ErrorAs(t, err, &e, body)
							require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
							require.Equal(t, word, e.Code)
							require.Equal(t, text, e.Output)
							require.Equal(t, middleware.Invalid, e.Response.Report.Status)
							require.Equal(t, text, e.Response.Message.Text())
							report := middleware.ReportOf(nil, err)
							require.Equal(t, middleware.Usage{InputTokens: 10, OutputTokens: 5}, report.Usage())
							require.Equal(t, middleware.FinishReason(word), report.Attempts[0].FinishReason)

							// the answer is written as the provider sent it, also from storage
							for _, resp := range []*middleware.Response{e.Response, stored(t, e.Response)} {
								out, err := f.codec.EncodeResponse(resp)
								require.NoError(t, err)
								_, err = f.codec.DecodeResponse(req, out)
								var again *middleware.ModelError
								require.ErrorAs(t, err, &again)
								require.Equal(t, middleware.FinishReason(word), again.Response.FinishReason, string(out))
								require.Equal(t, text, again.Response.Message.Text())
								require.Equal(t, resp.Usage, again.Response.Usage)
							}
						}
					}
				}
				for _, word := range []string{"MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "malformed_model_output", "insufficient_system_resource", "error", "OTHER"} {
					resp, err := f.codec.DecodeResponse(offering, []byte(write("a", word)))
					require.NoError(t, err, word)
					require.Equal(t, middleware.FinishReason(word), resp.FinishReason, "an unknown word passes")
					resp.Message.Parts[0].Text = "b"
					out, err := f.codec.EncodeResponse(resp)
					require.NoError(t, err)
					require.Contains(t, string(out), `"`+word+`"`, "and is kept in a written answer")
				}
			})
		}
	}
}

// stored returns resp after storage as JSON.
func stored(t *testing.T, resp *middleware.Response) *middleware.Response {
	raw, err := json.Marshal(resp)
	require.NoError(t, err)
	again := &middleware.Response{}
	require.NoError(t, json.Unmarshal(raw, again))
	return again
}

// TestRoutersOfUnreadCalls: the finish reason of a router may be any, beside the one of its
// provider.
func TestRoutersOfUnreadCalls(t *testing.T) {
	t.Parallel()
	const native = `"native_finish_reason":"MALFORMED_FUNCTION_CALL"`
	chat := ends["chat"]
	for _, word := range []string{"error", "stop", "tool_calls"} {
		for name, member := range map[string]string{"openrouter": native, "litellm": `"provider_specific_fields":{` + native + `}`} {
			for form, body := range map[string]string{"whole": chat.whole("", word), "stream": chat.stream("", word)} {
				t.Run(name+", "+word+", "+form, func(t *testing.T) {
					t.Parallel()
					body := strings.Replace(body, `"finish_reason":"`, member+`,"finish_reason":"`, 1)
					_, err := wire.OpenAIChat().DecodeResponse(offering, []byte(body))
					require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
					var e *middleware.ModelError
					require.ErrorAs(t, err, &e)
					require.Equal(t, "MALFORMED_FUNCTION_CALL", e.Code)
					e.Response.Usage.InputTokens = 20 // of several attempts
					out, err := wire.OpenAIChat().EncodeResponse(e.Response)
					require.NoError(t, err)
					require.Contains(t, string(out), member, "the client sees both words")
					require.Contains(t, string(out), `"finish_reason":"`+word+`"`)
				})
			}
		}
	}
	for name, body := range map[string]string{
		"in a choice": `{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"error",` + native + `,"error":{"code":502,"message":"Upstream error"}}]}`,
		"as its code": `{"error":{"code":"MALFORMED_FUNCTION_CALL","message":"bad"}}`,
	} {
		_, err := wire.OpenAIChat().DecodeResponse(offering, []byte(body))
		require.ErrorIs(t, err, middleware.ErrInvalidToolCall, name)
		var e *middleware.ModelError
		require.ErrorAs(t, err, &e)
		require.Nil(t, e.Response, "an error is not an answer")
	}
}

// TestCallsBesideAnUnreadOne: an answer with calls is an answer with calls, whatever its word.
func TestCallsBesideAnUnreadOne(t *testing.T) {
	t.Parallel()
	const word = "malformed_function_call"
	for name, c := range map[string]struct {
		codec wire.Codec
		body  string
	}{
		"chat":       {wire.OpenAIChat(), `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{}"}}]},"finish_reason":"` + word + `"}]}`},
		"openrouter": {wire.OpenAIChat(), `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{}"}}]},"finish_reason":"error","native_finish_reason":"` + word + `"}]}`},
		"anthropic":  {wire.Anthropic(), `{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"weather","input":{}}],"stop_reason":"` + word + `"}`},
		"responses":  {wire.OpenAIResponses(), `{"id":"x","object":"response","status":"incomplete","incomplete_details":{"reason":"` + word + `"},"output":[{"type":"function_call","id":"f","call_id":"c","name":"weather","arguments":"{}"}]}`},
		"gemini":     {wire.Gemini(), `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather","args":{}}}]},"finishReason":"` + word + `"}]}`},
		"ollama":     {wire.Ollama(), `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"weather","arguments":{}}}]},"done":true,"done_reason":"` + word + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := c.codec.DecodeResponse(offering, []byte(c.body))
			require.NoError(t, err)
			require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
			require.Len(t, resp.Message.ToolCalls, 1)
			out, err := c.codec.EncodeResponse(resp)
			require.NoError(t, err)
			require.Contains(t, string(out), word)
			resp.Message.ToolCalls[0].Arguments = `{"city":"Oslo"}`
			out, err = c.codec.EncodeResponse(resp)
			require.NoError(t, err)
			again, err := c.codec.DecodeResponse(offering, out)
			require.NoError(t, err)
			require.Equal(t, middleware.FinishToolCalls, again.FinishReason)
			if name == "chat" || name == "gemini" {
				require.NotContains(t, string(out), word, "the call can be read now")
			}
		})
	}
}

// TestMembersOfWrittenAnswers: a written answer of the Chat format keeps the finish reason of
// a router's provider and the citations, also those that speak of calls.
func TestMembersOfWrittenAnswers(t *testing.T) {
	t.Parallel()
	const (
		cited   = `"citations":["https://example.com/tool_calls","https://example.com/a"]`
		results = `"search_results":[{"title":"function_call","url":"https://example.com/a"}]`
		note    = `"annotations":[{"type":"url_citation","url_citation":{"url":"https://example.com/function_calling"}}]`
		native  = `"native_finish_reason":"tool_calls"`
		call    = `{"id":"c","type":"function","function":{"name":"weather","arguments":"{}"}}`
	)
	for form, body := range map[string]string{
		"whole": `{"id":"x","object":"chat.completion","model":"m",` + cited + `,` + results + `,"choices":[{"index":0,"message":{"role":"assistant","content":"a",` + note + `,"tool_calls":[` + call + `]},"finish_reason":"tool_calls",` + native + `}]}`,
		"stream": `data: {"id":"x","object":"chat.completion.chunk","model":"m",` + cited + `,"choices":[{"index":0,"delta":{"role":"assistant","content":"a",` + note + `},"finish_reason":null,"native_finish_reason":null}]}` + "\n\n" +
			`data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,` + call[1:] + `]}}]}` + "\n\n" +
			`data: {"id":"x","object":"chat.completion.chunk","model":"m",` + results + `,"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls",` + native + `}]}` + "\n\ndata: [DONE]\n\n",
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			c := wire.OpenAIChat()
			s := c.NewStream(offering, func(middleware.Event) error { return nil })
			_, err := s.Write([]byte(body))
			require.NoError(t, err)
			shown := string(s.Take())
			resp, err := s.Close()
			require.NoError(t, err)
			resp.Message.ToolCalls[0].Arguments = `{"city":"Oslo"}`
			rest, err := s.Rest(resp)
			require.NoError(t, err)
			whole, err := c.EncodeResponse(resp)
			require.NoError(t, err)
			for _, out := range []string{shown + string(rest), string(whole)} {
				for _, member := range []string{cited, results, note, native} {
					require.Contains(t, out, member)
				}
				again, err := c.DecodeResponse(offering, []byte(out))
				require.NoError(t, err)
				require.Equal(t, `{"city":"Oslo"}`, again.Message.ToolCalls[0].Arguments)
			}
			require.Equal(t, 1, strings.Count(shown+string(rest), note), "a client joins the lists of a stream")
			if form == "whole" {
				out, _, err := c.EncodeAnswer("/v1/chat/completions", []byte(`{"stream":true}`), resp)
				require.NoError(t, err)
				for _, member := range []string{cited, results, note, native} {
					require.Contains(t, string(out), member)
				}
			}
		})
	}
}

func TestFinishReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		word  string
		calls bool
		want  middleware.FinishReason
		err   error
	}{
		{"end_turn", false, middleware.FinishStop, nil},
		{"MAX_TOKENS", false, middleware.FinishLength, nil},
		{"stop", true, middleware.FinishToolCalls, nil},
		{"of-my-own", false, "of-my-own", nil},
		{"function_call_filter: MALFORMED_FUNCTION_CALL", false, "function_call_filter: MALFORMED_FUNCTION_CALL", middleware.ErrInvalidToolCall},
		{"malformed_tool_use", true, middleware.FinishToolCalls, nil},
	} {
		got, err := wire.FinishReason(c.word, c.calls)
		require.Equal(t, c.want, got, c.word)
		require.Equal(t, c.err, err, c.word)
	}
}
