package responses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/test/envelope"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
)

// requireUnits requires that each event of text, or all of it if it is one object, is
// free of words for calls, or is in the one spelling in which answers are written. It
// returns how many are free, and how many written.
func requireUnits(t require.TestingT, text string) (free, written int) {
	for unit := range strings.SplitAfterSeq(strings.ReplaceAll(text, "\r\n\r\n", "\n\n"), "\n\n") {
		if codec.HasNoCallWord(unit) {
			free++
			continue
		}
		written++
		data := unit
		if !strings.HasPrefix(unit, "{") {
			var whole bool
			if strings.HasPrefix(data, "event: ") {
				_, data, _ = strings.Cut(data, "\n")
			}
			data, whole = strings.CutSuffix(strings.TrimPrefix(data, "data: "), "\n\n")
			require.True(t, whole && !strings.ContainsAny(data, "\r\n"), "framing of %q in %q", unit, text)
		}
		require.True(t, json.Valid([]byte(data)), data)
		doc, err := rawjson.Parse(data, rawjson.Limits{Bytes: -1, Depth: -1, Values: -1, Number: -1, Exponent: -1})
		require.NoError(t, err)
		require.True(t, doc.HasPlainKeys(), "members of %q", unit)
	}
	return free, written
}

// leaving returns the bytes that a client gets of body, with its own answer after the shown
// part; without an answer, only the shown part.
func leaving(t require.TestingT, body string, size int) string {
	s := format.NewStream(&middleware.Request{Tools: []middleware.Tool{{Name: "pay"}}}, nil)
	for at := 0; at < len(body); at += size {
		if _, err := s.Write([]byte(body[at:min(len(body), at+size)])); err != nil {
			return shownOf(s)
		}
	}
	shown := shownOf(s)
	resp, err := s.Close()
	if err != nil {
		return shown
	}
	rest, err := s.Rest(len(shown), resp)
	require.NoError(t, err, body)
	return shown + string(rest)
}

// Each unit that leaves, of hostile answers and of recorded ones, is free of calls or
// written here.
func TestUnits(t *testing.T) {
	t.Parallel()
	free, written := 0, 0
	check := func(t require.TestingT, body string, size int) {
		f, w := requireUnits(t, leaving(t, body, size))
		free, written = free+f, written+w
	}
	for _, f := range envelope.Formats() {
		if f.Name != "responses" {
			continue
		}
		rapid.Check(t, func(rt *rapid.T) {
			for range 5 {
				seed := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "seed")
				check(rt, f.Hostile(envelope.Uniform(seed...), rapid.Bool().Draw(rt, "stream")).Body, 1+int(seed[0]))
			}
		})
	}
	for _, x := range codectest.Load(t, "openai-responses") {
		if x.Status == 200 {
			check(t, x.Response, 4096)
		}
	}
	t.Logf("%d units free of calls, %d written", free, written)
}

// thoughtful is a stream with reasoning and a call, under numbers that end with n.
func thoughtful(n string) string {
	call := `{"id":"fc_` + n + `","type":"function_call","call_id":"call_` + n + `","name":"pay","arguments":"{}","status":"completed"}`
	reasoning := `{"id":"rs_` + n + `","type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"SEALED_` + n + `"}`
	return eventStream(
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_`+n+`","instructions":"Use \"tool_calls\".","status":"in_progress","model":"m","output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_`+n+`","type":"reasoning","summary":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","sequence_number":2,"output_index":0,"item_id":"rs_`+n+`","summary_index":0,"delta":"Hm."}`,
		`{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":`+reasoning+`}`,
		`{"type":"response.output_item.done","sequence_number":4,"output_index":1,"item":`+call+`}`,
		`{"type":"response.completed","sequence_number":5,"response":{"id":"resp_`+n+`","status":"completed","model":"m","output":[`+reasoning+`,`+call+`]}}`)
}

