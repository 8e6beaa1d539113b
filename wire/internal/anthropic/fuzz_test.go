package anthropic_test

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const otherArguments = `{"other": "line\nbreak ✓", "n":1.50}`

// requests and answers are what is mutated.
var (
	requests = []string{conversation, asked, `{"system":"S","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","id":"2","input":[]}]}]}`}
	answers  = []string{talk, twoCalls, later, `{"type":"error","error":{}}`, messageStream(textDelta(0, "a"), messageEnd("end_turn", 1))}
)

// withoutNative returns ms without what only the provider reads.
func withoutNative(ms ...middleware.Message) []middleware.Message {
	out := make([]middleware.Message, len(ms))
	for i, m := range ms {
		m = m.Clone()
		m.Native = nil
		if len(m.Parts) == 0 {
			m.Parts = nil
		}
		for j := range m.Parts {
			m.Parts[j].Native = nil
		}
		for j := range m.ToolCalls {
			m.ToolCalls[j].Native = nil
			m.ToolCalls[j].Arguments = cmp.Or(m.ToolCalls[j].Arguments, "{}") // a stream writes the input {} for none
		}
		out[i] = m
	}
	return out
}

func FuzzRequest(f *testing.F) {
	for _, s := range requests {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) { requireRequestLaws(t, string(body)) })
}

func FuzzAnswer(f *testing.F) {
	for _, s := range answers {
		f.Add([]byte(s), uint16(40))
	}
	f.Add([]byte("{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"a\",\"input\":{\"b\x97\x97\u2028\":1}}],\"stop_reason\":\"tool_use\",\"usage\":{}}"), uint16(40))
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) { requireAnswerLaws(t, string(body), int(cut)) })
}

// requireRequestLaws fails unless a request that is read comes out as it is,
// and takes edits or refuses them.
func requireRequestLaws(t tester, body string) {
	t.Helper()
	_ = format.Match("/v1/messages", []byte(body))
	req, err := format.DecodeRequest([]byte(body))
	if err != nil {
		require.ErrorIs(t, err, codec.ErrShape)
		return
	}
	require.Equal(t, body, encodeRequest(t, req))
	if utf8.ValidString(body) { // JSON has no place for other bytes
		require.Equal(t, body, encodeRequest(t, throughJSON(t, req)))
	}
	for i, m := range req.Messages {
		if len(m.ToolCalls) > 0 {
			edited := req.Clone()
			edited.Messages[i].ToolCalls[0].Arguments = otherArguments
			requireRequest(t, edited)
		}
		if len(m.Parts) > 0 && m.Parts[0].Kind == middleware.PartText {
			edited := req.Clone()
			edited.Messages[i].Parts[0].Text = "N"
			requireRequest(t, edited)
		}
	}
	requireRequest(t, req.WithSystem("N"))
	requireRequest(t, req.With(middleware.User("N")))
}

// requireRequest fails unless req is written as it is, or refused.
func requireRequest(t tester, req *middleware.Request) {
	t.Helper()
	body, err := format.EncodeRequest(req)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrUnencodable)
		return
	}
	require.Equal(t, withoutNative(req.Messages...), withoutNative(decodeRequest(t, string(body)).Messages...), "%s", body)
}

// requireAnswerLaws is requireRequestLaws for an answer, which is read in two
// pieces as well.
func requireAnswerLaws(t tester, body string, cut int) {
	t.Helper()
	if resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body)); err == nil {
		_, err := format.EncodeResponse(resp)
		require.NoError(t, err)
	}
	body = codec.Clean(body) // as it is written
	resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
	s := format.NewStream(nil, nil)
	cut = min(cut, len(body))
	_, first := s.Write([]byte(body[:cut]))
	_, second := s.Write([]byte(body[cut:]))
	got, closed := s.Close()
	if err != nil {
		require.Error(t, errors.Join(first, second, closed), "in two pieces")
		_, _ = s.Rest(s.Safe(), decodeResponse(t, later))
		return
	}
	require.NoError(t, errors.Join(first, second, closed))
	require.Equal(t, withoutNative(resp.Message), withoutNative(got.Message))
	again := decodeResponse(t, encodeResponse(t, resp))
	require.Equal(t, withoutNative(resp.Message), withoutNative(again.Message))
	require.Equal(t, resp.Usage, again.Usage)
	requireAnswer(t, resp.Clone())
	for i := range resp.Message.ToolCalls {
		edited := resp.Clone()
		edited.Message.ToolCalls[i].Arguments = otherArguments
		edited.Usage.OutputTokens++
		requireAnswer(t, edited)
		edited.Message.ToolCalls = edited.Message.ToolCalls[i:]
		requireAnswer(t, edited)
	}
	requireEcho(t, history.Echo(resp.Message, nil))
	for _, next := range []*middleware.Response{decodeResponse(t, later), decodeResponse(t, twoCalls)} {
		rest, err := s.Rest(s.Safe(), next)
		if err != nil {
			require.ErrorIs(t, err, codec.ErrUnencodable)
			continue
		}
		got := decodeResponse(t, shownOf(s)+string(rest))
		require.Equal(t, len(next.Message.ToolCalls), len(got.Message.ToolCalls))
	}
}

// requireEcho fails unless m is written into a history, but for texts that are
// empty and blocks that a request cannot have.
func requireEcho(t tester, m middleware.Message) {
	t.Helper()
	req := decodeRequest(t, asked)
	body, err := format.EncodeRequest(req.With(m))
	if err != nil {
		require.ErrorIs(t, err, codec.ErrUnencodable)
		return
	}
	got := decodeRequest(t, string(body)).Messages
	m = m.Clone()
	m.Parts = slices.DeleteFunc(m.Parts, func(p middleware.Part) bool {
		if p.Kind == middleware.PartOpaque {
			_, err := format.DecodeRequest([]byte(`{"messages":[{"role":"assistant","content":[` + p.Native.Raw + `]}]}`))
			return err != nil
		}
		return p.Kind == middleware.PartText && p.Text == ""
	})
	want := req.Messages
	if len(m.Parts)+len(m.ToolCalls) > 0 {
		want = append(want, m)
	}
	require.Equal(t, withoutNative(want...), withoutNative(got...))
}

// requireAnswer fails unless resp is written as it is, or refused.
func requireAnswer(t tester, resp *middleware.Response) {
	t.Helper()
	body, err := format.EncodeResponse(resp)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrUnencodable)
		return
	}
	got := decodeResponse(t, string(body))
	require.Equal(t, withoutNative(resp.Message), withoutNative(got.Message), "%s", body)
	require.Equal(t, resp.FinishReason, got.FinishReason)
}
