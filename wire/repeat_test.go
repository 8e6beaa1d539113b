package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// streamsOfPieces are streams that end with a call whose arguments come in pieces, each in an
// event of its own. The text between separates two events.
var streamsOfPieces = map[string]struct {
	codec wire.Codec
	write func(pieces []string, between string) string
}{
	"chat": {wire.OpenAIChat(), func(pieces []string, between string) string {
		event := func(delta, finish string) string {
			return `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + `}]}` + "\n\n"
		}
		out := event(`"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"pay","arguments":""}}]`, "null")
		for _, p := range pieces {
			out += event(`"tool_calls":[{"index":0,"function":{"arguments":"`+p+`"}}]`, "null") + between
		}
		return out + event("", `"tool_calls"`) + "data: [DONE]\n\n"
	}},
	"anthropic": {wire.Anthropic(), func(pieces []string, between string) string {
		out := eventStream(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"call_1","name":"pay","input":{}}}`)
		for _, p := range pieces {
			out += eventStream(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"`+p+`"}}`) + between
		}
		return out + eventStream(`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}}`, `{"type":"message_stop"}`)
	}},
	"responses": {wire.OpenAIResponses(), func(pieces []string, between string) string {
		out := eventStream(`{"type":"response.created","sequence_number":0,"response":{"id":"r1","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":`+payCall("")+`}`)
		for i, p := range pieces {
			out += eventStream(fmt.Sprintf(`{"type":"response.function_call_arguments.delta","sequence_number":%d,"output_index":0,"item_id":"fc_1","delta":"%s"}`, i+2, p)) + between
		}
		return out + eventStream(`{"type":"response.output_item.done","sequence_number":90,"output_index":0,"item":`+payCall(strings.Join(pieces, ""))+`}`,
			`{"type":"response.completed","sequence_number":91,"response":{"id":"r1","status":"completed","output":[`+payCall(strings.Join(pieces, ""))+`]}}`)
	}},
}

// A piece of a call that repeats the event before it is read as one that does not: a
// comment between two events changes nothing, whatever the pieces are.
func TestRepeatedPieces(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{`{\"amount\":`, `5}`, `a b`, `\\`, `\"`, `\n`, `\ud83d`, `\ude00`, `\u00e`, `\u0063all`, `\x`, `\`, "é", "\u2028", "\xff", "\x01", "", `"`, `","arguments":"x`, "\ufeff", `tool_calls`})
	for name, s := range streamsOfPieces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				pieces := rapid.SliceOfN(piece, 1, 8).Draw(t, "pieces")
				read := func(body string) (*middleware.Response, error) {
					stream := s.codec.NewStream(nil, nil)
					if _, err := stream.Write([]byte(body)); err != nil {
						return nil, err
					}
					return stream.Close()
				}
				want, wantErr := read(s.write(pieces, ": x\n\n"))
				got, err := read(s.write(pieces, ""))
				require.Equal(t, wantErr == nil, err == nil, "%v, and %v", wantErr, err)
				if err == nil {
					require.Equal(t, want.Message.ToolCalls[0].Arguments, got.Message.ToolCalls[0].Arguments)
					require.Len(t, got.Message.ToolCalls, len(want.Message.ToolCalls))
				}
			})
		})
	}
}