// requireHistory requires that the items of a stream, as they are done and as its end
// names them, are those, and that no reasoning is without the item that it led to.
func requireHistory(t *testing.T, body string, want ...string) {
	t.Helper()
	p, err := play(body)
	require.NoError(t, err, body)
	var done, end []string
	for _, it := range p.items {
		done = append(done, it.done["id"].(string))
	}
	for _, o := range p.finished["output"].([]any) {
		end = append(end, o.(object)["id"].(string))
	}
	require.Equal(t, want, done)
	require.Equal(t, want, end)
	for i, id := range want {
		require.False(t, strings.HasPrefix(id, "rs_") && (i+1 == len(want) || strings.HasPrefix(want[i+1], "rs_")), want)
	}
}

// Reasoning waits for the item that it leads to. If that is a call that is given up, the
// reasoning was never shown, and the later answer has its own.
func TestReasoningWaits(t *testing.T) {
	t.Parallel()
	tools := &middleware.Request{Tools: []middleware.Tool{{Name: "pay"}}}
	later := decodeResponse(t, thoughtful("2"))
	for name, c := range map[string]struct {
		first string
		own   []string
		asked []string
	}{
		"before a call":         {thoughtful("1"), []string{"rs_1", "fc_1"}, []string{"rs_2", "fc_2"}},
		"before a text, a call": {talkative, []string{"rs_1", "msg_1", "rs_1b", "fc_1"}, []string{"rs_1", "msg_1", "rs_2", "fc_2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := codec.NewCursor(format, format.NewStream(tools, nil))
			_, err := s.Write([]byte(c.first))
			require.NoError(t, err)
			shown := string(s.Take())
			require.Equal(t, c.first == talkative, strings.Contains(shown, "Look first."), "shown with the text that follows")
			require.Equal(t, c.first == talkative, strings.Contains(shown, "Let me "))
			own, err := s.Close()
			require.NoError(t, err)
			rest, err := s.Rest(own)
			require.NoError(t, err)
			requireHistory(t, shown+string(rest), c.own...)
			if c.first != talkative {
				require.Equal(t, 3, strings.Count(shown+string(rest), `"encrypted_content":"SEALED_1"`), "added, done and the end")
			}
			rest, err = s.Rest(later)
			require.NoError(t, err)
			requireHistory(t, shown+string(rest), c.asked...)
			require.Contains(t, shown+string(rest), "SEALED_2")
			requireUnits(t, shown+string(rest))
		})
	}
}

// With keep-alives in between, the head is shown, and numbers and the id go on from it.
func TestReasoningWaitsWithKeepAlives(t *testing.T) {
	t.Parallel()
	s := codec.NewCursor(format, format.NewStream(&middleware.Request{Tools: []middleware.Tool{{Name: "pay"}}}, nil))
	at := strings.Index(thoughtful("1"), "event: response.output_item.done")
	_, err := s.Write([]byte(thoughtful("1")[:at]))
	require.NoError(t, err)
	shown := string(s.KeepAlive()) + string(s.KeepAlive())
	require.Equal(t, 1, strings.Count(shown, "response.created\n"))
	require.NotContains(t, shown, "rs_1")
	_, err = s.Write([]byte(thoughtful("1")[at:]))
	require.NoError(t, err)
	_, err = s.Close()
	require.NoError(t, err)
	rest, err := s.Rest(decodeResponse(t, thoughtful("2")))
	require.NoError(t, err)
	body := shown + string(rest)
	requireHistory(t, body, "rs_2", "fc_2")
	p, err := play(body)
	require.NoError(t, err)
	require.Equal(t, "resp_1", p.finished["id"])
	require.Contains(t, string(s.Fail(500, "", "m")), `"sequence_number":3`)
}

