package gemini_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// readStream returns a stream that has read body.
func readStream(t testing.TB, body string) codec.Stream {
	t.Helper()
	s := format.NewStream(decodeRequest(t, plainRequest), nil)
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	return s
}

// Text is shown at once; nothing is safe from the first call on.
func TestLiveText(t *testing.T) {
	t.Parallel()
	for _, body := range []string{callStream, arrayStream} {
		var got []middleware.Event
		s := format.NewStream(nil, func(e middleware.Event) error { got = append(got, e); return nil })
		call := strings.Index(body, `"functionCall"`)
		for i := range call {
			_, err := s.Write([]byte(body[i : i+1]))
			require.NoError(t, err)
		}
		text := ""
		for _, e := range got {
			if e.Kind == middleware.EventText {
				text += e.Text
			}
		}
		require.Equal(t, "Let me look.", text, "before the call is read")
		safe := s.Safe()
		require.Greater(t, safe, strings.Index(body, "look."))
		_, err := s.Write([]byte(body[call:]))
		require.NoError(t, err)
		require.Equal(t, safe, s.Safe())
	}
	require.Zero(t, readStream(t, callAnswer).Safe(), "it is not streamed")
	require.Less(t, readStream(t, eventStream(`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, `{"candidates":[{"finishReason":"STOP"}]}`)).Safe(), 80, "nor is the end")
}

func TestSinkEndsTheStream(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	s := format.NewStream(nil, func(middleware.Event) error { return gone })
	_, err := s.Write([]byte(callStream))
	require.ErrorIs(t, err, gone)
	_, err = s.Write([]byte(callStream))
	require.ErrorIs(t, err, gone)
	_, err = s.Close()
	require.ErrorIs(t, err, gone)
}

func TestRestOfItsOwn(t *testing.T) {
	t.Parallel()
	cases := []string{"events", "array"}
	casefile.OneForEach(t, slices.Values(cases))
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := casefile.Body(t, "before")
			s := readStream(t, body)
			sent := s.Safe()
			require.Positive(t, sent)
			resp, err := s.Close()
			require.NoError(t, err)
			resp.Message.ToolCalls[0].Arguments = `{"n":1}`
			tail, err := s.Rest(sent, resp)
			require.NoError(t, err)
			casefile.Expect(t, "after", body[:sent]+string(tail))

			resp.Message.ToolCalls = []middleware.ToolCall{{ID: "toolmend_1", Name: "tide", Arguments: "{}"}}
			_, err = s.Rest(sent, resp)
			require.NoError(t, err, "a new call takes the place of those that were held")
			resp.Message.Parts[len(resp.Message.Parts)/3].Text = "something else"
			_, err = s.Rest(sent, resp)
			require.ErrorIs(t, err, codec.ErrUnencodable, "the text was shown")
			_, err = s.Rest(len(body)+1, resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

// After a re-ask the later answer's chunks follow, in the frame and under the
// id of the first.
func TestRestOfALaterAnswer(t *testing.T) {
	t.Parallel()
	cases := []string{"events, events", "events, array", "events, object", "array, events", "array, object"}
	casefile.OneForEach(t, slices.Values(cases))
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := casefile.Body(t, "first")
			s := readStream(t, first)
			sent := s.Safe()
			_, err := s.Close()
			require.NoError(t, err)
			later := decodeResponse(t, casefile.Body(t, "later"))
			later.Message.ToolCalls[0].Arguments = `{"n":1}`
			later.Usage.InputTokens, later.Usage.OutputTokens = 99, 98
			tail, err := s.Rest(sent, later)
			require.NoError(t, err)
			body := first[:sent] + string(tail)
			casefile.Expect(t, "spliced", body)
			got := decodeResponse(t, body)
			require.Equal(t, "Let me look."+later.Message.Text(), got.Message.Text())
			require.Len(t, got.Message.ToolCalls, len(later.Message.ToolCalls))
			require.Equal(t, `{"n":1}`, got.Message.ToolCalls[0].Arguments)
			require.Equal(t, int64(99), got.Usage.InputTokens)
			require.Equal(t, int64(98), got.Usage.OutputTokens)
			require.Equal(t, middleware.FinishToolCalls, got.FinishReason)
			require.Contains(t, body, "r-1")
			require.NotContains(t, body, "r-2")
			require.NotContains(t, body, "r-3")

			whole, err := s.Rest(0, later)
			require.NoError(t, err)
			require.Equal(t, encodeResponse(t, later), string(whole), "nothing was shown")
		})
	}
}

// A client that looks for one kind of line ends only finds the end of a failure.
func TestFailureHasTheLineEndsOfItsStream(t *testing.T) {
	t.Parallel()
	s := readStream(t, callStream)
	require.Contains(t, string(s.Fail(s.Safe(), 500, "", "gone")), "}\r\n\r\n")
	s = readStream(t, strings.ReplaceAll(callStream, "\r\n", "\n"))
	require.NotContains(t, string(s.Fail(s.Safe(), 500, "", "gone")), "\r")
}

// Reasoning of another provider is a thought without a signature in an answer.
func TestReasoningOfAnotherProvider(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, callStream)
	resp.Message.Parts = append(resp.Message.Parts, middleware.Part{Kind: middleware.PartReasoning, Text: "so", Native: &middleware.Native{Dialect: "other", Raw: "{}"}})
	require.Contains(t, encodeResponse(t, resp), `{"text":"so","thought":true}`)
}

// Gemini ends a stream with a chunk of empty text. Gemini CLI keeps nothing of a chunk with
// such a part. So a chunk with a call has no empty text: its next request would miss the call.
func TestNoEmptyTextBesideACall(t *testing.T) {
	t.Parallel()
	const start, end = `data: {"candidates":[{"content":{"role":"model","parts":[`, "\n\n"
	s := readStream(t, start+`{"text":"Let me look."}]},"index":0}]}`+end+
		start+`{"functionCall":{"id":"c","name":"tide","args":{"m":1}}}]},"index":0}]}`+end+
		start+`{"text":""}]},"finishReason":"STOP","index":0}]}`+end)
	sent := s.Safe()
	require.Positive(t, sent)
	resp, err := s.Close()
	require.NoError(t, err)
	resp.Message.ToolCalls[0].Arguments = `{"n":1}`
	for _, sent := range []int{0, sent} {
		tail, err := s.Rest(sent, resp)
		require.NoError(t, err)
		require.Contains(t, string(tail), `"args":{"n":1}`)
		require.NotContains(t, string(tail), `"text":""`)
	}
}
