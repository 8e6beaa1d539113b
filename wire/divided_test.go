package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// TestDividedCalls: of streams of chat completions from which clients put different calls
// together, all clients get the calls that were read.
func TestDividedCalls(t *testing.T) {
	t.Parallel()
	chunkOf := func(choices string) string {
		return `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[` + choices + `]}`
	}
	calls := func(calls ...string) string {
		return chunkOf(`{"index":0,"delta":{"tool_calls":[` + strings.Join(calls, ",") + `]}}`)
	}
	const (
		opened = `{"index":0,"id":"c1","type":"function","function":{"name":"pay","arguments":""}}`
		piece  = `{"index":0,"function":{"arguments":"{\"amount\":5}"}}`
		whole  = `{"index":0,"id":"c1","type":"function","function":{"name":"pay","arguments":"{\"amount\":5}"}}`
		other  = `{"index":1,"id":"c2","type":"function","function":{"name":"ping","arguments":"{}"}}`
		end    = `{"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
		failed = `{"error":{"message":"m","type":"server_error"}}`
		old    = `{"index":0,"delta":{"function_call":{"name":"pay","arguments":"{"}}}`
		older  = `{"index":0,"delta":{"function_call":{"arguments":"\"amount\":5}"}}}`
	)
	ended := func(events ...string) string {
		return "data: " + strings.Join(append(events, end, "[DONE]"), "\n\ndata: ") + "\n\n"
	}
	for name, body := range map[string]string{
		"one call":      ended(calls(opened), calls(piece)),
		"two calls":     ended(calls(whole), calls(other)),
		"an older call": ended(chunkOf(old), chunkOf(older)),
	} {
		resp, err := wire.OpenAIChat().DecodeResponse(nil, []byte(body))
		require.NoError(t, err, name)
		require.Equal(t, "pay", resp.Message.ToolCalls[0].Name)
		require.JSONEq(t, `{"amount":5}`, resp.Message.ToolCalls[0].Arguments)
	}
	for name, body := range map[string]string{
		"an index in another spelling":         ended(calls(opened), calls(edited(t, piece, `"index":0`, `"index":"0"`))),
		"an id that is not text":               ended(calls(opened), calls(edited(t, piece, `"index":0`, `"index":0,"id":[]`))),
		"another id":                           ended(calls(opened), calls(edited(t, piece, `"index":0`, `"index":0,"id":"c2"`))),
		"a delta in front of the last call":    ended(calls(opened), calls(other), calls(piece)),
		"one index, and arguments of one call": ended(calls(opened), calls(edited(t, other, `"index":1`, `"index":0`))),
		"a chunk of another answer":            ended(calls(opened), edited(t, calls(piece), `"id":"x"`, `"id":"y"`)),
		"a chunk of another kind":              ended(calls(opened), edited(t, calls(piece), `chat.completion.chunk`, `chunk`)),
		"an older call in chunks of two kinds": ended(chunkOf(old), edited(t, chunkOf(older), `chat.completion.chunk`, `chunk`)),
		"two choices of one index":             ended(chunkOf(`{"index":0,"delta":{"tool_calls":[` + whole + `]}},{"index":0,"delta":{}}`)),
		"a call in a later choice":             ended(chunkOf(`{"index":1,"delta":{}},{"index":0,"delta":{"tool_calls":[` + whole + `]}}`)),
		"a call behind the end":                ended() + ended(calls(whole)),
		"a call behind an error":               ended(failed, calls(whole)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireOneReading(t, wire.OpenAIChat(), body)
		})
	}
}

// Clients read the first candidate of each chunk, whatever its index: what is written
// begins with the first one.
func TestGeminiCallBehindAnotherCandidate(t *testing.T) {
	t.Parallel()
	const call = `{"index":0,"content":{"role":"model","parts":[{"functionCall":{"name":"pay","args":{"amount":5}}}]},"finishReason":"STOP"}`
	const other = `{"index":1,"content":{"role":"model","parts":[{"text":"or"}]},"finishReason":"STOP"}`
	answer := func(candidates string) []byte { return []byte(`data: {"candidates":[` + candidates + `]}` + "\n\n") }
	_, err := wire.Gemini().DecodeResponse(nil, answer(call+","+other))
	require.NoError(t, err)
	resp, err := wire.Gemini().DecodeResponse(nil, answer(other+","+call))
	require.NoError(t, err)
	out, err := wire.Gemini().EncodeResponse(resp)
	require.NoError(t, err)
	require.Less(t, strings.Index(string(out), `"index":0`), strings.Index(string(out), `"index":1`))
}

// What a list holds is not a line: an object inside a line that has a call does not
// make that line safe to show.
func TestOllamaLinesBehindAList(t *testing.T) {
	t.Parallel()
	const call = `{"message":{"role":"assistant","tool_calls":[{"function":{"name":"pay","arguments":{"amount":5}}}]},"also":{"message":{"content":"Hi."}},"done":false}` + "\n"
	for _, list := range []string{"[DONE]\n", "[]\n", "["} {
		var shown string
		s := wire.Ollama().NewStream(nil, func(e middleware.Event) error { shown += e.Text; return nil })
		_, err := s.Write([]byte(list + call))
		require.ErrorIs(t, err, wire.ErrShape)
		require.Empty(t, shown)
		require.Zero(t, s.Safe())
		require.Empty(t, s.Take())
	}
}

// Text after a list is not safe to show, even if an object in it could be an element.
func TestGeminiBehindAList(t *testing.T) {
	t.Parallel()
	const text = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi."}]}}]}`
	const call = `{"candidates":{"content":{"role":"model","parts":[{"functionCall":{"name":"pay","args":{"amount":5}}}]}},"also":` + text + `}`
	s := wire.Gemini().NewStream(nil, nil)
	_, err := s.Write([]byte("[" + text + "]" + call))
	require.NoError(t, err)
	require.Equal(t, len("["+text), s.Safe())
}