// A call passes as one of the provider only if its type is known: some client may run any
// other. An item of an unknown type without a word for calls in a key or a type passes.
func TestItemsOfUnknownTypes(t *testing.T) {
	t.Parallel()
	for item, known := range map[string]bool{
		`{"type":"web_search_call","id":"i"}`:                                true,
		`{"type":"x_search_call","id":"i","name":"x"}`:                       true,
		`{"type":"compaction","encrypted_content":"function_call"}`:          true,
		`{"type":"run_it_call","id":"i","name":"pay","arguments":"{}"}`:      false,
		`{"type":"later","function_call":{"name":"pay","arguments":"{}"}}`:   false,
		`{"type":"later","steps":[{"type":"tool_use","name":"pay"}]}`:        false,
		`{"type":"Function_Call","call_id":"c","name":"p","arguments":"{}"}`: false,
	} {
		whole := answerBody("", item)
		stream := eventStream(`{"type":"response.created","response":{"id":"resp_1"}}`, `{"type":"response.output_item.done","output_index":0,"item":`+item+`}`,
			`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}`)
		for _, body := range []string{whole, stream} {
			_, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
			if known {
				require.NoError(t, err, item)
			} else {
				require.ErrorIs(t, err, codec.ErrShape, item)
			}
		}
	}
}

// What the provider runs is shown at once, with the reasoning that led to it. A text
// that speaks of calls is text.
func TestHostedCallsAreLive(t *testing.T) {
	t.Parallel()
	body := eventStream(
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","tools":[{"type":"web_search_call"}],"status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
		`{"type":"response.output_item.added","sequence_number":2,"output_index":1,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}}`,
		`{"type":"response.web_search_call.searching","sequence_number":3,"output_index":1,"item_id":"ws_1"}`,
		`{"type":"response.output_item.done","sequence_number":4,"output_index":1,"item":{"id":"ws_1","type":"web_search_call","status":"completed","action":{"query":"\"tool_calls\""}}}`,
		`{"type":"response.output_item.added","sequence_number":5,"output_index":2,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":6,"output_index":2,"item_id":"msg_1","content_index":0,"delta":"A \"function_call\" is"}`)
	s := format.NewStream(&middleware.Request{Tools: []middleware.Tool{{Name: "pay"}}}, nil)
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	require.Equal(t, body, shownOf(s))
	_, err = s.Write([]byte(eventStream(`{"type":"response.completed","sequence_number":7,"response":{"id":"resp_1","status":"completed","output":[]}}`)))
	require.NoError(t, err)
	resp, err := s.Close()
	require.NoError(t, err)
	require.Equal(t, `A "function_call" is`, resp.Message.Text())
	rest, err := s.Rest(s.Safe(), resp)
	require.NoError(t, err)
	_, end, _ := strings.Cut(string(rest), "event: response.completed")
	for _, id := range []string{"rs_1", "ws_1", "msg_1"} {
		require.Contains(t, end, `"id":"`+id+`"`)
	}
	require.Contains(t, string(rest), `"sequence_number":7`)
}

// Arguments that the server sends as an object are a string in a written stream: clients
// join the deltas, and some read no other copy.
func TestObjectArgumentsInAStream(t *testing.T) {
	t.Parallel()
	const item = `{"type":"function_call","id":"fc1","call_id":"c1","name":"pay","arguments":`
	event := func(typ, rest string) string {
		return "event: " + typ + "\ndata: {\"type\":\"" + typ + "\"," + rest + "}\n\n"
	}
	s := format.NewStream(nil, nil)
	_, err := s.Write([]byte(event("response.created", `"response":{"id":"x","status":"in_progress","output":[]}`) +
		event("response.output_item.done", `"output_index":0,"item":`+item+`{"amount":5}}`) +
		event("response.completed", `"response":{"id":"x","status":"completed","output":[`+item+`{"amount":5}}]}`)))
	require.NoError(t, err)
	resp, err := s.Close()
	require.NoError(t, err)
	out, err := s.Rest(0, resp)
	require.NoError(t, err)
	require.Contains(t, string(out), `"delta":"{\"amount\":5}"`)
	require.NotContains(t, string(out), `"arguments":{`)
}

// Arguments that are an object over several lines are read as they are written: on one line.
func TestArgumentsOverSeveralLines(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, `{"status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"c1","name":"pay","arguments":{`+"\n"+`"n": 1`+"\r\n"+`}}]}`)
	require.Equal(t, `{ "n": 1  }`, resp.Message.ToolCalls[0].Arguments)
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	require.Equal(t, resp.Message.ToolCalls[0].Arguments, decodeResponse(t, string(out)).Message.ToolCalls[0].Arguments)
}
