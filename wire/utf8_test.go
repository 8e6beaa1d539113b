package wire_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// Bytes that are not UTF-8 are a fault of a call whose arguments hold them.
func TestBytesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	for name, c := range targets {
		for _, body := range []string{c.whole, c.stream} {
			if body == "" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bad := ":\"\xff\"}"
				if strings.Contains(body, `amount\"`) {
					bad = strings.ReplaceAll(bad, `"`, `\"`)
				}
				body := strings.ReplaceAll(body, ":5}", bad)
				resp, err := c.codec.DecodeResponse(nil, []byte(body))
				require.NoError(t, err, body)
				require.Equal(t, "{\"amount\":\"\xff\"}", resp.Message.ToolCalls[0].Arguments)
				out, err := c.codec.EncodeResponse(resp)
				require.NoError(t, err)
				again, err := c.codec.DecodeResponse(nil, out)
				require.NoError(t, err)
				require.Equal(t, "{\"amount\":\"\ufffd\"}", strings.ToValidUTF8(again.Message.ToolCalls[0].Arguments, "\ufffd"))

				var req *middleware.Request // of the second attempt
				checked, err := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2, OnExhausted: middleware.Pass})(func(_ context.Context, r *middleware.Request) (*middleware.Response, error) {
					req = r
					return resp, nil
				})(t.Context(), &middleware.Request{
					Messages: []middleware.Message{middleware.User("Pay.")},
					Tools:    []middleware.Tool{{Name: "pay", Parameters: []byte(`{"type":"object"}`)}},
				})
				require.NoError(t, err)
				require.Equal(t, middleware.Invalid, checked.Report.Status)
				require.Greater(t, len(req.Messages), 1)
				if out, err = c.codec.EncodeRequest(req); err == nil {
					require.True(t, utf8.Valid(out))
				}
			})
		}
	}
}

// A request that repeats an answer has no bytes that are not UTF-8; one that
// came with such bytes and did not change keeps them.
func TestRequestsAreUTF8(t *testing.T) {
	t.Parallel()
	resp, err := wire.OpenAIChat().DecodeResponse(nil, []byte(edited(t, targets["chat"].whole, `"content":null`, "\"content\":\"\xff\"")))
	require.NoError(t, err)
	body := "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}"
	req, err := wire.OpenAIChat().DecodeRequest([]byte(body))
	require.NoError(t, err)
	out, err := wire.OpenAIChat().EncodeRequest(req)
	require.NoError(t, err)
	require.Equal(t, body, string(out))
	out, err = wire.OpenAIChat().EncodeRequest(req.With(resp.Message))
	require.NoError(t, err)
	require.True(t, utf8.Valid(out))
	require.Contains(t, string(out), "\ufffd")
}

// A stream whose texts hold bytes that are not UTF-8 goes on with its own answer: the client has
// U+FFFD in their place, and so has the answer.
func TestTextsThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	const chunk = `data: {"id":"i","object":"chat.completion.chunk","choices":[{"index":0,"delta":`
	event := func(data string) string { return "data: " + data + "\n\n" }
	for name, c := range map[string]struct {
		codec              wire.Codec
		begin, before, end string // before a piece of text, and behind it
		last               func(text string) string
	}{
		"ollama": {wire.Ollama(), "", `{"message":{"content":"`, "\"},\"done\":false}\n", func(string) string {
			return `{"message":{"content":""},"done":true,"done_reason":"stop"}` + "\n"
		}},
		"ollama, reasoning": {wire.Ollama(), "", `{"message":{"content":"","thinking":"`, "\"},\"done\":false}\n", func(string) string {
			return `{"message":{"content":"Hm."},"done":false}` + "\n" + `{"message":{"content":""},"done":true,"done_reason":"stop"}` + "\n"
		}},
		"chat": {wire.OpenAIChat(), "", chunk + `{"content":"`, "\"},\"finish_reason\":null}]}\n\n", func(string) string {
			return chunk + "{},\"finish_reason\":\"stop\"}]}\n\n" + event("[DONE]")
		}},
		"gemini": {wire.Gemini(), "", `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"`, "\"}]}}]}\n\n", func(string) string {
			return event(`{"candidates":[{"finishReason":"STOP"}]}`)
		}},
		"anthropic": {wire.Anthropic(), event(`{"type":"message_start","message":{"id":"i","type":"message","role":"assistant","content":[],"usage":{}}}`) +
			event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`, "\"}}\n\n", func(string) string {
				return event(`{"type":"content_block_stop","index":0}`) + event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}`) + event(`{"type":"message_stop"}`)
			}},
		"responses": {wire.OpenAIResponses(), event(`{"type":"response.created","response":{"id":"i","status":"in_progress","output":[]}}`) +
			event(`{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[]}}`),
			`data: {"type":"response.output_text.delta","output_index":0,"item_id":"m","content_index":0,"delta":"`, "\"}\n\n", func(text string) string {
				item := `{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + text + `"}]}`
				return event(`{"type":"response.output_item.done","output_index":0,"item":`+item+`}`) +
					event(`{"type":"response.completed","response":{"id":"i","status":"completed","output":[`+item+`]}}`)
			}},
	} {
		for _, pieces := range [][]string{{"\xff"}, {"a\\u00e9\xff", "\xff\xfe", "b"}, {"\xc3", "\xa9"}, {"b", "\xff"}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				body := c.begin
				for _, p := range pieces {
					body += c.before + p + c.end
				}
				body += c.last(strings.Join(pieces, ""))
				s := c.codec.NewStream(&middleware.Request{}, nil)
				var got []byte
				for i := range len(body) {
					_, err := s.Write([]byte(body[i : i+1]))
					require.NoError(t, err)
					got = append(got, s.Take()...)
				}
				resp, err := s.Close()
				require.NoError(t, err)
				require.NotEmpty(t, got)
				rest, err := s.Rest(resp)
				require.NoError(t, err, pieces)
				client, err := c.codec.DecodeResponse(nil, append(got, rest...))
				require.NoError(t, err)
				require.True(t, utf8.ValidString(client.Message.Text()))
			})
		}
	}
}
