package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/internal/test/envelope"
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
	again, err := c.DecodeResponse(nil, out)
	require.NoError(t, err, string(out))
	require.Equal(t, callsOf(resp), callsOf(again), string(out))
	require.Equal(t, strings.ToValidUTF8(resp.Message.Text(), "\ufffd"), strings.ToValidUTF8(again.Message.Text(), "\ufffd"))
	return resp
}

// callsOf returns the names and the arguments of the calls of resp.
func callsOf(resp *middleware.Response) (calls []string) {
	for _, c := range resp.Message.ToolCalls {
		calls = append(calls, c.Name+" "+c.Arguments)
	}
	return calls
}

// Clients of Responses take a call from the event that they like. One copy counts, the
// last output_item.done, and whatever client reads what leaves, reads that one.
func TestResponsesCopiesThatDiffer(t *testing.T) {
	t.Parallel()
	const five, more = `pay {"amount":5}`, `pay {"amount":99999}`
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
	message := `{"type":"message","id":"m","role":"assistant","content":[]}`
	for name, c := range map[string]struct {
		body string
		want []string // nil: it cannot be read
	}{
		"created":                         {changed(0, `"output":[]`, `"output":[`+payCall(bad)+`]`), nil},
		"in progress":                     {changed(1, `"output":[]`, `"output":[`+payCall(bad)+`]`), nil},
		"added":                           {changed(2, `"arguments":""`, `"arguments":"`+bad+`"`), []string{five}},
		"the deltas":                      {changed(4, `5}`, `99999}`), []string{five}},
		"arguments.done":                  {changed(5, good, bad), []string{five}},
		"item.done":                       {changed(6, good, bad), []string{more}},
		"another item.done":               {inserted(7, edited(t, payStream()[6], good, bad)), []string{more}},
		"completed":                       {changed(7, good, bad), []string{five}},
		"no arguments in item.done":       {changed(6, good, ``), []string{five}},
		"no arguments at the end":         {changed(7, good, ``), []string{five}},
		"the name in added":               {changed(2, `"pay"`, `"steal"`), []string{five}},
		"the name in arguments.done":      {changed(5, `"pay"`, `"steal"`), []string{five}},
		"the name in item.done":           {changed(6, `"pay"`, `"steal"`), []string{`steal {"amount":5}`}},
		"the name at the end":             {changed(7, `"pay"`, `"steal"`), []string{five}},
		"the id in item.done":             {changed(6, `call_1`, `call_2`), []string{five}},
		"the id at the end":               {changed(7, `call_1`, `call_2`), []string{five}},
		"the kind at the end":             {changed(7, `"type":"function_call"`, `"type":"custom_tool_call","input":"x"`), []string{five}},
		"another call at the end":         {changed(7, `]}`, `,`+strings.NewReplacer("call_1", "call_2", "fc_1", "fc_2").Replace(payCall(bad))+`]}`), []string{five, more}},
		"a delta after the item":          {inserted(7, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"5}"}`), []string{five}},
		"arguments.done after the item":   {inserted(7, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"`+bad+`"}`), []string{five}},
		"arguments of a message":          {inserted(2, `{"type":"response.output_item.added","output_index":1,"item":`+message+`}`, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"`+bad+`"}`), nil},
		"an id and an index of two calls": {inserted(4, `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc_2","call_id":"call_2","name":"pay","arguments":"{}"}}`, `{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"fc_1","delta":""}`), []string{five, "pay {}"}},
		"an event of an unknown type with a call": {eventStream(payStream()[:2]...) +
			"event: response.output_item.done\ndata: " + edited(t, payStream()[6], `"response.output_item.done"`, `"ping"`) + "\n\n" +
			eventStream(`{"type":"response.completed","response":{"id":"r1","status":"completed","output":[]}}`), nil},
		"an event of a type that names calls":    {inserted(2, `{"type":"response.new_call","x":1}`), nil},
		"an event that is not JSON":              {changed(6, `"status"`, `status`), nil},
		"members that appear twice":              {changed(6, `"arguments":`, `"arguments":"`+bad+`","Arguments":"`+bad+`","arguments":`), []string{five}},
		"two calls under one id":                 {strings.ReplaceAll(twice("fc_1", 0), `"output_index":0,`, ""), []string{five, five}},
		"two calls under one output_index":       {twice("fc_2", 0), []string{five, five}},
		"arguments under the id of a later call": {strings.ReplaceAll(twice("fc_2", 1), `"item_id":"fc_1"`, `"item_id":"fc_2"`), []string{five, five}},
		"a letter divided between two deltas": {eventStream(payStream()[:3]...) + eventStream(
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"\ud83d"}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"\ude00"}`,
			`{"type":"response.completed","response":{"id":"r1","status":"completed","output":[]}}`), []string{"pay \U0001F600"}},
		"a mark in front of an event": {strings.Replace(eventStream(payStream()...), "event: response.output_item.done\n", "\ufeff", 1), []string{five}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.want == nil {
				_, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(c.body))
				require.ErrorIs(t, err, wire.ErrShape)
				return
			}
			resp, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(c.body))
			require.NoError(t, err)
			require.Equal(t, c.want, callsOf(resp))
			out, err := wire.OpenAIResponses().EncodeResponse(resp)
			require.NoError(t, err)
			requireClientsRead(t, string(out), c.want)
		})
	}
}

// requireClientsRead requires that every client of a stream of Responses that finds calls
// finds those.
func requireClientsRead(t *testing.T, body string, want []string) {
	t.Helper()
	for _, f := range envelope.Formats() {
		for _, r := range f.Readers(true) {
			var got []string
			for _, c := range r.Calls(body) {
				got = append(got, c.Name+" "+c.Arguments)
			}
			if f.Name == "responses" {
				require.Equal(t, want, got, r.Name)
			}
		}
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
	for _, body := range []string{stream("ls", "ls", "ls", "ls"), stream("rm", "ls", "ls", "ls"), stream("ls", "rm", "ls", "ls"), stream("ls", "ls", "ls", "rm")} {
		resp, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(body))
		require.NoError(t, err)
		require.Equal(t, []string{"patch ls"}, callsOf(resp))
		out, err := wire.OpenAIResponses().EncodeResponse(resp)
		require.NoError(t, err)
		require.NotContains(t, string(out), `"rm"`)
	}
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
	requireClientsRead(t, string(out), []string{`pay {"amount":5}`, `pay {"amount":5}`})

	resp.Message.ToolCalls[1].Arguments = `{"amount":6}`
	out, err = wire.OpenAIResponses().EncodeResponse(resp)
	require.NoError(t, err)
	casefile.Expect(t, "the second call changed", string(out))
	require.Equal(t, 4, strings.Count(string(out), `{\"amount\":6}`), "a delta, the end of the arguments, the item, and the end")

	resp.Message.ToolCalls = resp.Message.ToolCalls[1:]
	out, err = wire.OpenAIResponses().EncodeResponse(resp)
	require.NoError(t, err)
	casefile.Expect(t, "the first call taken out", string(out))
	require.NotContains(t, string(out), "call_1")
}

// What follows text of such a server has what other servers send.
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
			casefile.Expect(t, "spliced", shown+string(rest))
			got, err := wire.OpenAIResponses().DecodeResponse(nil, []byte(shown+string(rest)))
			require.NoError(t, err)
			require.Len(t, got.Message.ToolCalls, len(later.Message.ToolCalls))
			require.Equal(t, `{"amount":5}`, got.Message.ToolCalls[0].Arguments)
			require.Equal(t, "Hello.Hello.", got.Message.Text())
		})
	}
}
