package ollama_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Calls and results find each other with and without ids.
func TestResultsBelongToCalls(t *testing.T) {
	t.Parallel()
	const (
		old   = `{"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":{}}},{"function":{"name":"b","arguments":{}}},{"function":{"name":"a","arguments":{}}}]}`
		newer = `{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"a","arguments":{}}},{"id":"y","function":{"name":"b","arguments":{}}}]}`
	)
	type result struct{ id, name string }
	for _, c := range []struct {
		name, messages string
		want           []result
	}{
		{"by order", old + `,{"role":"tool"},{"role":"tool"},{"role":"tool"}`, []result{{"toolmend_1", "a"}, {"toolmend_2", "b"}, {"toolmend_3", "a"}}},
		{"by name", old + `,{"role":"tool","tool_name":"b"},{"role":"tool","name":"a"},{"role":"tool","tool_name":"a"}`,
			[]result{{"toolmend_2", "b"}, {"toolmend_1", "a"}, {"toolmend_3", "a"}}},
		{"by id", newer + `,{"role":"tool","tool_call_id":"y"},{"role":"tool","tool_call_id":"x","tool_name":"a"}`, []result{{"y", "b"}, {"x", "a"}}},
		{"without an id though calls have them", newer + `,{"role":"tool","tool_call_id":null,"tool_name":"b"},{"role":"tool"}`, []result{{"y", "b"}, {"x", "a"}}},
		{"places go on", old + `,{"role":"tool"},{"role":"tool"},{"role":"tool"},` + old + `,{"role":"tool","tool_name":"b"}`,
			[]result{{"toolmend_1", "a"}, {"toolmend_2", "b"}, {"toolmend_3", "a"}, {"toolmend_5", "b"}}},
		{"ids count as places", newer + `,{"role":"user"},` + old + `,{"role":"tool"}`, []result{{"toolmend_3", "a"}}},
		{"of no call", `{"role":"assistant","content":""},{"role":"tool","tool_call_id":null}`, []result{{}}},
		{"of an unknown call", newer + `,{"role":"tool","tool_call_id":"z","tool_name":"q"}`, []result{{"z", "q"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := `{"messages":[` + c.messages + `]}`
			req := decodeRequest(t, body)
			var got []result
			for _, m := range req.Messages {
				if m.Role == middleware.RoleTool {
					got = append(got, result{m.ToolCallID, m.ToolName})
				}
			}
			require.Equal(t, c.want, got)
			require.Equal(t, body, encodeRequest(t, req))
			require.Equal(t, body, encodeRequest(t, throughJSON(t, req)), "after storage")
		})
	}
}

// A re-ask is one insertion: the answer's own message, then a reply for each
// call, with an id where the call has one.
func TestReaskIsOneInsertion(t *testing.T) {
	t.Parallel()
	const before, after = `{"messages": [ {"role":"user","content":"q"}`, ` ], "stream":true}`
	for _, c := range []struct{ name, call, echo, reply string }{
		{"without ids", `{"function":{"name":"f","arguments":{"a": 1.0}}}`, `{"function":{"name":"f","arguments":{"a": 1.0}}}`, `"tool_name":"f"`},
		{"with ids", `{"id":"c9","function":{"index":0,"name":"f","arguments":{"a": 1.0}}}`, `{"id":"c9","function":{"index":0,"name":"f","arguments":{"a": 1.0}}}`,
			`"tool_name":"f","tool_call_id":"c9"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, before+after)
			resp, err := codec.Decode(format.NewStream(req, nil), []byte(`{"model":"m","message":{"role":"assistant","content":"","new":[1],"tool_calls":[`+c.call+`]},"done":true,"done_reason":"stop"}`))
			require.NoError(t, err)
			verdicts := []middleware.Verdict{{Call: resp.Message.ToolCalls[0], Issues: []middleware.Issue{{Code: "type"}}}}
			turn := batch.Turn(history.FixIDs(req.Messages, resp.Message), req.Tools, verdicts, batch.ReissueAll, func(middleware.Verdict) string { return "no" })
			want := before + `,{"role":"assistant","content":"","tool_calls":[` + c.echo + `],"new":[1]},{"role":"tool","content":"no",` + c.reply + `}` + after
			require.Equal(t, want, encodeRequest(t, req.With(turn...)))

			kept := middleware.Request{Messages: turn}
			require.Equal(t, want, encodeRequest(t, req.With(throughJSON(t, &kept).Messages...)), "after storage")
			require.Equal(t, before+after, encodeRequest(t, req), "the request itself is as it was")
		})
	}
}

// Ids that were made unique are written where the wire has ids, in the calls
// and in the replies.
func TestDuplicateIDsAreMended(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"messages":[]}`)
	const call = `{"id":"same","function":{"name":"f","arguments":{}}}`
	resp, err := codec.Decode(format.NewStream(req, nil), []byte(`{"message":{"role":"assistant","tool_calls":[`+call+`,`+call+`]},"done":true}`))
	require.NoError(t, err)
	m := history.FixIDs(nil, resp.Message)
	require.Equal(t, codec.PlaceID(2), m.ToolCalls[1].ID)
	req = req.With(m, middleware.ToolReply(m.ToolCalls[0], "1"), middleware.ToolReply(m.ToolCalls[1], "2"))
	require.Equal(t, `{"messages":[{"role":"assistant","content":"","tool_calls":[`+call+`,{"id":"toolmend_2","function":{"name":"f","arguments":{}}}]},`+
		`{"role":"tool","content":"1","tool_name":"f","tool_call_id":"same"},{"role":"tool","content":"2","tool_name":"f","tool_call_id":"toolmend_2"}]}`, encodeRequest(t, req))
}

// A result that belonged to its call by its place gets the id when another one
// has gone, although nothing in it was changed.
func TestResultsThatMoveUp(t *testing.T) {
	t.Parallel()
	const head, tail = `{"messages":[{"tool_calls":[{"id":"c1","function":{"name":"f"}},{"id":"c2","function":{"name":"f"}}]}, `, `]}`
	req := decodeRequest(t, head+`{"role":"tool","content":"1"}, {"role":"tool","content":"2"}`+tail)
	req.Messages = append(req.Messages[:1], req.Messages[2])
	want := head + `{"role":"tool","content":"2","tool_call_id":"c2"}` + tail
	require.Equal(t, want, encodeRequest(t, req))
	require.Equal(t, want, encodeRequest(t, throughJSON(t, req)))
}

// A result whose call is gone keeps its bytes.
func TestResultWithoutItsCall(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"messages":[{"tool_calls":[{"function":{"name":"f"}}]}, {"role":"tool","content":"1"}]}`)
	require.Equal(t, "f", req.Messages[1].ToolName)
	req.Messages = req.Messages[1:]
	const want = `{"messages":[{"role":"tool","content":"1"}]}`
	require.Equal(t, want, encodeRequest(t, req))
	require.Equal(t, want, encodeRequest(t, throughJSON(t, req)))
}

// Arguments that are written as a string stay one.
func TestEncodedArguments(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"messages":[{"tool_calls":[{"function":{"name":"f","arguments":"{\"a\": 1}"}}]}]}`)
	require.Equal(t, `{"a": 1}`, req.Messages[0].ToolCalls[0].Arguments)
	req.Messages[0].ToolCalls[0].Arguments = `{"a": 2}`
	require.Equal(t, `{"messages":[{"tool_calls":[{"function":{"name":"f","arguments":"{\"a\": 2}"}}]}]}`, encodeRequest(t, req))
}

