package chat_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// What is safe to show ends where a call, an error or the end begins.
func TestSafe(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"openai": `data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1"`,
		"text":   `data: {"id":"r1","model":"m-1","choices":[{"index":0,"delta":{"content":"lo"}`, "odd": `data: `, "old": `data: `,
		"openrouter": `data: {"id":"g1","model":"m-1","provider":"P","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls"`,
		"two":        `data: {"id":"r","choices":[{"index":0,"delta":{},"finish_reason":"stop"}`,
	} {
		s := chat.Format{}.NewStream(nil, nil)
		_, err := s.Write([]byte(streams[name]))
		require.NoError(t, err)
		require.Equal(t, strings.Index(streams[name], before), s.Safe(), name)
	}
	end := sse(`{"choices":[{"index":0,"delta":{"content":"A"}},{"index":1,"finish_reason":"stop"}]}`) // of another choice
	s := chat.Format{}.NewStream(nil, nil)
	_, err := s.Write([]byte(end))
	require.NoError(t, err)
	require.Equal(t, len(end), s.Safe())

	s = chat.Format{}.NewStream(nil, nil)
	_, err = s.Write([]byte(`[{"choices":[{"index":0,"delta":{"content":"A"}}]},`)) // no stream of this format
	require.NoError(t, err)
	require.Zero(t, s.Safe())

	s = chat.Format{}.NewStream(nil, nil)
	_, err = s.Write([]byte(answers["text"]))
	require.NoError(t, err)
	_, err = s.Close()
	require.NoError(t, err)
	require.Zero(t, s.Safe())
}

// A line of data may begin with more space than the one that belongs to the
// framing.
func TestSpaceBeforeData(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"data:  ", "data:\t", "data:\ndata: "} {
		body := strings.ReplaceAll(streams["openai"], "data: ", field)
		s := chat.Format{}.NewStream(nil, nil)
		_, err := s.Write([]byte(body))
		require.NoError(t, err)
		require.Less(t, s.Safe(), strings.Index(body, `"c1"`), field)
		resp, err := s.Close()
		require.NoError(t, err)
		require.Equal(t, seen(answer(t, streams["openai"]).Message), seen(resp.Message))
		resp.Message.ToolCalls[0].Arguments = "{}"
		out, err := chat.Format{}.EncodeResponse(resp)
		require.NoError(t, err)
		require.Equal(t, "{}", answer(t, string(out)).Message.ToolCalls[0].Arguments)
	}
}

// An answer that comes in one piece is shown as well.
func TestWholeAnswerIsShown(t *testing.T) {
	t.Parallel()
	var shown []middleware.Event
	s := chat.Format{}.NewStream(nil, func(e middleware.Event) error { shown = append(shown, e); return nil })
	_, err := s.Write([]byte(answers["calls"]))
	require.NoError(t, err)
	resp, err := s.Close()
	require.NoError(t, err)
	require.Equal(t, []middleware.Event{{Kind: middleware.EventReasoning, Text: "Hm."}, {Kind: middleware.EventText, Text: "Let me see."}}, shown)
	again, err := s.Close()
	require.NoError(t, err)
	require.Same(t, resp, again)
}

