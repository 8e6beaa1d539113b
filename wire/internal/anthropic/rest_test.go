package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// readAndClose feeds body to a stream and closes it.
func readAndClose(t *testing.T, body string) (codec.Stream, *middleware.Response, error) {
	t.Helper()
	s := format.NewStream(decodeRequest(t, asked), nil)
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	resp, err := s.Close()
	return s, resp, err
}

// restOf returns what follows the bytes that were sent so that the client reads resp.
func restOf(t *testing.T, s codec.Stream, sent int, resp *middleware.Response) string {
	t.Helper()
	b, err := s.Rest(sent, resp)
	require.NoError(t, err)
	return string(b)
}

// shownOf returns what a client may have been shown of s.
func shownOf(s codec.Stream) string {
	out, safe, _ := s.Output()
	return out[:safe]
}

func TestRestOfItsOwn(t *testing.T) {
	t.Parallel()
	s, resp, err := readAndClose(t, talk)
	require.NoError(t, err)
	shown := shownOf(s)
	require.True(t, strings.HasPrefix(talk, shown))
	require.True(t, strings.HasSuffix(shown, blockStop(1)), "text is live, and the reasoning before it")
	for _, sent := range []int{0, strings.Index(talk, textDelta(1, "lo")), len(shown)} {
		for _, own := range []*middleware.Response{resp, throughJSON(t, resp)} {
			requireSameAnswer(t, resp, decodeResponse(t, talk[:sent]+restOf(t, s, sent, own)))
		}
		mended := resp.Clone()
		mended.Message.ToolCalls[0].Arguments = `{"a":2}`
		got := decodeResponse(t, talk[:sent]+restOf(t, s, sent, mended))
		require.Equal(t, withoutNative(mended.Message), withoutNative(got.Message))
		require.Equal(t, resp.Usage, got.Usage)
	}
	said := resp.Clone()
	said.Message.Parts[1].Text = "Hello again"
	require.Equal(t, "Hello again", decodeResponse(t, shown+restOf(t, s, len(shown), said)).Message.Text())
	said.Message.Parts[1].Text = "Bye"
	_, err = s.Rest(len(shown), said)
	require.ErrorIs(t, err, codec.ErrUnencodable, "what was shown cannot be taken back")
	said.Message.Parts = nil
	_, err = s.Rest(len(shown), said)
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = s.Rest(0, &middleware.Response{})
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = s.Rest(0, &middleware.Response{Native: &middleware.Native{Dialect: format.Dialect(), Raw: "{}"}})
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

// later is the answer to a re-ask.
var later = messageStreamOf("msg_2", textBlockStart(0), textDelta(0, "Now."), blockStop(0), toolBlockStart(1, "t9", "a"), inputDelta(1, `{"n":3}`), blockStop(1), messageEnd("tool_use", 30))

// The blocks of the later answer continue the numbers of the first, and its figures are at the
// end.
func TestSplice(t *testing.T) {
	t.Parallel()
	first := casefile.Body(t, "first")
	s, _, err := readAndClose(t, first)
	require.NoError(t, err)
	second := decodeResponse(t, casefile.Body(t, "later"))
	second.Usage = second.Usage.Add(middleware.Usage{InputTokens: 14, Cached: 4, OutputTokens: 20})
	sent := s.Safe()
	casefile.Expect(t, "spliced", first[:sent]+restOf(t, s, sent, second))
	for _, n := range []int{sent, strings.Index(first, blockStop(1))} { // shown so far, or a little less
		body := first[:n] + restOf(t, s, n, second)
		require.Equal(t, 1, strings.Count(body, `"type":"message_start"`))
		require.NotContains(t, body, "msg_2")
		got := decodeResponse(t, body)
		require.Equal(t, "HelloNow.", got.Message.Text())
		require.Equal(t, second.Usage, got.Usage)
		require.Equal(t, "t9", got.Message.ToolCalls[0].ID)
	}
	require.Equal(t, encodeResponse(t, second), restOf(t, s, 0, second), "nothing was shown: the whole answer")
}

func TestSpliceOfAWholeAnswer(t *testing.T) {
	t.Parallel()
	s, _, err := readAndClose(t, talk)
	require.NoError(t, err)
	second := decodeResponse(t, `{"id":"msg_2","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"so","signature":"s2"},`+
		`{"type":"text","text":"Now.","citations":[{"cited_text":"c"}]},{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}},`+
		`{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"redacted_thinking","data":"xx"},{"type":"tool_use","id":"t9","name":"a","input":{"n": 3}}],`+
		`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":8,"service_tier":"standard"},"context_management":{"applied_edits":[]}}`)
	body := talk[:s.Safe()] + restOf(t, s, s.Safe(), second)
	got := decodeResponse(t, body)
	require.Equal(t, "HelloNow.", got.Message.Text())
	require.Equal(t, second.Message.ToolCalls[0].Arguments, got.Message.ToolCalls[0].Arguments)
	require.Equal(t, second.FinishReason, got.FinishReason)
	require.Equal(t, second.Usage, got.Usage)
	require.Equal(t, "hm", got.Message.Parts[0].Text)
	for i, at := range []int{1, 2, 3} { // no reasoning of a second answer
		require.JSONEq(t, second.Message.Parts[at].Native.Raw, got.Message.Parts[i+2].Native.Raw)
	}
	require.Len(t, got.Message.Parts, 5)
	require.Contains(t, body, `"service_tier":"standard"`)
	require.Contains(t, body, `"context_management":{"applied_edits":[]}`)
}

// An answer that broke off in the middle of a text goes on after it: the block
// ends, and the other answer's follow.
func TestSpliceAfterAnError(t *testing.T) {
	t.Parallel()
	overloaded := event("error", `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"}}`)
	head := messageStream(textBlockStart(0), textDelta(0, "Hel"))
	s, _, err := readAndClose(t, head+overloaded)
	require.Error(t, err)
	require.Equal(t, len(head), s.Safe())
	body := head + restOf(t, s, len(head), decodeResponse(t, later))
	require.Equal(t, "HelNow.", decodeResponse(t, body).Message.Text())
	require.Contains(t, body, head+"event: content_block_stop\n"+`data: {"type":"content_block_stop","index":0}`+"\n\n")

	head = messageStream(blockStart(0, `{"type":"thinking","thinking":"","signature":""}`), blockDelta(0, "thinking_delta", "thinking", "h"))
	s, _, err = readAndClose(t, head+overloaded)
	require.Error(t, err)
	require.Zero(t, s.Safe(), "reasoning waits for what follows it")
	requireSameAnswer(t, decodeResponse(t, later), decodeResponse(t, restOf(t, s, 0, decodeResponse(t, later))))
	open := format.NewStream(nil, nil) // without tools it does not wait
	_, err = open.Write([]byte(head))
	require.NoError(t, err)
	_, err = open.Rest(len(head), decodeResponse(t, later))
	require.ErrorIs(t, err, codec.ErrUnencodable, "reasoning without its signature would be refused in history")

	head = ": welcome\n\n"
	s, _, err = readAndClose(t, head+overloaded)
	require.Error(t, err)
	for _, body := range []string{later, twoCalls} { // no message has begun
		want := decodeResponse(t, body)
		got := decodeResponse(t, head+restOf(t, s, len(head), want))
		require.Equal(t, want.Model, got.Model)
		require.Equal(t, want.Usage, got.Usage)
		require.Equal(t, withoutNative(want.Message), withoutNative(got.Message))
	}
}

// An answer that the reader refused in the middle goes on as one that broke off:
// Write has returned an error, so that its end was never read.
func TestSpliceAfterAnUnreadableEvent(t *testing.T) {
	t.Parallel()
	head := messageStream(textBlockStart(0), textDelta(0, "Hel"))
	s := format.NewStream(decodeRequest(t, asked), nil)
	_, err := s.Write([]byte(head + textBlockStart(0)))
	require.ErrorIs(t, err, codec.ErrShape, "a block that starts twice")
	_, err = s.Close()
	require.ErrorIs(t, err, codec.ErrShape)
	require.Equal(t, len(head), s.Safe())
	body := head + restOf(t, s, len(head), decodeResponse(t, later))
	require.Equal(t, "HelNow.", decodeResponse(t, body).Message.Text())
}

// A change of the later answer is in the continuation.
func TestSpliceOfAChangedAnswer(t *testing.T) {
	t.Parallel()
	s, _, err := readAndClose(t, talk)
	require.NoError(t, err)
	second := decodeResponse(t, later)
	second.Message.Parts[0].Text = "Then."
	second.Message.ToolCalls[0].Arguments = `{"n":4}`
	second.Message.ToolCalls = append(second.Message.ToolCalls, middleware.ToolCall{ID: "t10", Name: "b"})
	got := decodeResponse(t, talk[:s.Safe()]+restOf(t, s, s.Safe(), second))
	require.Equal(t, "HelloThen.", got.Message.Text())
	require.Equal(t, `{"n":4}`, got.Message.ToolCalls[0].Arguments)
	require.Equal(t, "t10", got.Message.ToolCalls[1].ID)
	require.Equal(t, "{}", got.Message.ToolCalls[1].Arguments)

	second.Message.Role = middleware.RoleUser
	_, err = s.Rest(s.Safe(), second)
	require.ErrorIs(t, err, codec.ErrUnencodable)
}
