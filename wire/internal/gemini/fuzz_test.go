package gemini_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const otherArguments = `{"other":[1.50,"ø"]}`

// FuzzRequest: whatever is a request is written as it was, and an edit of a
// call's arguments is just that edit, or is refused.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{plainRequest, fullRequest, snakeRequest,
		`{"contents":{"parts":[{"functionCall":{"name":"a"}}],"role":"model"}}`,
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"a","args":null,"args":{}},"functionCall":{"args":[]}}]}],"contents":[]}`,
		`{"contents":[],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"ARRAY","items":{"any_of":[{"type":6}]},"min_items":"2","nullable":true}}],"computerUse":{}}]}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { requireRequestLaws(t, string(body)) })
}

// requireRequestLaws holds body to the laws of FuzzRequest.
func requireRequestLaws(t require.TestingT, body string) {
	req, err := format.DecodeRequest([]byte(body))
	if err != nil {
		require.ErrorIs(t, err, codec.ErrShape)
		return
	}
	out, err := format.EncodeRequest(req)
	require.NoError(t, err)
	require.Equal(t, body, string(out))
	for i, m := range req.Messages {
		for j := range m.ToolCalls {
			edited := req.Clone()
			edited.Messages[i].ToolCalls[j].Arguments = otherArguments
			requireRequestReadBack(t, edited)
		}
		if i < 5 && len(m.Parts) > 0 {
			edited := req.Clone()
			edited.Messages[i].Parts[0].Text = "other"
			requireRequestReadBack(t, edited)
		}
	}
	requireRequestReadBack(t, req.With(middleware.User("more"), middleware.Assistant("so", middleware.ToolCall{ID: "c", Name: "n", Arguments: "{}"}),
		middleware.ToolReply(middleware.ToolCall{ID: "c", Name: "n"}, "done")))
	edited := req.Clone()
	edited.MaxTokens, edited.Stop, edited.ToolChoice = 77, []string{"."}, middleware.ToolChoice{Name: "n"}
	edited.Tools = append(edited.Tools, middleware.Tool{Name: "n"})
	requireRequestReadBack(t, edited)
	if len(req.Messages) > 0 {
		edited := req.Clone()
		edited.Messages = edited.Messages[1:]
		_, err := format.EncodeRequest(edited)
		require.True(t, err == nil || errors.Is(err, codec.ErrUnencodable), "%v", err)
	}
}

// requireRequestReadBack requires that what is written of req is read as req.
func requireRequestReadBack(t require.TestingT, req *middleware.Request) {
	body, err := format.EncodeRequest(req)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrUnencodable)
		return
	}
	got, err := format.DecodeRequest(body)
	require.NoError(t, err, "%s", body)
	require.Equal(t, withoutNative(req.Messages), withoutNative(got.Messages), "%s", body)
	require.Equal(t, []any{len(req.Tools), req.MaxTokens, req.Stop, req.ToolChoice},
		[]any{len(got.Tools), got.MaxTokens, got.Stop, got.ToolChoice}, "%s", body)
}

// withoutNative returns messages without what the provider wrote. Which calls are
// builtin is known from the tools, not from the call.
func withoutNative(messages []middleware.Message) []middleware.Message {
	out := make([]middleware.Message, len(messages))
	for i, m := range messages {
		m = m.Clone()
		m.Native = nil
		for j := range m.Parts {
			m.Parts[j].Native = nil
		}
		for j := range m.ToolCalls {
			m.ToolCalls[j].Native = nil
			if m.ToolCalls[j].Kind == middleware.KindBuiltin {
				m.ToolCalls[j].Kind = middleware.KindFunction
			}
		}
		if len(m.Parts) == 0 {
			m.Parts = nil
		}
		if len(m.ToolCalls) == 0 {
			m.ToolCalls = nil
		}
		out[i] = m
	}
	return out
}

// FuzzAnswer: however an answer is cut, it is the same one; it is written as it
// was; edits are seen or refused.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{callAnswer, callStream, arrayStream, laterStream, partialStream,
		`[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]`,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`,
		`{"candidates":[{"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"b"}]}}]}`,
		"data: {\"candidates\":[{\"content\":\ndata: {\"parts\":[{\"functionCall\":{\"name\":\"f\"}}]},\"finishReason\":\"STOP\"}]}\n\n",
		"data: {\"candidates\":[{\"content\":{\"parts\":{\"text\":\"a\"}}}]}\n\n{\"error\":{\"message\":\"late\"}}\n"} {
		f.Add([]byte(body), uint16(7))
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) { requireAnswerLaws(t, string(body), int(cut)) })
}

