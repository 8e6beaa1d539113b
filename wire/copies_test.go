package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// eventStream writes events, each a JSON object with a type, with their names.
func eventStream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		if _, typ, ok := strings.Cut(e, `"type":"`); ok && strings.HasPrefix(e, `{"type"`) {
			typ, _, _ = strings.Cut(typ, `"`)
			fmt.Fprintf(&b, "event: %s\n", typ)
		}
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

const (
	good = `{\"amount\":5}`
	bad  = `{\"amount\":99999}`
)

// payCall is a call of the tool pay as an item of Responses.
func payCall(arguments string) string {
	return `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"pay","arguments":"` + arguments + `","status":"completed"}`
}

// payStream is a stream of Responses with one call in all copies that there
// may be.
func payStream() []string {
	return []string{
		`{"type":"response.created","response":{"id":"r1","status":"in_progress","output":[]}}`,
		`{"type":"response.in_progress","response":{"id":"r1","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.added","output_index":0,"item":` + payCall("") + `}`,
		`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"{\"amount\":"}`,
		`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"5}"}`,
		`{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc_1","name":"pay","arguments":"` + good + `"}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + payCall(good) + `}`,
		`{"type":"response.completed","response":{"id":"r1","status":"completed","output":[` + payCall(good) + `]}}`,
	}
}

// edited returns body with new in the place of the first old, which must be there.
func edited(t testing.TB, body, old, new string) string {
	t.Helper()
	require.Contains(t, body, old)
	return strings.Replace(body, old, new, 1)
}

// requirePay requires that body holds one call: pay with 5.
func requirePay(t *testing.T, c wire.Codec, body string) *middleware.Response {
	t.Helper()
	resp, err := c.DecodeResponse(nil, []byte(body))
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, 1)
	require.Equal(t, "pay", resp.Message.ToolCalls[0].Name)
	require.JSONEq(t, `{"amount":5}`, resp.Message.ToolCalls[0].Arguments)
	out, err := c.EncodeResponse(resp)
	require.NoError(t, err)
	require.Equal(t, body, string(out))
	return resp
}

// Clients of Responses take a call from the event that they like: an answer in
// which two of them hold different calls cannot be read.
func TestResponsesCopiesThatDiffer(t *testing.T) {
	t.Parallel()
	requirePay(t, wire.OpenAIResponses(), eventStream(payStream()...))
	changed := func(i int, old, new string) string { // payStream with a change of its event i
		events := payStream()
		events[i] = edited(t, events[i], old, new)
		return eventStream(events...)
	}
	inserted := func(i int, events ...string) string { // payStream with events in front of its event i
		return eventStream(slices.Insert(payStream(), i, events...)...)
	}
	twice := func(id string, index int) string { // payStream with its call again, as call_2, under another id and output_index
		events := payStream()
		for _, e := range events[2:7] {
			e = strings.ReplaceAll(strings.ReplaceAll(e, "fc_1", id), `"output_index":0`, fmt.Sprintf(`"output_index":%d`, index))
			events = slices.Insert(events, len(events)-1, strings.ReplaceAll(e, "call_1", "call_2"))
		}
		return eventStream(events...)
	}
	resp, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(twice("fc_2", 1)))
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, 2)
	for name, body := range map[string]string{
		"created":                         changed(0, `"output":[]`, `"output":[`+payCall(bad)+`]`),
		"in progress":                     changed(1, `"output":[]`, `"output":[`+payCall(bad)+`]`),
		"a call that only created has":    changed(0, `"output":[]`, `"output":[`+edited(t, payCall(bad), "call_1", "call_2")+`]`),
		"added":                           changed(2, `"arguments":""`, `"arguments":"`+bad+`"`),
		"the deltas":                      changed(4, `5}`, `99999}`),
		"arguments.done":                  changed(5, good, bad),
		"item.done":                       changed(6, good, bad),
		"completed":                       changed(7, good, bad),
		"incomplete":                      edited(t, edited(t, changed(7, good, bad), "event: response.completed", "event: response.incomplete"), `"response.completed"`, `"response.incomplete"`),
		"another spelling":                changed(7, good, `{ \"amount\":5}`),
		"no arguments in item.done":       changed(6, good, ``),
		"no arguments at the end":         changed(7, good, ``),
		"the name in added":               changed(2, `"pay"`, `"steal"`),
		"the name in arguments.done":      changed(5, `"pay"`, `"steal"`),
		"the name in item.done":           changed(6, `"pay"`, `"steal"`),
		"the name at the end":             changed(7, `"pay"`, `"steal"`),
		"the id in item.done":             changed(6, `call_1`, `call_2`),
		"the id at the end":               changed(7, `call_1`, `call_2`),
		"the kind at the end":             changed(7, `"type":"function_call"`, `"type":"custom_tool_call","input":"x"`),
		"a delta after the item":          inserted(7, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"5}"}`),
		"arguments.done after the item":   inserted(7, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"`+bad+`"}`),
		"arguments of a message":          inserted(2, `{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"`+bad+`"}`, `{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`),
		"an id and an index of two calls": inserted(4, `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc_2","call_id":"call_2","name":"pay","arguments":"{}"}}`, `{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"fc_1","delta":""}`),
		"an event whose name says another": eventStream(payStream()[:2]...) +
			"event: response.output_item.done\ndata: " + edited(t, payStream()[6], `"response.output_item.done"`, `"ping"`) + "\n\n" +
			eventStream(`{"type":"response.completed","response":{"id":"r1","status":"completed","output":[]}}`),
		"an event that is not JSON":              changed(6, `"status"`, `status`),
		"two calls under one id":                 strings.ReplaceAll(twice("fc_1", 0), `"output_index":0,`, ""),
		"two calls under one id, once escaped":   strings.ReplaceAll(twice(`\u0066c_1`, 0), `"output_index":0,`, ""),
		"two calls under one output_index":       twice("fc_2", 0),
		"arguments under the id of a later call": strings.ReplaceAll(twice("fc_2", 1), `"item_id":"fc_1"`, `"item_id":"fc_2"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(body))
			require.ErrorIs(t, err, wire.ErrShape)
		})
	}
}

// The input of a custom tool has copies too.
func TestResponsesCustomCopies(t *testing.T) {
	t.Parallel()
	item := func(input string) string {
		return `{"type":"custom_tool_call","id":"ct_1","call_id":"call_1","name":"patch","input":"` + input + `"}`
	}
	stream := func(delta, done, whole, end string) string {
		return eventStream(`{"type":"response.output_item.added","output_index":0,"item":`+item("")+`}`,
			`{"type":"response.custom_tool_call_input.delta","output_index":0,"item_id":"ct_1","delta":"`+delta+`"}`,
			`{"type":"response.custom_tool_call_input.done","output_index":0,"item_id":"ct_1","input":"`+done+`"}`,
			`{"type":"response.output_item.done","output_index":0,"item":`+item(whole)+`}`,
			`{"type":"response.completed","response":{"status":"completed","output":[`+item(end)+`]}}`)
	}
	resp, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(stream("ls", "ls", "ls", "ls")))
	require.NoError(t, err)
	require.Equal(t, "ls", resp.Message.ToolCalls[0].Arguments)
	for _, body := range []string{stream("rm", "ls", "ls", "ls"), stream("ls", "rm", "ls", "ls"), stream("ls", "ls", "rm", "ls"), stream("ls", "ls", "ls", "rm")} {
		_, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(body))
		require.ErrorIs(t, err, wire.ErrShape)
	}
}

// A call that the first events hold already is read, if it stays the same; a
// change of it has no place.
func TestResponsesEarlyCalls(t *testing.T) {
	t.Parallel()
	events := payStream()
	events[0] = edited(t, events[0], `"output":[]`, `"output":[`+payCall(good)+`]`)
	body := eventStream(events...)
	s := wire.OpenAIResponses().NewStream(nil, nil)
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	require.Zero(t, s.Safe())
	resp := requirePay(t, wire.OpenAIResponses(), body)
	resp.Message.ToolCalls[0].Arguments = `{"amount":6}`
	_, err = wire.OpenAIResponses().EncodeResponse(resp)
	require.ErrorIs(t, err, wire.ErrUnencodable)
	resp.Message.ToolCalls = nil
	_, err = wire.OpenAIResponses().EncodeResponse(resp)
	require.ErrorIs(t, err, wire.ErrUnencodable)
}

// llama-server writes streams without output_index, sequence_number, content_index
// and function_call_arguments.done. Items are known by their id, in the order in
// which they were announced.
func TestResponsesWithoutOutputIndex(t *testing.T) {
	t.Parallel()
	body := casefile.Body(t, "before")
	var text string
	s := wire.OpenAIResponses().NewStream(nil, func(e middleware.Event) error { text += e.Text; return nil })
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	require.Equal(t, strings.Index(body, "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"item\":{\"id\":\"fc_1\""), s.Safe())
	resp, err := s.Close()
	require.NoError(t, err)
	require.Equal(t, "Hello.", text)
	require.Equal(t, "Hello.", resp.Message.Text())
	require.Len(t, resp.Message.ToolCalls, 2)
	for i, c := range resp.Message.ToolCalls {
		require.Equal(t, fmt.Sprintf("call_%d {\"amount\":5}", i+1), c.ID+" "+c.Arguments)
	}
	out, err := wire.OpenAIResponses().EncodeResponse(resp)
	require.NoError(t, err)
	require.Equal(t, body, string(out))

	resp.Message.ToolCalls[1].Arguments = `{"amount":6}`
	out, err = wire.OpenAIResponses().EncodeResponse(resp)
	require.NoError(t, err)
	casefile.Expect(t, "the second call changed", string(out))
	require.Equal(t, 4, strings.Count(string(out), `{\"amount\":6}`), "a delta, the end of the arguments, the item, and the end")
	require.NotContains(t, string(out), "output_index")

	resp.Message.ToolCalls = resp.Message.ToolCalls[1:]
	out, err = wire.OpenAIResponses().EncodeResponse(resp)
	require.NoError(t, err)
	casefile.Expect(t, "the first call taken out", string(out))
	require.NotContains(t, string(out), "call_1")
	require.NotContains(t, string(out), "output_index")
}

// The rest behind text that was shown stays in the form of such a server.
func TestResponsesWithoutOutputIndexSpliced(t *testing.T) {
	t.Parallel()
	cases := []string{"a stream", "an object"}
	casefile.OneForEach(t, slices.Values(cases))
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := wire.OpenAIResponses().NewStream(nil, nil)
			_, err := s.Write([]byte(casefile.Body(t, "first")))
			require.NoError(t, err)
			shown := string(s.Take())
			require.Contains(t, shown, "lo.")
			_, err = s.Close()
			require.NoError(t, err)
			later, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(casefile.Body(t, "later")))
			require.NoError(t, err)
			rest, err := s.Rest(later)
			require.NoError(t, err)
			require.NotContains(t, string(rest), "99999")
			require.NotContains(t, string(rest), "output_index")
			casefile.Expect(t, "spliced", shown+string(rest))
			got, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(shown+string(rest)))
			require.NoError(t, err)
			require.Len(t, got.Message.ToolCalls, len(later.Message.ToolCalls))
			require.Equal(t, `{"amount":5}`, got.Message.ToolCalls[0].Arguments)
			require.Equal(t, "Hello.Hello.", got.Message.Text())
		})
	}
}
