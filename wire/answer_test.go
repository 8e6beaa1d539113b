package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// asker is a client of one format.
type asker struct {
	codec   wire.Codec
	path    string
	body    string
	kind    string // Content-Type of its answer
	reasons bool   // takes reasoning of another provider
	onlyOne bool   // takes one choice only
}

func askers() map[string]asker {
	chat := asker{codec: wire.OpenAIChat(), path: "/v1/chat/completions", reasons: true}
	responses := asker{codec: wire.OpenAIResponses(), path: "/v1/responses", onlyOne: true}
	anthropic := asker{codec: wire.Anthropic(), path: "/v1/messages", onlyOne: true}
	gemini := asker{codec: wire.Gemini(), reasons: true, body: `{"contents":[]}`}
	ollama := asker{codec: wire.Ollama(), path: "/api/chat", reasons: true, onlyOne: true}
	with := func(a asker, path, body, kind string) asker {
		a.path, a.body, a.kind = a.path+path, body, kind
		return a
	}
	whole, sse := "application/json", "text/event-stream"
	return map[string]asker{
		"chat":               with(chat, "", `{"model":"asked","messages":[]}`, whole),
		"chat stream":        with(chat, "", `{"model":"asked","messages":[],"stream":true,"stream_options":{"include_usage":true}}`, sse),
		"responses":          with(responses, "", `{"model":"asked","input":""}`, whole),
		"responses stream":   with(responses, "", `{"model":"asked","input":"","stream":true}`, sse),
		"anthropic":          with(anthropic, "", `{"model":"asked","messages":[]}`, whole),
		"anthropic stream":   with(anthropic, "", `{"model":"asked","messages":[],"stream":true}`, sse),
		"gemini":             with(gemini, "/v1beta/models/asked:generateContent", gemini.body, whole),
		"gemini stream":      with(gemini, "/v1beta/models/asked:streamGenerateContent?alt=sse", gemini.body, sse),
		"gemini array":       with(gemini, "/v1beta/models/asked:streamGenerateContent", gemini.body, whole),
		"ollama":             with(ollama, "", `{"model":"asked","messages":[],"stream":false}`, whole),
		"ollama stream":      with(ollama, "", `{"model":"asked","messages":[]}`, "application/x-ndjson"),
		"anthropic, vertex":  with(anthropic, "/x/models/asked:rawPredict", `{"anthropic_version":"v","messages":[]}`, whole),
		"anthropic, bedrock": with(anthropic, "/model/asked/invoke", `{"anthropic_version":"v","messages":[]}`, whole),
	}
}

// said is what a client reads from an answer.
type said struct {
	text, reasoning string
	calls           []middleware.ToolCall
	finish          middleware.FinishReason
	model           string
	usage           middleware.Usage
}

func read(resp *middleware.Response) said {
	s := said{text: resp.Message.Text(), finish: resp.FinishReason, model: resp.Model, usage: resp.Usage}
	for _, p := range resp.Message.Parts {
		if p.Kind == middleware.PartReasoning {
			s.reasoning += p.Text
		}
	}
	for _, c := range resp.Message.ToolCalls {
		c.Native = nil
		s.calls = append(s.calls, c)
	}
	return s
}

// expect returns what a client of a reads from an answer with the content s.
func (a asker) expect(s said) said {
	if !a.reasons {
		s.reasoning = ""
	}
	if s.model == "" {
		s.model = "asked"
	}
	if a.codec == wire.Gemini() {
		s.usage.CacheWrite = 0
	}
	if a.codec == wire.Ollama() {
		s.usage = middleware.Usage{InputTokens: s.usage.InputTokens, OutputTokens: s.usage.OutputTokens}
	}
	return s
}

// answered returns what a client of a reads of resp.
func (a asker) answered(t require.TestingT, resp *middleware.Response) said {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	body, kind, err := a.codec.EncodeAnswer(a.path, []byte(a.body), resp)
	require.NoError(t, err)
	require.Equal(t, a.kind, kind)
	again, err := a.codec.DecodeResponse(nil, body)
	require.NoError(t, err, "%s", body)
	require.Equal(t, len(resp.Choices), len(again.Choices))
	return read(again)
}