// A client that writes the name as other providers have it keeps its way.
func TestResultNameKeepsItsMember(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"messages":[{"role":"tool","content":"r","name":"a"}]}`)
	req.Messages[0].ToolName = "b"
	require.Equal(t, `{"messages":[{"role":"tool","content":"r","name":"b"}]}`, encodeRequest(t, req))
}

func TestFreshRequest(t *testing.T) {
	t.Parallel()
	sink := func(middleware.Event) error { return nil }
	warm := 0.5
	call := middleware.ToolCall{ID: "c1", Name: "f", Arguments: `{"n": 1.0}`}
	placed := middleware.ToolCall{ID: codec.PlaceID(1), Name: "f", Arguments: `not JSON`}
	mine := func(raw string) *middleware.Native { return &middleware.Native{Dialect: "ollama-chat", Raw: raw} }
	for _, c := range []struct {
		name string
		req  middleware.Request
		want string
	}{
		{"nothing", middleware.Request{}, `{"model":"","messages":[],"stream":false}`},
		{"watched", middleware.Request{Model: "m", Sink: sink}, `{"model":"m","messages":[],"stream":true}`},
		{"of another format", middleware.Request{Model: "m", Native: &middleware.Native{Dialect: "openai-chat", Raw: `{"x":1}`}}, `{"model":"m","messages":[],"stream":false}`},
		{"settings", middleware.Request{Model: "m", Temperature: &warm, MaxTokens: 5, Stop: []string{"a\n"}},
			`{"model":"m","messages":[],"options":{"temperature":0.5,"num_predict":5,"stop":["a\n"]},"stream":false}`},
		{"params win", middleware.Request{Model: "m", MaxTokens: 5, Params: []byte(`{"think": true, "stream":true,"options":{"seed":1.0,"num_predict":6}}`)},
			`{"model":"m","messages":[],"options":{"num_predict":6,"seed":1.0},"stream":true,"think":true}`},
		{"params alone", middleware.Request{Model: "m", Params: []byte(`{"options":{"seed":1}}`)},
			`{"model":"m","messages":[],"options":{"seed":1},"stream":false}`},
		{"messages", middleware.Request{Model: "m", Messages: []middleware.Message{middleware.System("s"), middleware.User("u"), middleware.Assistant("a", call), middleware.ToolReply(call, "r")}},
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},` +
				`{"role":"assistant","content":"a","tool_calls":[{"id":"c1","function":{"name":"f","arguments":{"n": 1.0}}}]},` +
				`{"role":"tool","content":"r","tool_name":"f","tool_call_id":"c1"}],"stream":false}`},
		{"the name of the call of that id", middleware.Request{Messages: []middleware.Message{
			middleware.Assistant("", call, middleware.ToolCall{ID: "c2", Name: "g", Arguments: `{}`}), {Role: middleware.RoleTool, ToolCallID: "c2"}}},
			`{"model":"","messages":[{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"f","arguments":{"n": 1.0}}},` +
				`{"id":"c2","function":{"name":"g","arguments":{}}}]},{"role":"tool","content":"","tool_name":"g","tool_call_id":"c2"}],"stream":false}`},
		{"ids of a place are not written, nor rubbish", middleware.Request{Messages: []middleware.Message{middleware.Assistant("", placed), {Role: middleware.RoleTool, ToolCallID: placed.ID}}},
			`{"model":"","messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},` +
				`{"role":"tool","content":"","tool_name":"f"}],"stream":false}`},
		{"an image", middleware.Request{Messages: []middleware.Message{{Role: middleware.RoleUser, Parts: []middleware.Part{{Text: "a"}, {Kind: middleware.PartMedia, Data: []byte("abc")}, {Text: "b"}}}}},
			`{"model":"","messages":[{"role":"user","content":"ab","images":["YWJj"]}],"stream":false}`},
		{"another provider's reasoning stays out", middleware.Request{Messages: []middleware.Message{{Role: middleware.RoleAssistant, Parts: []middleware.Part{
			{Kind: middleware.PartReasoning, Text: "x", Native: &middleware.Native{Dialect: "anthropic"}}, {Kind: middleware.PartReasoning, Text: "y", Native: mine(`"y"`)}}}}},
			`{"model":"","messages":[{"role":"assistant","content":"","thinking":"y"}],"stream":false}`},
		{"what is of this format", middleware.Request{Messages: []middleware.Message{{Role: middleware.RoleUser, Parts: []middleware.Part{{Text: "b"}}, Native: mine(`{"role":"user", "content":"a","new":1}`)}},
			Tools: []middleware.Tool{{Name: "t", Native: mine(`{"function":{"name":"t","x":1}}`)}}},
			`{"model":"","messages":[{"role":"user", "content":"b","new":1}],"tools":[{"function":{"name":"t","x":1}}],"stream":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.JSONEq(t, c.want, encodeRequest(t, &c.req))
			decodeRequest(t, c.want)
		})
	}
	_, err := format.EncodeRequest(&middleware.Request{Params: []byte(`[]`)})
	require.ErrorIs(t, err, codec.ErrUnencodable)
}
