package ollama_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const mended = `{"mended": 12345678901234567890, "n":1.50}`

// callsOf returns all calls of a list of messages, without their Native.
func callsOf(messages ...middleware.Message) []middleware.ToolCall {
	var out []middleware.ToolCall
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			c.Native = nil
			out = append(out, c)
		}
	}
	return out
}

// FuzzRequest: what is read is written as it was, and an edit of arguments, of
// an end or of a setting is all that the next reader sees; or it is refused.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(withPicture(asked)))
	for _, body := range []string{`{}`, `{"messages":[{"role":"assistant","tool_calls":[` + call0 + `,` + call1 + `]},{"role":"tool","tool_call_id":"c1"},{"role":"tool"}]}`,
		`{"options":{},"options":{"stop":[]},"tools":[{"type":"x"}]}`, `{"messages":[{"tool_calls":[{"function":{"name":"a","name":"b"}}],"content":null}]}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { requireRequestLaws(t, body) })
}

// requireRequestLaws holds body to the laws of FuzzRequest.
func requireRequestLaws(t require.TestingT, body []byte) {
	format.Match("/api/chat", body)
	req, err := format.DecodeRequest(body)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrShape)
		return
	}
	require.Equal(t, string(body), encodeRequest(t, req))
	if utf8.Valid(body) { // JSON has no place for other bytes
		require.Equal(t, string(body), encodeRequest(t, throughJSON(t, req)))
	}
	edited := req.With(middleware.User("more"))
	edited.MaxTokens, edited.Model = 77, "other"
	if all := callsOf(req.Messages...); len(all) > 0 {
		for i := range edited.Messages {
			for j := range edited.Messages[i].ToolCalls {
				edited.Messages[i].ToolCalls[j].Arguments = mended
			}
		}
	}
	out, err := format.EncodeRequest(edited)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrUnencodable)
		return
	}
	again := decodeRequest(t, string(out))
	require.Equal(t, callsOf(edited.Messages...), callsOf(again.Messages...))
	require.Len(t, again.Messages, len(edited.Messages))
	for i, m := range edited.Messages {
		require.Equal(t, m.Text(), again.Messages[i].Text())
		require.Equal(t, m.Role, again.Messages[i].Role)
		require.Equal(t, m.ToolCallID, again.Messages[i].ToolCallID)
	}
	require.Equal(t, 77, again.MaxTokens)
	require.Equal(t, "other", again.Model)
	require.Len(t, again.Tools, len(edited.Tools))
}

// FuzzAnswer: pieces do not matter, what is read is written as it was, and an
// edit is all that the next reader sees; or it is refused.
func FuzzAnswer(f *testing.F) {
	for _, body := range forms {
		f.Add([]byte(body), uint16(9), uint8(0))
		f.Add([]byte(body), uint16(0), uint8(1))
		f.Add([]byte(body), uint16(100), uint8(2))
	}
	f.Add([]byte(`{"error":"error parsing tool call: raw='', err="}`), uint16(3), uint8(0))
	f.Add([]byte("\n{\"message\":null,\"done\":true,\"eval_count\":1e3}\n[]\n{"), uint16(3), uint8(1))
	f.Fuzz(func(t *testing.T, body []byte, n uint16, edit uint8) { requireAnswerLaws(t, body, int(n)+1, int(edit)) })
}

// requireAnswerLaws holds body, in pieces of n bytes, to the laws of FuzzAnswer.
func requireAnswerLaws(t require.TestingT, body []byte, n, edit int) {
	format.DecodeError(500, nil, body)
	if resp, err := codec.Decode(format.NewStream(nil, nil), body); err == nil {
		encodeResponse(t, resp)
	}
	body = []byte(codec.Clean(string(body))) // as it is written
	resp, err := codec.Decode(format.NewStream(nil, nil), body)
	s := format.NewStream(nil, nil)
	for at := 0; at < len(body); at += n {
		if _, werr := s.Write(body[at:min(len(body), at+n)]); werr != nil {
			require.Error(t, err)
			break
		}
	}
	pieced, perr := s.Close()
	require.Equal(t, err == nil, perr == nil)
	if err != nil {
		return
	}
	require.Equal(t, callsOf(resp.Message), callsOf(pieced.Message))
	require.Equal(t, resp.Message.Text(), pieced.Message.Text())
	requireSame(t, string(body), encodeResponse(t, resp))
	shown, safe, _ := s.Output()
	rest, err := s.Rest(safe, pieced)
	require.NoError(t, err)
	requireSame(t, string(body), shown[:safe]+string(rest))

	changed := resp.Clone()
	switch c := changed.Message.ToolCalls; {
	case edit%3 == 0 && len(c) > 0:
		c[edit%len(c)].Arguments = mended
	case edit%3 == 1:
		changed.Message.ToolCalls = append(c, middleware.ToolCall{ID: "new", Name: "n", Arguments: mended})
	default:
		changed.Message.Parts = []middleware.Part{{Text: "other"}}
	}
	out, err := format.EncodeResponse(changed)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrUnencodable)
		return
	}
	again := decodeResponse(t, string(out))
	require.Equal(t, withoutPlaceIDs(callsOf(changed.Message)), withoutPlaceIDs(callsOf(again.Message)))
	require.Equal(t, changed.Message.Text(), again.Message.Text())
	require.Equal(t, changed.Usage, again.Usage)
	require.Equal(t, changed.Model, again.Model)
}

// withoutPlaceIDs leaves out ids that are places, and the line breaks that a line
// cannot hold.
func withoutPlaceIDs(calls []middleware.ToolCall) []middleware.ToolCall {
	for i, c := range calls {
		if codec.IsPlaceID(c.ID) {
			calls[i].ID = ""
		}
		calls[i].Arguments = strings.Join(strings.Fields(codec.OneLine(c.Arguments)), " ")
	}
	return calls
}

// mutateValues puts values of other kinds in some places of a JSON text, and some
// members twice.
func mutateValues(t *rapid.T, text string) string {
	for range rapid.IntRange(1, 3).Draw(t, "mutations") {
		root, err := codec.Parse(text)
		if err != nil {
			return text
		}
		var all []rawjson.Value
		for todo := []rawjson.Value{root.Root()}; len(todo) > 0; todo = todo[1:] {
			for child := range todo[0].Each() {
				all, todo = append(all, child), append(todo, child)
			}
		}
		if len(all) == 0 {
			return text
		}
		v := rapid.SampledFrom(all).Draw(t, "value")
		edit := codec.Replace(v, rapid.SampledFrom([]string{`null`, `1`, `-1.5e3`, `""`, `"x"`, `true`, `[]`, `[{}]`, `{}`, `{"a":[1]}`}).Draw(t, "other"))
		if v.IsMember() && rapid.Bool().Draw(t, "twice") {
			edit = codec.Append(v.Parent(), rawjson.Quote(v.Key())+":"+edit.Text)
		} else if rapid.Bool().Draw(t, "swap") {
			edit.Text = rapid.SampledFrom(all).Draw(t, "from").Raw()
		}
		if text, err = codec.Apply(text, []rawjson.Edit{edit}); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

func TestMutatedRequest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) { requireRequestLaws(r, []byte(mutateValues(r, withPicture(asked)))) })
}

func TestMutatedAnswer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var body strings.Builder
		for _, line := range rapid.SampledFrom([][]string{{unary}, {pretty}, strings.Split(strings.TrimSpace(stream), "\n")}).Draw(r, "form") {
			if rapid.IntRange(0, 2).Draw(r, "mutate") == 0 {
				line = mutateValues(r, line)
			}
			body.WriteString(line + "\n")
		}
		requireAnswerLaws(r, []byte(body.String()), rapid.IntRange(1, 99).Draw(r, "n"), rapid.IntRange(0, 8).Draw(r, "edit"))
	})
}
