package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/gemini"
)

// twoWinds asks twice for the same function, without ids.
const twoWinds = `{"contents":[{"role":"user","parts":[{"text":"Wind?"}]},{"role":"model","parts":[` +
	`{"functionCall":{"name":"wind","args":{"n":1}}},{"functionCall":{"name":"wind","args":{"n":2}}}]}]}`

// Without ids the server gives results to the calls in order: those in another
// order would answer the wrong calls.
func TestResultsInAnotherOrder(t *testing.T) {
	t.Parallel()
	first := middleware.Message{Role: middleware.RoleTool, ToolCallID: "toolmend_1", ToolName: "wind", Parts: []middleware.Part{{Text: "one"}}}
	second := middleware.Message{Role: middleware.RoleTool, ToolCallID: "toolmend_2", Parts: []middleware.Part{{Text: "two"}}}
	req, err := gemini.Format{}.DecodeRequest([]byte(twoWinds))
	require.NoError(t, err)
	_, err = gemini.Format{}.EncodeRequest(req.With(second, first))
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = gemini.Format{}.EncodeRequest(req.With(second))
	require.ErrorIs(t, err, codec.ErrUnencodable)

	body, err := gemini.Format{}.EncodeRequest(req.With(first, second))
	require.NoError(t, err)
	got, err := gemini.Format{}.DecodeRequest(body)
	require.NoError(t, err)
	require.Equal(t, "toolmend_2", got.Messages[3].ToolCallID)
	got.Messages[2], got.Messages[3] = got.Messages[3], got.Messages[2]
	_, err = gemini.Format{}.EncodeRequest(got)
	require.ErrorIs(t, err, codec.ErrUnencodable)

	const withIDs = `{"contents":[{"role":"user","parts":[{"text":"Wind?"}]},{"role":"model","parts":[` +
		`{"functionCall":{"name":"wind","args":{"n":1},"id":"a"}},{"functionCall":{"name":"wind","args":{"n":2},"id":"b"}}]}]}`
	req, err = gemini.Format{}.DecodeRequest([]byte(withIDs))
	require.NoError(t, err)
	first.ToolCallID, second.ToolCallID = "a", "b"
	_, err = gemini.Format{}.EncodeRequest(req.With(second, first))
	require.NoError(t, err)
}

// A turn that begins with a text has no open calls of the one before.
func TestATurnInTwoContents(t *testing.T) {
	t.Parallel()
	const result = `{"role":"user","parts":[{"functionResponse":{"name":"wind","response":{"output":"calm"}}}]}`
	const call = `{"role":"model","parts":[{"functionCall":{"name":"wind","args":{}}}]}`
	req, err := gemini.Format{}.DecodeRequest([]byte(`{"contents":[` + call + `,` + result + `,{"role":"model","parts":[{"text":"Once more."}]},` + call + `,` + result + `]}`))
	require.NoError(t, err)
	require.Equal(t, "toolmend_2", req.Messages[3].ToolCalls[0].ID)
	require.Equal(t, "toolmend_2", req.Messages[4].ToolCallID)
}

func TestCloseTwice(t *testing.T) {
	t.Parallel()
	s := gemini.Format{}.NewStream(nil, nil)
	_, err := s.Write([]byte(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`))
	require.NoError(t, err)
	for range 2 {
		resp, err := s.Close()
		require.NoError(t, err)
		require.Len(t, resp.Choices, 1)
	}
}

// White space before the data is JSON's: a call after it is read and held.
func TestSpaceBeforeTheData(t *testing.T) {
	t.Parallel()
	const text = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"a\"}]}}]}\n\n"
	for name, data := range map[string]string{"two spaces": "data:  ", "an empty line of data": "data:\ndata: "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gemini.Format{}.NewStream(nil, nil)
			_, err := s.Write([]byte(text + data + "{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"wind\",\"args\":{\"n\":1}}}]},\"finishReason\":\"STOP\"}]}\n\n"))
			require.NoError(t, err)
			require.Equal(t, len(text), s.Safe())
			resp, err := s.Close()
			require.NoError(t, err)
			require.Len(t, resp.Message.ToolCalls, 1)
			resp.Message.ToolCalls[0].Arguments = `{"n":2}`
			body, err := gemini.Format{}.EncodeResponse(resp)
			require.NoError(t, err)
			require.Contains(t, string(body), `{"n":2}`)
		})
	}
}

// The signature of a call in pieces is echoed with it, whichever piece has it.
func TestSignatureBehindACallInPieces(t *testing.T) {
	t.Parallel()
	resp, err := codec.Decode(gemini.Format{}.NewStream(nil, nil), []byte(
		"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"wind\",\"willContinue\":true}}]}}]}\n\n"+
			"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"partialArgs\":[{\"jsonPath\":\"$.a\",\"stringValue\":\"x\"}]},\"thoughtSignature\":\"c2ln\"}]},\"finishReason\":\"STOP\"}]}\n\n"))
	require.NoError(t, err)
	require.Equal(t, `{"role":"model","parts":[{"functionCall":{"name":"wind","args":{"a":"x"}},"thoughtSignature":"c2ln"}]}`, resp.Message.Native.Raw)
}