// generated returns a response that a middleware wrote.
func generated(t *rapid.T) *middleware.Response {
	word := rapid.StringMatching(`[a-z é"\\\n<{]{1,12}`)
	m := middleware.Message{Role: middleware.RoleAssistant}
	if rapid.Bool().Draw(t, "reasons") {
		m.Parts = append(m.Parts, middleware.Part{Kind: middleware.PartReasoning, Text: word.Draw(t, "reasoning")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "parts") {
		m.Parts = append(m.Parts, middleware.Part{Text: word.Draw(t, "text")})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
		args, err := json.Marshal(map[string]string{"a": word.Draw(t, "argument")})
		require.NoError(t, err)
		m.ToolCalls = append(m.ToolCalls, middleware.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "add", Arguments: string(args)})
	}
	figures := rapid.Int64Range(0, 9)
	u := middleware.Usage{Cached: figures.Draw(t, "cached"), CacheWrite: figures.Draw(t, "written"), Reasoning: figures.Draw(t, "thought")}
	u.InputTokens, u.OutputTokens = u.Cached+u.CacheWrite+figures.Draw(t, "input"), u.Reasoning+figures.Draw(t, "output")
	finish := []middleware.FinishReason{"", middleware.FinishLength, middleware.FinishFilter, "something_else"}
	return &middleware.Response{Message: m, Usage: u, Model: rapid.SampledFrom([]string{"", "other"}).Draw(t, "model"),
		FinishReason: rapid.SampledFrom(finish).Draw(t, "finish")}
}

// expected is the content of resp, with the additions of the encoder.
func expected(resp *middleware.Response) said {
	s := read(resp)
	if s.finish == "" {
		s.finish = middleware.FinishStop
		if len(s.calls) > 0 {
			s.finish = middleware.FinishToolCalls
		}
	}
	return s
}

func TestAnswersOfAMiddlewareAreRead(t *testing.T) {
	t.Parallel()
	for name, a := range askers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				resp := generated(t)
				before, err := json.Marshal(resp)
				require.NoError(t, err)
				require.Equal(t, a.expect(expected(resp)), a.answered(t, resp))
				after, err := json.Marshal(resp)
				require.NoError(t, err)
				require.Equal(t, string(before), string(after), "the response was changed")
			})
		})
	}
}

// A cached answer reaches every client, of whatever format and framing it was.
func TestAnswersOfOtherFormatsAreRead(t *testing.T) {
	t.Parallel()
	from := &middleware.Response{Message: middleware.Assistant("Here.", middleware.ToolCall{ID: "call_1", Name: "add", Arguments: `{"n":1}`},
		middleware.ToolCall{ID: "call_2", Name: "add", Arguments: `{"n":2}`}), Model: "other", Usage: middleware.Usage{InputTokens: 3, OutputTokens: 2}}
	for source, b := range askers() {
		body, _, err := b.codec.EncodeAnswer(b.path, []byte(b.body), from)
		require.NoError(t, err)
		cached, err := b.codec.DecodeResponse(nil, body)
		require.NoError(t, err)
		stored, err := json.Marshal(cached)
		require.NoError(t, err)
		for name, a := range askers() {
			t.Run(source+" for "+name, func(t *testing.T) {
				t.Parallel()
				require.Equal(t, a.expect(read(cached)), a.answered(t, cached))
				var again middleware.Response
				require.NoError(t, json.Unmarshal(stored, &again))
				require.Equal(t, a.expect(read(cached)), a.answered(t, &again), "after storage")
				if a.codec == b.codec && a.kind == b.kind && source != "gemini array" && name != "gemini array" {
					same, _, err := a.codec.EncodeAnswer(a.path, []byte(a.body), cached)
					require.NoError(t, err)
					require.Equal(t, string(body), string(same), "an answer that is framed as expected keeps its bytes")
				}
			})
		}
	}
}

