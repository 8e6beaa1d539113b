package anthropic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// An error in the middle of a stream ends what may be shown, and is read, in
// every form that a cloud gives it.
func TestErrorsInTheMiddle(t *testing.T) {
	t.Parallel()
	const begun = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n\n"
	for name, c := range map[string]struct{ sent, want string }{
		"the provider's":  {"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Busy\"}}\n\n", "Busy"},
		"without a type":  {"data: {\"error\":{\"code\":529,\"message\":\"Busy\"}}\n\n", "Busy"},
		"without a field": {"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Busy\"}}\n\n", "Busy"},
		"text":            {"event: error\ndata: too busy\n\n", "without a message"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := anthropic.Format{}.NewStream(nil, nil)
			_, err := s.Write([]byte(begun + c.sent + "event: ping\ndata: {\"type\":\"ping\"}\n\n"))
			require.NoError(t, err)
			require.Equal(t, len(begun), s.Safe())
			_, err = s.Close()
			var m *middleware.ModelError
			require.ErrorAs(t, err, &m)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := codec.Decode(anthropic.Format{}.NewStream(nil, nil), []byte(`{"error":{"code":429,"message":"Quota"}}`))
	require.ErrorContains(t, err, "Quota")
	require.NotErrorIs(t, err, codec.ErrShape)
}

// What a re-ask adds must not become part of an event whose end never came.
func TestRestBehindHalfAnEvent(t *testing.T) {
	t.Parallel()
	const begun = "data: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[]}}"
	const whole = begun + "\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
	s := anthropic.Format{}.NewStream(nil, nil)
	_, err := s.Write([]byte(begun))
	require.NoError(t, err)
	_, err = s.Close()
	require.ErrorIs(t, err, codec.ErrIncomplete)
	resp, err := codec.Decode(anthropic.Format{}.NewStream(nil, nil), []byte(whole))
	require.NoError(t, err)
	rest, err := s.Rest(s.Safe(), resp)
	require.NoError(t, err)
	_, err = codec.Decode(anthropic.Format{}.NewStream(nil, nil), []byte(begun[:s.Safe()]+string(rest)))
	require.NoError(t, err)
}

// A mark that an answer has no place for is not dropped.
func TestAnswerThatIsNoAssistants(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*middleware.Message){
		"failed":       func(m *middleware.Message) { m.IsError = true },
		"result of":    func(m *middleware.Message) { m.ToolCallID = "x" },
		"name of tool": func(m *middleware.Message) { m.ToolName = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := codec.Decode(anthropic.Format{}.NewStream(nil, nil), []byte(`{"role":"assistant","content":[],"stop_reason":"end_turn"}`))
			require.NoError(t, err)
			change(&resp.Message)
			_, err = anthropic.Format{}.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

// The provider takes no history in which the input of a call is not an object,
// whatever its model, or a server that copies it, has answered.
func TestEchoOfInputThatIsNoObject(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]string{"absent": "", "null": `,"input":null`, "text": `,"input":"{}"`, "list": `,"input":[]`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{"role":"assistant","content":[{"type":"text","text":"So."},{"type":"tool_use","id":"c1","name":"f"` + input + `}],"stop_reason":"tool_use"}`
			resp, err := codec.Decode(anthropic.Format{}.NewStream(nil, nil), []byte(body))
			require.NoError(t, err)
			same, err := anthropic.Format{}.EncodeResponse(resp)
			require.NoError(t, err)
			require.Equal(t, body, string(same))
			req, err := anthropic.Format{}.DecodeRequest([]byte(`{"messages":[]}`))
			require.NoError(t, err)
			for _, text := range []string{"So.", "Other."} {
				m := resp.Message.Clone()
				m.Parts[0].Text = text
				again, err := anthropic.Format{}.EncodeRequest(req.With(m))
				require.NoError(t, err)
				require.JSONEq(t, `{"messages":[{"role":"assistant","content":[{"type":"text","text":"`+text+`"},{"type":"tool_use","id":"c1","name":"f","input":{}}]}]}`, string(again))
			}
			own := `{"messages":[` + body + `]}` // what the client sends is its own
			req, err = anthropic.Format{}.DecodeRequest([]byte(own))
			require.NoError(t, err)
			again, err := anthropic.Format{}.EncodeRequest(req.With(middleware.User("More.")))
			require.NoError(t, err)
			require.Contains(t, string(again), body)
		})
	}
}