// requireAnswerLaws holds text to the laws of FuzzAnswer.
func requireAnswerLaws(t require.TestingT, text string, cut int) {
	if resp, err := codec.Decode(format.NewStream(nil, nil), []byte(text)); err == nil {
		_, err := format.EncodeResponse(resp)
		require.NoError(t, err)
	}
	text = codec.Clean(text) // as it is written
	body := []byte(text)
	resp, err := codec.Decode(format.NewStream(nil, nil), body)
	s := format.NewStream(nil, nil)
	safe := 0
	for rest := body; len(rest) > 0; {
		n := min(len(rest), 1+cut)
		if _, err := s.Write(rest[:n]); err != nil {
			break
		}
		require.GreaterOrEqual(t, s.Safe(), safe)
		rest, safe = rest[n:], s.Safe()
	}
	again, err2 := s.Close()
	require.Equal(t, err == nil, err2 == nil, "%v, %v", err, err2)
	if err != nil {
		var refused *middleware.ModelError
		require.True(t, errors.Is(err, codec.ErrShape) || errors.Is(err, codec.ErrIncomplete) || errors.As(err, &refused), "%v", err)
		return
	}
	require.Equal(t, withoutNative([]middleware.Message{resp.Message}), withoutNative([]middleware.Message{again.Message}))
	require.Equal(t, resp.Usage, again.Usage)
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	requireSame(t, string(body), string(out))
	shown, _, _ := s.Output()
	shown = shown[:safe]
	tail, err := s.Rest(safe, again)
	require.NoError(t, err)
	if got := shown + string(tail); got != text { // but for parts without a text, which are not repeated
		read, err := codec.Decode(format.NewStream(nil, nil), []byte(got))
		require.NoError(t, err, "%s", got)
		require.Equal(t, resp.Message.Text(), read.Message.Text())
		require.Len(t, read.Message.ToolCalls, len(resp.Message.ToolCalls))
		for i, c := range read.Message.ToolCalls {
			require.Equal(t, resp.Message.ToolCalls[i].Arguments, c.Arguments)
		}
		require.Equal(t, resp.Usage, read.Usage)
	}
	for i := range resp.Message.ToolCalls {
		edited := resp.Clone()
		edited.Message.ToolCalls[i].Arguments = otherArguments
		requireAnswerReadBack(t, edited)
	}
	edited := resp.Clone()
	edited.Message.ToolCalls = append(edited.Message.ToolCalls, middleware.ToolCall{ID: "new", Name: "n", Arguments: "{}"})
	requireAnswerReadBack(t, edited)
	if tail, err := s.Rest(safe, decodeLaterStream(t)); err == nil {
		_, err := codec.Decode(format.NewStream(nil, nil), []byte(shown+string(tail)))
		require.NoError(t, err, "%q %q", shown, tail)
	}
}

// decodeLaterStream returns the answer to a re-ask.
func decodeLaterStream(t require.TestingT) *middleware.Response {
	resp, err := codec.Decode(format.NewStream(nil, nil), []byte(laterStream))
	require.NoError(t, err)
	return resp
}

// requireAnswerReadBack requires that what is written of resp is read as resp.
func requireAnswerReadBack(t require.TestingT, resp *middleware.Response) {
	body, err := format.EncodeResponse(resp)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrUnencodable)
		return
	}
	got, err := codec.Decode(format.NewStream(nil, nil), body)
	require.NoError(t, err, "%s", body)
	want := withoutNative([]middleware.Message{resp.Message})
	for i, c := range want[0].ToolCalls { // on one line where an event must be
		want[0].ToolCalls[i].Arguments = codec.OneLine(c.Arguments)
	}
	have := withoutNative([]middleware.Message{got.Message})
	for i, c := range have[0].ToolCalls {
		have[0].ToolCalls[i].Arguments = codec.OneLine(c.Arguments)
	}
	require.Equal(t, want, have, "%s", body)
	require.Equal(t, resp.Usage, got.Usage)
}

// The schemas of strangers are translated without a word about their sense.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{`{"type":"STRING","nullable":true,"enum":["a"]}`, `{"type":"OBJECT","property_ordering":["a"],"properties":{"type":{"type":2,"enum":["1"]}}}`,
		`{"anyOf":[],"nullable":true,"type":"TYPE_UNSPECIFIED","minItems":"3"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		req, err := format.DecodeRequest([]byte(`{"contents":[],"tools":[{"functionDeclarations":[{"name":"f","parameters":` + schema + `}]}]}`))
		if err != nil || len(req.Tools) != 1 || req.Tools[0].Parameters == nil {
			return
		}
		doc, err := rawjson.Parse(string(req.Tools[0].Parameters), rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1, AnyBytes: true})
		require.NoError(t, err, "%s", req.Tools[0].Parameters)
		require.Equal(t, rawjson.Object, doc.Root().Kind())
	})
}