// streamsOfTexts are streams of a text in pieces, each in a unit of its own, and between a piece
// and the next one what separates them.
var streamsOfTexts = map[string]struct {
	codec wire.Codec
	write func(pieces []string, between string) string
}{
	"chat": {wire.OpenAIChat(), func(pieces []string, between string) string {
		event := func(delta, finish string) string {
			return `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + `}]}` + "\n\n"
		}
		out := event(`"role":"assistant","content":""`, "null")
		for _, p := range pieces {
			out += event(`"content":"`+p+`"`, "null") + between
		}
		return out + event("", `"stop"`) + "data: [DONE]\n\n"
	}},
	"anthropic": {wire.Anthropic(), func(pieces []string, between string) string {
		out := eventStream(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for _, p := range pieces {
			out += eventStream(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+p+`"}}`) + between
		}
		return out + eventStream(`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}`, `{"type":"message_stop"}`)
	}},
	"responses": {wire.OpenAIResponses(), func(pieces []string, between string) string {
		item := func(parts string) string {
			return `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[` + parts + `]}`
		}
		out := eventStream(`{"type":"response.created","sequence_number":0,"response":{"id":"r1","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":`+item("")+`}`,
			`{"type":"response.content_part.added","sequence_number":2,"output_index":0,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`)
		for i, p := range pieces {
			out += eventStream(fmt.Sprintf(`{"type":"response.output_text.delta","sequence_number":%d,"output_index":0,"item_id":"msg_1","content_index":0,"delta":"%s","obfuscation":"%s"}`, i+3, p, "abcdefgh"[:i%8])) + between
		}
		done := item(`{"type":"output_text","text":"` + strings.Join(pieces, "") + `","annotations":[]}`)
		return out + eventStream(`{"type":"response.output_item.done","sequence_number":90,"output_index":0,"item":`+done+`}`,
			`{"type":"response.completed","sequence_number":91,"response":{"id":"r1","status":"completed","output":[`+done+`]}}`)
	}},
	"gemini": {wire.Gemini(), func(pieces []string, between string) string {
		out := ""
		for i, p := range pieces {
			finish := ""
			if i == len(pieces)-1 {
				finish = `,"finishReason":"STOP"`
			}
			out += `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"` + p + `"}]}` + finish + `}],"modelVersion":"g"}` + "\n\n" + between
		}
		return out
	}},
	"ollama": {wire.Ollama(), func(pieces []string, between string) string {
		out := ""
		for i, p := range pieces {
			first, last := "", `,"done":false`
			if between != "" && i%2 > 0 { // lines have no comments
				first, last = `"done":false,`, ""
			}
			out += fmt.Sprintf(`{%s"model":"m","created_at":"2026-01-01T00:00:%02dZ","message":{"role":"assistant","content":"%s"}%s}`, first, i, p, last) + "\n"
		}
		return out + `{"model":"m","created_at":"x","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n"
	}},
}

// A text that repeats the unit before it is read and shown as one that does not, in every format
// and however the stream is cut: what the client may get after each unit, the texts of the sink,
// the answer and the error are the same. A comment between two units makes the second one no repeat.
func TestRepeatedTexts(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"a", "b c", " word", "Zürich", `x\ny`, `\ud83d`, `\ude00`, `\u0063all`, `\x`, "", `tool_calls`, `_call_`, `\"tool_use`, "\u2028", "\xff", "\xc3", "\xa9", "\x01", `"`, `","content":"x`, "\ufeff"})
	const comment = ": x\n\n"
	for name, s := range streamsOfTexts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				pieces := rapid.SliceOfN(piece, 1, 8).Draw(t, "pieces")
				req := &middleware.Request{Tools: make([]middleware.Tool, rapid.IntRange(0, 1).Draw(t, "tools"))}
				type result struct {
					texts, sent, failed string
					resp                *middleware.Response
				}
				read := func(body string, cuts []int) (r result) {
					stream := s.codec.NewStream(req, func(e middleware.Event) error { r.texts += string(e.Kind) + e.Text; return nil })
					var err error
					at := 0
					for _, cut := range append(cuts, len(body)) {
						_, err = stream.Write([]byte(body[at:cut]))
						r.sent += string(stream.Take())
						if at = cut; err != nil {
							break
						}
					}
					if r.resp, err = stream.Close(); err != nil {
						r.failed = err.Error()
					} else if rest, err := stream.Rest(r.resp); err != nil {
						r.failed = err.Error()
					} else {
						r.sent += string(rest)
					}
					if r.resp != nil {
						r.resp.Native = nil
					}
					r.failed, _, _ = strings.Cut(r.failed, " at offset ") // which depends on the order of members
					r.texts = strings.ReplaceAll(r.texts, "text", "")
					if s.codec.Dialect() == wire.Ollama().Dialect() {
						r.sent = strings.NewReplacer(`"done":false,`, "", `,"done":false`, "").Replace(r.sent)
					}
					r.sent = strings.ReplaceAll(r.sent, comment, "")
					return r
				}
				body := s.write(pieces, "")
				cuts := rapid.SliceOfN(rapid.IntRange(0, len(body)), 0, 4).Draw(t, "cuts")
				slices.Sort(cuts)
				require.Equal(t, read(s.write(pieces, comment), nil), read(body, cuts), "%q", body)
			})
		})
	}
}
