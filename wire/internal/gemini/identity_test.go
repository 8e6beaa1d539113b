package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// throughJSON returns v as a program reads it back that keeps conversations.
func throughJSON[T any](t *testing.T, v *T) *T {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	out := new(T)
	require.NoError(t, json.Unmarshal(b, out))
	return out
}

// A history of equal turns, without ids, that is cut at its front: results stay in
// the content that they came in.
func TestCutHistoryOfEqualTurns(t *testing.T) {
	t.Parallel()
	turn := func(b string) string {
		return `{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}},{"functionCall":{"name":"b","args":{}}}]}` +
			`,{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"ok"}}},{"functionResponse":{"name":"b","response":{"output":"` + b + `"}}}]}`
	}
	contents := []string{`{"role":"user","parts":[{"text":"Go"}]}`, turn("1"), turn("2"), turn("2"), turn("3"), turn("3")}
	body := func(contents ...string) string { return `{"contents":[` + strings.Join(contents, ",") + `]}` }
	for cut := range len(contents) - 1 {
		for _, isStored := range []bool{false, true} {
			req := decodeRequest(t, body(contents...))
			if isStored {
				req = throughJSON(t, req)
			}
			req.Messages = req.Messages[1+3*cut:]
			req = req.With(middleware.User("more"))
			left := append(contents[1+cut:len(contents):len(contents)], `{"role":"user","parts":[{"text":"more"}]}`)
			require.Equal(t, body(left...), encodeRequest(t, req), "cut %d, stored %t", cut, isStored)
			again := req.Messages[len(req.Messages)-4 : len(req.Messages)-1]
			require.Equal(t, body(append(left, turn("3"))...), encodeRequest(t, req.With(again...)), "with the last turn once more")
		}
	}
}

// Results of one content that a middleware swaps are written in their new order.
func TestSwappedResults(t *testing.T) {
	t.Parallel()
	const calls = `{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}},{"functionCall":{"name":"b","args":{}}}]}`
	results := []string{`{"functionResponse":{"name":"a","response":{"output":"1"}}}`, `{"functionResponse":{"name":"b","response":{"output":"2"}}}`}
	req := decodeRequest(t, `{"contents":[`+calls+`,{"parts":[`+results[0]+` , `+results[1]+`]}]}`)
	for _, req := range []*middleware.Request{req.Clone(), throughJSON(t, req)} {
		m := req.Messages
		m[1], m[2] = m[2], m[1]
		require.Equal(t, `{"contents":[`+calls+`,{"parts":[`+results[1]+` , `+results[0]+`]}]}`, encodeRequest(t, req))
	}
}

// A refused call that did not change keeps its finish reason after storage, whatever
// its place in the conversation.
func TestStoredRefusedCall(t *testing.T) {
	t.Parallel()
	const body = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"sea","args":{}}}]},"finishReason":"UNEXPECTED_TOOL_CALL"}]}`
	resp, err := codec.Decode(format.NewStream(decodeRequest(t, fullRequest), nil), []byte(body))
	require.NoError(t, err)
	require.Equal(t, "toolmend_3", resp.Message.ToolCalls[0].ID)
	require.Contains(t, encodeResponse(t, throughJSON(t, resp)), `"finishReason":"UNEXPECTED_TOOL_CALL"`)
}