// What a provider alone understands survives another framing of the same
// format.
func TestAnotherFramingKeepsWhatTheProviderSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ codec, whole, keeps string }{
		"thinking":  {"anthropic", `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"Hm.","signature":"SIG"},{"type":"text","text":"Yes."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`, "SIG"},
		"reasoning": {"responses", `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"SEALED"},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Yes.","annotations":[]}]}]}`, "SEALED"},
		"thought":   {"gemini", `{"candidates":[{"content":{"role":"model","parts":[{"text":"Yes.","thoughtSignature":"SIG"}]},"finishReason":"STOP"}],"modelVersion":"m"}`, "SIG"},
		"details":   {"chat", `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Yes.","reasoning_details":[{"type":"reasoning.encrypted","data":"SEALED","index":0}]},"finish_reason":"stop"}]}`, "SEALED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, stream := askers()[c.codec], askers()[c.codec+" stream"]
			resp, err := whole.codec.DecodeResponse(nil, []byte(c.whole))
			require.NoError(t, err)
			streamed, _, err := stream.codec.EncodeAnswer(stream.path, []byte(stream.body), resp)
			require.NoError(t, err)
			require.Contains(t, string(streamed), c.keeps)
			again, err := stream.codec.DecodeResponse(nil, streamed)
			require.NoError(t, err)
			require.Equal(t, read(resp), read(again))
			back, _, err := whole.codec.EncodeAnswer(whole.path, []byte(whole.body), again)
			require.NoError(t, err)
			require.Contains(t, string(back), c.keeps)
			again, err = whole.codec.DecodeResponse(nil, back)
			require.NoError(t, err)
			require.Equal(t, read(resp), read(again))
		})
	}
}

func TestAnswersHaveWhatClientsDemand(t *testing.T) {
	t.Parallel()
	bare := &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{Name: "add", Arguments: `{}`})}
	for name, a := range askers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, _, err := a.codec.EncodeAnswer(a.path, []byte(a.body), bare)
			require.NoError(t, err)
			again, err := a.codec.DecodeResponse(nil, body)
			require.NoError(t, err)
			require.NotEmpty(t, again.Message.ToolCalls[0].ID)
			none := &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "add"})}
			want := ""
			if a.codec == wire.Anthropic() || a.codec == wire.Gemini() || a.codec == wire.Ollama() {
				want = "{}"
			}
			require.Equal(t, want, a.answered(t, none).calls[0].Arguments, "no arguments at all")
			require.Equal(t, middleware.FinishToolCalls, again.FinishReason)
			other, _, err := a.codec.EncodeAnswer(a.path, []byte(a.body), bare)
			require.NoError(t, err)
			if a.codec != wire.Ollama() {
				require.NotEqual(t, string(body), string(other), "each answer has an id of its own")
			}
			for _, m := range []middleware.Message{{}, middleware.User("x"), middleware.ToolReply(middleware.ToolCall{ID: "c"}, "x")} {
				_, _, err := a.codec.EncodeAnswer(a.path, []byte(a.body), &middleware.Response{Message: m})
				require.ErrorIs(t, err, wire.ErrUnencodable)
			}
			two := &middleware.Response{Message: middleware.Assistant("a"), Choices: []middleware.Message{middleware.Assistant("b")}}
			_, _, err = a.codec.EncodeAnswer(a.path, []byte(a.body), two)
			if a.onlyOne {
				require.ErrorIs(t, err, wire.ErrUnencodable)
			} else {
				require.NoError(t, err)
			}
		})
	}
	full, _, err := wire.OpenAIResponses().EncodeAnswer("/v1/responses", []byte(`{"model":"m","input":""}`), bare)
	require.NoError(t, err)
	require.Contains(t, string(full), `"cache_write_tokens":0`, "openai-python 3.54 demands it in its strict mode")
	plain, _, err := wire.OpenAIChat().EncodeAnswer("/v1/chat/completions", []byte(`{"model":"m","messages":[],"stream":true}`), bare)
	require.NoError(t, err)
	require.NotContains(t, string(plain), `"choices":[]`, "a client that did not ask for figures may fail on a chunk without choices")
	require.True(t, strings.HasSuffix(string(plain), "data: [DONE]\n\n"))
}
