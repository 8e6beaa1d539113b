package chat_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/test/casefile"
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
	end := eventStream(`{"choices":[{"index":0,"delta":{"content":"A"}},{"index":1,"finish_reason":"stop"}]}`) // of another choice
	s := chat.Format{}.NewStream(nil, nil)
	_, err := s.Write([]byte(end))
	require.NoError(t, err)
	require.Equal(t, len(end), s.Safe())

	s = chat.Format{}.NewStream(nil, nil)
	_, err = s.Write([]byte(`[{"choices":[{"index":0,"delta":{"content":"A"}}]},`)) // no stream of this format
	require.ErrorIs(t, err, codec.ErrShape)
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
		require.Equal(t, withoutNative(decodeResponse(t, streams["openai"]).Message), withoutNative(resp.Message))
		resp.Message.ToolCalls[0].Arguments = "{}"
		out, err := chat.Format{}.EncodeResponse(resp)
		require.NoError(t, err)
		require.Equal(t, "{}", decodeResponse(t, string(out)).Message.ToolCalls[0].Arguments)
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
	end := eventStream(`{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`, "[DONE]")
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
	}{{s, eventStream(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`), boom}, {broken, eventStream(`{"choices":[`), codec.ErrShape}} {
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
			want := decodeResponse(t, body)
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
				require.Equal(t, withoutNative(want.Message), withoutNative(got.Message))
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

// The rest follows the byte order mark, and the first chunk stays even if it is empty: without
// either it would not be a stream.
func TestEdgesOfStream(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, "\ufeff: c\n"+eventStream(`{"choices":[{"finish_reason":"stop"}]}`))
	resp.Message.ToolCalls = []middleware.ToolCall{{ID: "c", Name: "f"}}
	got, err := chat.Format{}.EncodeResponse(resp)
	require.NoError(t, err)
	require.Equal(t, "f", decodeResponse(t, string(got)).Message.ToolCalls[0].Name)

	resp = decodeResponse(t, eventStream(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c"}]}}]}`, "[DONE]"))
	resp.Message.ToolCalls = nil
	got, err = chat.Format{}.EncodeResponse(resp)
	require.NoError(t, err)
	require.Empty(t, decodeResponse(t, string(got)).Message.ToolCalls)
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
	shown := eventStream(`{"id":"one","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"First. "},"finish_reason":null}]}`)
	first := shown + eventStream(`{"id":"one","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"bad"}}]},"finish_reason":"tool_calls"}]}`, "[DONE]")
	cases := []string{"stream", "no ids", "JSON", "JSON with an object"}
	casefile.OneForEach(t, slices.Values(cases))
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := chat.Format{}.NewStream(nil, nil)
			_, err := s.Write([]byte(first))
			require.NoError(t, err)
			require.Equal(t, len(shown), s.Safe())
			_, err = s.Close()
			require.NoError(t, err)

			later := decodeResponse(t, casefile.Body(t, "later"))
			got, err := s.Rest(len(shown), later)
			require.NoError(t, err)
			casefile.Expect(t, "rest", string(got)) // with the first answer's id, and no role
			whole := decodeResponse(t, shown+string(got))
			require.Equal(t, "First. "+later.Message.Text(), whole.Message.Text())
			require.Equal(t, withoutNative(later.Message).ToolCalls, withoutNative(whole.Message).ToolCalls)

			got, err = s.Rest(0, later)
			require.NoError(t, err)
			require.Equal(t, withoutNative(later.Message), withoutNative(decodeResponse(t, string(got)).Message))
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
	require.Equal(t, withoutNative(resp.Message), withoutNative(decodeResponse(t, body[:s.Safe()]+string(got)).Message))

	changed := resp.Clone()
	changed.Message.ToolCalls[0].Arguments = "{}"
	got, err = s.Rest(s.Safe(), changed)
	require.NoError(t, err)
	require.Equal(t, "{}", decodeResponse(t, body[:s.Safe()]+string(got)).Message.ToolCalls[0].Arguments)

	changed.Message.Parts[0].Text = "Other" // was shown
	_, err = s.Rest(s.Safe(), changed)
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = s.Rest(s.Safe(), &middleware.Response{})
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

// A list of content, as Mistral has it, goes on after the elements that were shown.
func TestRestOfAList(t *testing.T) {
	t.Parallel()
	piece := func(content string) string {
		return `{"id":"a","model":"m-1","choices":[{"index":0,"delta":{"content":[` + content + `]}}]}`
	}
	hm, on := `{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}`, `{"type":"text","text":"On"}`
	call := `{"id":"a","model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}}]}`
	end := `{"id":"a","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	shown := eventStream(piece(hm), piece(on))
	for name, c := range map[string]struct {
		later []string // content behind the call
		index int      // of a part to change, and
		text  string   // its text
		err   error
	}{
		"no more":                    {index: 1, text: "On"},
		"the text goes on":           {later: []string{piece(`{"type":"text","text":"e."}`)}, index: 1, text: "One."},
		"and another element":        {later: []string{piece(`{"type":"text","text":"e."}`), piece(hm)}, index: 2, text: "Hm."},
		"a changed text goes on":     {index: 1, text: "On and on"},
		"what was shown has changed": {index: 1, text: "Off", err: codec.ErrShown},
		"reasoning has changed":      {index: 0, text: "Hm. Hm.", err: codec.ErrShown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := chat.Format{}.NewStream(nil, nil)
			_, err := s.Write([]byte(shown + eventStream(append(append([]string{call}, c.later...), end, "[DONE]")...)))
			require.NoError(t, err)
			require.Equal(t, len(shown), s.Safe())
			resp, err := s.Close()
			require.NoError(t, err)
			resp = resp.Clone()
			resp.Message.Parts[c.index].Text = c.text
			got, err := s.Rest(s.Safe(), resp)
			require.ErrorIs(t, err, c.err)
			if c.err == nil {
				require.Equal(t, withoutNative(resp.Message), withoutNative(decodeResponse(t, shown+string(got)).Message))
			}
		})
	}
}

// Sound is shown as it comes: of the message only its id is written.
func TestSoundIsShown(t *testing.T) {
	t.Parallel()
	s := chat.Format{}.NewStream(&middleware.Request{Tools: []middleware.Tool{{Name: "f"}}}, nil)
	sound := eventStream(`{"choices":[{"index":0,"delta":{"role":"assistant","audio":{"id":"a","transcript":"Hm."}}}]}`, `{"choices":[{"index":0,"delta":{"audio":{"data":"AAAA"}}}]}`)
	_, err := s.Write([]byte(sound))
	require.NoError(t, err)
	require.Equal(t, len(sound), s.Safe())
}

// openai-python skips chunks whose object differs from the first one.
func TestObjectOfChunks(t *testing.T) {
	t.Parallel()
	call := `"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	for _, first := range []string{`{"id":"x",`, `{"id":"x","object":null,`, `{"object":"other","id":"x",`} {
		s := chat.Format{}.NewStream(nil, nil)
		_, err := s.Write([]byte(eventStream(first + call)))
		require.NoError(t, err)
		resp, err := s.Close()
		require.NoError(t, err)
		got, err := s.Rest(0, resp)
		require.NoError(t, err)
		require.Equal(t, strings.Count(string(got), "\ndata: {")+1, strings.Count(string(got), `"object":"chat.completion.chunk"`), "%s", got)
	}
}

// After a refusal in the stream, a later answer goes on all the same.
func TestRestAfterError(t *testing.T) {
	t.Parallel()
	shown := eventStream(`{"id":"one","choices":[{"index":0,"delta":{"content":"Hm. "}}]}`)
	s := chat.Format{}.NewStream(nil, nil)
	_, err := s.Write([]byte(shown + eventStream(`{"error":{"code":"tool_use_failed","message":"m"}}`)))
	require.NoError(t, err)
	_, err = s.Close()
	require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
	got, err := s.Rest(s.Safe(), decodeResponse(t, streams["text"]))
	require.NoError(t, err)
	require.Equal(t, "Hm. Hello", decodeResponse(t, shown+string(got)).Message.Text())
}

// A letter that is divided between two deltas of text is one letter.
func TestDividedLettersOfText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"divided":               {[]string{`a\ud83d`, `\ude00b`}, "a\U0001f600b"},
		"a half alone":          {[]string{`\uD83D`, `\uDE00`}, "\U0001f600"},
		"no second half":        {[]string{`a\ud83d`, "b", "c"}, "a\ufffdbc"},
		"two first halves":      {[]string{`\ud83d`, `\ud83d`, `\ude00`}, "\ufffd\U0001f600"},
		"an escaped backslash":  {[]string{`a\\ud83d`, `b`}, `a\ud83db`},
		"whole, then a literal": {[]string{`\ud83d\ude00`, "b"}, "\U0001f600b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var events []string
			for _, p := range c.pieces {
				events = append(events, `{"id":"x","choices":[{"index":0,"delta":{"content":"`+p+`"},"finish_reason":null}]}`)
			}
			var told strings.Builder
			s := chat.Format{}.NewStream(nil, func(e middleware.Event) error { told.WriteString(e.Text); return nil })
			_, err := s.Write([]byte(eventStream(append(events, `{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")...)))
			require.NoError(t, err)
			resp, err := s.Close()
			require.NoError(t, err)
			require.Equal(t, c.want, resp.Message.Text())
			require.Equal(t, c.want, told.String())
		})
	}
}

// A server may put an error into a stream as a line without a field. An object in such a line
// without an error is ignored.
func TestErrorWithoutAField(t *testing.T) {
	t.Parallel()
	begin := eventStream(`{"id":"one","choices":[{"index":0,"delta":{"content":"Hm."}}]}`)
	end := eventStream(`{"id":"one","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
	for _, line := range []string{`{"error":null}`, `{"error":{}}`, `{"x":1}`} {
		require.Equal(t, "Hm.", decodeResponse(t, begin+line+"\n\n"+end).Message.Text(), line)
	}
	var failed *middleware.ModelError
	for _, line := range []string{`{"error":"busy"}`, `{"error":{"message":"busy","code":"c"}}`} {
		_, err := codec.Decode(chat.Format{}.NewStream(nil, nil), []byte(begin+line+"\n\n"+end))
		require.ErrorAs(t, err, &failed, line)
		require.ErrorContains(t, failed, "busy")
	}
}