// After an error there is no answer, however the stream goes on.
func TestErrorEndsTheStream(t *testing.T) {
	t.Parallel()
	end := sse(`{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`, "[DONE]")
	boom := errors.New("boom")
	times := 0
	s := chat.Format{}.NewStream(nil, func(middleware.Event) error {
		if times++; times == 1 {
			return boom
		}
		return nil
	})
	broken := chat.Format{}.NewStream(nil, nil)
	for _, c := range []struct {
		s     codec.Stream
		first string
		want  error
	}{{s, sse(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`), boom}, {broken, sse(`{"choices":[`), codec.ErrShape}} {
		_, err := c.s.Write([]byte(c.first))
		require.ErrorIs(t, err, c.want)
		_, err = c.s.Write([]byte(end))
		require.ErrorIs(t, err, c.want, "it takes no more")
		for range 2 {
			resp, err := c.s.Close()
			require.ErrorIs(t, err, c.want)
			require.Nil(t, resp)
		}
	}
}

// Pieces of any size give the same answer and the same events.
func TestChunks(t *testing.T) {
	t.Parallel()
	for name, body := range streams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := answer(t, body)
			rapid.Check(t, func(t *rapid.T) {
				var text, reasoning strings.Builder
				s := chat.Format{}.NewStream(nil, func(e middleware.Event) error {
					if e.Kind == middleware.EventText {
						text.WriteString(e.Text)
					} else {
						reasoning.WriteString(e.Text)
					}
					return nil
				})
				for rest := []byte(body); len(rest) > 0; {
					n := rapid.IntRange(1, len(rest)).Draw(t, "n")
					_, err := s.Write(rest[:n])
					require.NoError(t, err)
					rest = rest[n:]
				}
				got, err := s.Close()
				require.NoError(t, err)
				require.Equal(t, seen(want.Message), seen(got.Message))
				require.Equal(t, want.Message.Text(), text.String())
				thought := ""
				for _, p := range want.Message.Parts {
					if p.Kind == middleware.PartReasoning {
						thought += p.Text
					}
				}
				require.Equal(t, thought, reasoning.String())
			})
		})
	}
}

// What comes stands behind a byte order mark, and the first chunk stays even
// if nothing is left of it: without either the rest would be no stream.
func TestEdgesOfStream(t *testing.T) {
	t.Parallel()
	resp := answer(t, "\ufeff: c\n"+sse(`{"choices":[{"finish_reason":"stop"}]}`))
	resp.Message.ToolCalls = []middleware.ToolCall{{ID: "c", Name: "f"}}
	got, err := chat.Format{}.EncodeResponse(resp)
	require.NoError(t, err)
	require.Equal(t, "f", answer(t, string(got)).Message.ToolCalls[0].Name)

	resp = answer(t, sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c"}]}}]}`, "[DONE]"))
	resp.Message.ToolCalls = nil
	got, err = chat.Format{}.EncodeResponse(resp)
	require.NoError(t, err)
	require.Empty(t, answer(t, string(got)).Message.ToolCalls)
}

func TestSinkError(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	s := chat.Format{}.NewStream(nil, func(middleware.Event) error { return stop })
	_, err := s.Write([]byte(streams["text"]))
	require.ErrorIs(t, err, stop)
}

// What was shown of the first answer stays, and the later one goes on.
func TestRest(t *testing.T) {
	t.Parallel()
	shown := sse(`{"id":"one","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"First. "},"finish_reason":null}]}`)
	first := shown + sse(`{"id":"one","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"bad"}}]},"finish_reason":"tool_calls"}]}`, "[DONE]")
	for name, c := range map[string]struct {
		later string
		want  string // with the first's id, and no role
	}{
		"stream": {streams["openai"], strings.ReplaceAll(streams["openai"], `"id":"r1"`, `"id":"one"`)},
		"no ids": {streams["odd"], strings.ReplaceAll(strings.ReplaceAll(streams["odd"], `"id":""`, `"id":"one"`), `"choices":[]}`, `"choices":[],"id":"one"}`)},
		"JSON": {answers["calls"], sse(
			`{"id":"one","model":"m-1","choices":[{"index":0,"delta":{"content":"Let me see.","reasoning":"Hm."},"finish_reason":null}]}`,
			`{"id":"one","model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"\"}"},"extra_content":{"sig":"x"},"index":0},`+
				`{"id":"c2","function":{"name":"time"},"index":1},{"id":"c3","type":"custom","custom":{"name":"sql","input":"select 1"},"index":2}]},"finish_reason":null}]}`,
			`{"id":"one","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`{"id":"one","model":"m-1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4}}}`, "[DONE]")},
		"JSON with an object": {answers["object"], sse(
			`{"choices":[{"index":0,"delta":{"content":"{\"a\":1}"},"finish_reason":null}],"id":"one"}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c1","function":{"name":"f","arguments":{"a":1}},"index":0}]},"finish_reason":null}],"id":"one"}`, "[DONE]")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := chat.Format{}.NewStream(nil, nil)
			_, err := s.Write([]byte(first))
			require.NoError(t, err)
			require.Equal(t, len(shown), s.Safe())
			_, err = s.Close()
			require.NoError(t, err)

			later := answer(t, c.later)
			got, err := s.Rest(len(shown), later)
			require.NoError(t, err)
			require.Equal(t, strings.ReplaceAll(c.want, `"role":"assistant",`, ""), string(got))
			whole := answer(t, shown+string(got))
			require.Equal(t, "First. "+later.Message.Text(), whole.Message.Text())
			require.Equal(t, seen(later.Message).ToolCalls, seen(whole.Message).ToolCalls)

			got, err = s.Rest(0, later)
			require.NoError(t, err)
			require.Equal(t, c.later, string(got))
		})
	}
}

func TestOwnRest(t *testing.T) {
	t.Parallel()
	body := streams["openai"]
	s := chat.Format{}.NewStream(nil, nil)
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	resp, err := s.Close()
	require.NoError(t, err)
	got, err := s.Rest(s.Safe(), resp.Clone())
	require.NoError(t, err)
	require.Equal(t, body[s.Safe():], string(got))

	changed := resp.Clone()
	changed.Message.ToolCalls[0].Arguments = "{}"
	got, err = s.Rest(s.Safe(), changed)
	require.NoError(t, err)
	require.Equal(t, "{}", answer(t, body[:s.Safe()]+string(got)).Message.ToolCalls[0].Arguments)

	changed.Message.Parts[0].Text = "Other" // was shown
	_, err = s.Rest(s.Safe(), changed)
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = s.Rest(s.Safe(), answer(t, streams["two"]))
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = s.Rest(s.Safe(), &middleware.Response{})
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

// After a refusal in the stream, a later answer goes on all the same.
func TestRestAfterError(t *testing.T) {
	t.Parallel()
	shown := sse(`{"id":"one","choices":[{"index":0,"delta":{"content":"Hm. "}}]}`)
	s := chat.Format{}.NewStream(nil, nil)
	_, err := s.Write([]byte(shown + sse(`{"error":{"code":"tool_use_failed","message":"m"}}`)))
	require.NoError(t, err)
	_, err = s.Close()
	require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
	got, err := s.Rest(s.Safe(), answer(t, streams["text"]))
	require.NoError(t, err)
	require.Equal(t, "Hm. Hello", answer(t, shown+string(got)).Message.Text())
}
