package anthropic_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/test/envelope"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
)

// leaves returns what leaves for a client of an answer: what is shown of it, and what
// follows if it is accepted. resp is nil if it cannot be read.
func leaves(body string) (left string, resp *middleware.Response, err error) {
	s := format.NewStream(&middleware.Request{Tools: []middleware.Tool{{Name: "pay"}}}, nil)
	_, first := s.Write([]byte(body))
	resp, err = s.Close()
	left = shownOf(s)
	if err = errors.Join(first, err); err != nil {
		return left, nil, err
	}
	rest, err := s.Rest(len(left), resp)
	return left + strings.ToValidUTF8(string(rest), "\ufffd"), resp, err // as package wire writes it
}

var unlimited = rawjson.Limits{Bytes: -1, Depth: -1, Values: -1, Number: -1, Exponent: -1}

// wrongUnit returns why some unit of an answer holds a word for calls and is not of the
// one spelling in which the codec writes; "" if none does.
func wrongUnit(left string) string {
	if strings.HasPrefix(strings.TrimSpace(left), "{") {
		left = "data: " + left + "\n\n"
	}
	for unit := range strings.SplitAfterSeq(strings.ReplaceAll(left, "\r\n\r\n", "\n\n"), "\n\n") {
		if codec.HasNoCallWord(unit) {
			continue
		}
		name, data, ok := strings.Cut(strings.TrimLeft(unit, "\r\n"), "data: ") // after an empty line that passed
		data, ended := strings.CutSuffix(data, "\n\n")
		doc, err := rawjson.Parse(data, unlimited)
		switch {
		case !ok, !ended, strings.ContainsAny(data, "\r\n\ufeff"), name != "" && !strings.HasPrefix(name, "event: "):
			return "framing: " + unit
		case err != nil, !json.Valid([]byte(data)):
			return "no JSON: " + unit
		case !doc.HasPlainKeys() && !doubledInput(doc.Root()):
			return "members that not all readers find: " + unit
		}
		for m := range doc.Root().Each() {
			if !codec.HasNoCallWord(rawjson.Quote(m.Key())) || !codec.HasNoCallWord(m.Raw()) && !slices.Contains([]string{"type", "content", "content_block", "delta", "usage", "model", "stop_reason", "stop_sequence", "message"}, m.Key()) {
				return "member " + m.Key() + ": " + unit
			}
		}
	}
	return ""
}

// doubledInput reports whether an answer has a call whose arguments name a member twice,
// which is for the validator to refuse.
func doubledInput(root rawjson.Value) bool {
	for b := range root.Get("content").Each() {
		if doc, err := rawjson.Parse(b.Get("input").Raw(), unlimited); err == nil && !doc.HasPlainKeys() {
			return true
		}
	}
	return false
}

// Each unit that leaves is free of words for calls, or was written by the codec, and all
// clients read the calls that were validated, whatever came.
func TestUnitsOfHostileAnswers(t *testing.T) {
	t.Parallel()
	formats := envelope.Formats()
	f := formats[slices.IndexFunc(formats, func(f envelope.Format) bool { return f.Name == "anthropic" })]
	for _, stream := range []bool{true, false} {
		readers := append(f.Readers(true), f.Readers(false)...)
		rapid.Check(t, func(rt *rapid.T) {
			for range 4 {
				x := f.Hostile(envelope.Uniform(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "seed")...), stream)
				left, resp, err := leaves(x.Body)
				if resp == nil {
					require.NotEmpty(rt, err.Error())
				} else {
					require.NoError(rt, err, x.Body)
				}
				require.Empty(rt, wrongUnit(left), "of %q", x.Body)
				if resp != nil && slices.ContainsFunc(resp.Message.ToolCalls, hasDoubles) { // the validator refuses it
					continue
				}
				for _, r := range readers {
					for _, c := range r.Calls(left) {
						require.NotNil(rt, resp, "%s sees %q in %q", r.Name, c, left)
						require.True(rt, slices.ContainsFunc(resp.Message.ToolCalls, func(want middleware.ToolCall) bool { return isCall(c, want) }),
							"%s sees %q\nsent %q\nleft %q", r.Name, c, x.Body, left)
					}
				}
			}
		})
	}
}

// hasDoubles reports whether the arguments of a call name a member twice, or are no text.
func hasDoubles(c middleware.ToolCall) bool {
	doc, err := rawjson.Parse(c.Arguments, unlimited)
	return err == nil && !doc.HasPlainKeys() || !utf8.ValidString(c.Arguments)
}

// isCall reports whether a client's call is want. A reader may write the arguments again.
func isCall(c envelope.Call, want middleware.ToolCall) bool {
	if c.Name != want.Name && (c.Name != "" || want.Name != "") {
		return false
	}
	if c.Arguments == want.Arguments || strings.TrimSpace(c.Arguments) == "{}" && want.Arguments == "" {
		return true
	}
	var text string // the validator sees a string, some clients its content
	if json.Unmarshal([]byte(want.Arguments), &text) == nil && text == c.Arguments {
		return true
	}
	var a, b any
	return json.Unmarshal([]byte(c.Arguments), &a) == nil && json.Unmarshal([]byte(want.Arguments), &b) == nil && same(a, b)
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// The same of recorded answers: a client reads what was recorded, usage and signatures of
// reasoning included.
func TestUnitsOfRecordedAnswers(t *testing.T) {
	t.Parallel()
	read := 0
	for _, name := range []string{"anthropic-messages", "anthropic-elsewhere"} {
		for _, x := range codectest.Load(t, name) {
			want, err := codec.Decode(format.NewStream(nil, nil), []byte(x.Response))
			if err != nil {
				continue
			}
			left, _, err := leaves(x.Response)
			require.NoError(t, err, x.ID)
			require.Empty(t, wrongUnit(left), x.ID)
			got, err := codec.Decode(format.NewStream(nil, nil), []byte(left))
			require.NoError(t, err, x.ID)
			requireSameAnswer(t, want, got)
			read++
		}
	}
	require.NotZero(t, read)
}

const thinkingStart = `{"type":"thinking","thinking":"","signature":""}`

// thought is a block of reasoning.
func thought(n int, text, signature string) string {
	return blockStart(n, thinkingStart) + blockDelta(n, "thinking_delta", "thinking", text) + blockDelta(n, "signature_delta", "signature", signature) + blockStop(n)
}

// said is a block of text, and called a block with a call.
func said(n int, text string) string { return textBlockStart(n) + textDelta(n, text) + blockStop(n) }
func called(n int, id, arguments string) string {
	return toolBlockStart(n, id, "a") + inputDelta(n, arguments) + blockStop(n)
}

// kinds returns the types of the blocks of a message as history has them, and signatures.
func kinds(t *testing.T, body string) (out []string) {
	t.Helper()
	v, err := codec.ParseObject(decodeResponse(t, body).Message.Native.Raw)
	require.NoError(t, err)
	for b := range v.Get("content").Each() {
		out = append(out, b.Get("type").Str()+b.Get("signature").Str())
	}
	return out
}

// Reasoning in front of a call that a re-ask replaces does not meet the reasoning of the second
// answer, which the provider would refuse in every later request.
func TestReasoningOfTwoAnswers(t *testing.T) {
	t.Parallel()
	second := messageStreamOf("msg_2", thought(0, "so", "B"), called(1, "t9", `{"n":3}`), messageEnd("tool_use", 30))
	end := messageEnd("tool_use", 20)
	for name, x := range map[string]struct {
		first string
		shown string // the last text
		want  []string
	}{
		"reasoning, a call":                  {messageStream(thought(0, "hm", "A"), called(1, "t1", `{`), end), "", []string{"thinkingB", "tool_use"}},
		"reasoning, empty text, a call":      {messageStream(thought(0, "hm", "A"), said(1, ""), called(2, "t1", `{`), end), "", []string{"thinkingB", "tool_use"}},
		"reasoning, text, a call":            {messageStream(thought(0, "hm", "A"), said(1, "Hi"), called(2, "t1", `{`), end), "Hi", []string{"thinkingA", "text", "tool_use"}},
		"text, reasoning, a call":            {messageStream(said(0, "Hi"), thought(1, "hm", "A"), called(2, "t1", `{`), end), "Hi", []string{"text", "tool_use"}},
		"reasoning, text, reasoning, a call": {messageStream(thought(0, "hm", "A"), said(1, "Hi"), thought(2, "hm", "C"), called(3, "t1", `{`), end), "Hi", []string{"thinkingA", "text", "tool_use"}},
		"redacted reasoning, a call":         {messageStream(blockStart(0, `{"type":"redacted_thinking","data":"x"}`), blockStop(0), called(1, "t1", `{`), end), "", []string{"thinkingB", "tool_use"}},
		"reasoning, a search, a call": {messageStream(thought(0, "hm", "A"), blockStart(1, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), blockStop(1),
			blockStart(2, `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`), blockStop(2), called(3, "t1", `{`), end), "s",
			[]string{"thinkingA", "server_tool_use", "web_search_tool_result", "tool_use"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, resp, err := readAndClose(t, x.first)
			require.NoError(t, err)
			shown := shownOf(s)
			require.Contains(t, shown, x.shown)
			require.Equal(t, x.shown != "", strings.Contains(shown, "content_block"), shown)
			require.NotContains(t, shown, `"t1"`)
			body := shown + restOf(t, s, len(shown), decodeResponse(t, second))
			require.Equal(t, x.want, kinds(t, body))
			got := decodeResponse(t, body)
			require.Equal(t, `{"n":3}`, got.Message.ToolCalls[0].Arguments)
			require.Equal(t, 1, strings.Count(body, `"type":"message_start"`))

			own := decodeResponse(t, shown+restOf(t, s, len(shown), resp)) // accepted, it keeps its reasoning
			requireSameAnswer(t, resp, own)
		})
	}
}

// Reasoning is shown when text follows it, in a request without tools at once, and waits
// as long as nothing does.
func TestReasoningWaits(t *testing.T) {
	t.Parallel()
	head := messageStream(thought(0, "hm", "A"), textBlockStart(1))
	for _, tools := range []bool{true, false} {
		req := &middleware.Request{}
		if tools {
			req.Tools = []middleware.Tool{{Name: "a"}}
		}
		s := format.NewStream(req, nil)
		_, err := s.Write([]byte(head))
		require.NoError(t, err)
		require.Equal(t, tools, s.Safe() == 0)
		_, err = s.Write([]byte(textDelta(1, "Hi")))
		require.NoError(t, err)
		require.Equal(t, head+textDelta(1, "Hi"), shownOf(s))
	}
}

// Letters that are divided over two deltas stay one letter.
func TestDividedLetters(t *testing.T) {
	t.Parallel()
	half := func(n int, kind, key, raw string) string {
		return strings.Replace(blockDelta(n, kind, key, "HALF"), `"HALF"`, `"`+raw+`"`, 1)
	}
	body := messageStream(textBlockStart(0), half(0, "text_delta", "text", `a\ud83d`), half(0, "text_delta", "text", `\ude00`), blockStop(0),
		toolBlockStart(1, "t1", "a"), half(1, "input_json_delta", "partial_json", `{\"n\":\"\ud83d`), half(1, "input_json_delta", "partial_json", `\ude00\"}`), blockStop(1), messageEnd("tool_use", 9))
	resp := decodeResponse(t, body)
	require.Equal(t, "a😀", resp.Message.Text())
	require.Equal(t, `{"n":"😀"}`, resp.Message.ToolCalls[0].Arguments)
	left, _, err := leaves(body)
	require.NoError(t, err)
	requireSameAnswer(t, resp, decodeResponse(t, left))
}

// The members that the provider wrote into a call, next to its name and arguments, are kept,
// as is the end of the answer, except for members in which a reader may find another call.
func TestMembersOfAnAcceptedAnswer(t *testing.T) {
	t.Parallel()
	body := messageStream(said(0, `You say "tool_use" here.`),
		blockStart(1, `{"type":"tool_use","id":"t\u0031","name":"a","input":{},"caller":{"type":"direct", "n":1.0},"new":{"k":"v"},"tool_calls":[1],"Name":"b"}`), inputDelta(1, `{"n": 1.0}`), blockStop(1),
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"container":{"id":"c"},"later":1},"usage":{"output_tokens":9,"server_tool_use":{"web_search_requests":1}},"context_management":{"applied_edits":[]}}`),
		event("message_stop", `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":1}}`))
	left, resp, err := leaves(body)
	require.NoError(t, err)
	require.Empty(t, wrongUnit(left))
	for _, member := range []string{`"id":"t\u0031"`, `"caller":{"type":"direct", "n":1.0}`, `"new":{"k":"v"}`, `"container":{"id":"c"}`, `"later":1`,
		`"server_tool_use":{"web_search_requests":1}`, `"context_management":{"applied_edits":[]}`, `"amazon-bedrock-invocationMetrics":{"inputTokenCount":1}`, `say \"tool_use\" here`} {
		require.Contains(t, left, member)
	}
	require.NotContains(t, left, "tool_calls")
	require.NotContains(t, left, `"Name"`)
	requireSameAnswer(t, resp, decodeResponse(t, left))
}

// A word for calls where a call could hide makes an answer unreadable; in text, and in
// results of tools that the provider runs, it does not.
func TestHiddenCalls(t *testing.T) {
	t.Parallel()
	call := `{"type":"tool_use","id":"t1","name":"pay","input":{"amount":99999}}`
	for name, x := range map[string]struct {
		event    string
		readable bool
	}{
		"an unknown event with a block":  {event("later", `{"type":"later","block":`+call+`}`), false},
		"an unknown event with text":     {event("later", `{"type":"later","note":"about \"tool_use\""}`), true},
		"a ping with a call":             {event("ping", `{"type":"ping","content_block":`+call+`}`), false},
		"a stop with a call":             {event("content_block_stop", `{"type":"content_block_stop","index":0,"next":`+call+`}`), false},
		"an unknown block with a call":   {blockStart(1, `{"type":"later","tool_calls":[`+call+`]}`) + blockStop(1), false},
		"a type in another case":         {blockStart(1, `{"type":"Tool_use","id":"t1","name":"pay","input":{}}`) + blockStop(1), false},
		"a block without a type":         {blockStart(1, `{"name":"pay","input":{}}`) + blockStop(1), false},
		"a result about calls":           {blockStart(1, `{"type":"web_fetch_tool_result","tool_use_id":"s","content":{"text":"\"tool_use\""}}`) + blockStop(1), true},
		"an unknown result":              {blockStart(1, `{"type":"later_tool_result","tool_use_id":"s","content":"x"}`) + blockStop(1), true},
		"a text with a call beside it":   {blockStart(1, `{"type":"text","text":"x","tool_calls":[`+call+`]}`) + blockStop(1), true},
		"an event without a type, named": {"event: later\ndata: {\"Type\":\"content_block_start\",\"index\":1,\"content_block\":" + call + "}\n\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, resp, err := leaves(messageStream(said(0, "Hi"), x.event, messageEnd("end_turn", 3)))
			require.NotContains(t, left, "99999")
			require.Empty(t, wrongUnit(left))
			if x.readable {
				require.NoError(t, err)
				require.Empty(t, resp.Message.ToolCalls)
				return
			}
			require.ErrorIs(t, err, codec.ErrShape)
		})
	}
}

// A whole answer has no members of events: calls in them go.
func TestEventMembersOfAWholeAnswer(t *testing.T) {
	t.Parallel()
	call := func(amount string) string {
		return `[{"type":"tool_use","id":"t1","name":"pay","input":{"amount":` + amount + `}}]`
	}
	left, resp, err := leaves(`{"type":"message","role":"assistant","model":"m","content":` + call("5") + `,"content_block":` + call("99999") + `,"stop_reason":"tool_use","usage":{}}`)
	require.NoError(t, err)
	require.Equal(t, `{"amount":5}`, resp.Message.ToolCalls[0].Arguments)
	require.NotContains(t, left, "99999")
	require.Contains(t, left, `"amount":5`)
}

// Lines that readers take differently, such as lines after a byte order mark, do not leave
// with a call in them.
func TestLinesThatHideCalls(t *testing.T) {
	t.Parallel()
	open, delta := toolBlockStart(1, "t1", "pay"), inputDelta(1, `{"amount":99999}`)
	for name, hidden := range map[string]string{
		"a mark before the event": strings.ReplaceAll(open+delta, "event: ", "\ufeffevent: "),
		"a mark before the data":  strings.ReplaceAll(open+delta, "data: ", "\ufeffdata: "),
		"white space":             strings.ReplaceAll(open+delta, "data: ", "data:\v"),
		"no field":                `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"pay","input":{"amount":99999}}}` + "\n\n",
		"a carriage return":       strings.ReplaceAll(open+delta, "event: ", ": \revent: "),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, resp, _ := leaves(messageStream(said(0, "Hi"), hidden, blockStop(1), messageEnd("tool_use", 3)))
			require.Empty(t, wrongUnit(left))
			if resp == nil || len(resp.Message.ToolCalls) == 0 {
				require.NotContains(t, left, "99999")
			}
		})
	}
}

// A stream that clients count in different ways is written in the one way.
func TestIndicesAreWrittenAnew(t *testing.T) {
	t.Parallel()
	text := event("content_block_start", `{"type":"content_block_start","index":4,"content_block":{"type":"text","text":"Hi"}}`) + blockStop(4)
	nameless := strings.ReplaceAll(said(0, "Hi"), "event: content_block_start\n", "")
	early := strings.Replace(messageStream(), `"content":[]`, `"content":[{"type":"text","text":"Hi"}]`, 1)
	end := messageEnd("tool_use", 3)
	for name, body := range map[string]string{
		"an index that is not the place":      messageStream(text, called(5, "t1", `{"n":1}`), end),
		"interleaved calls":                   messageStream(said(0, "Hi"), toolBlockStart(1, "t1", "a"), toolBlockStart(2, "t2", "a"), inputDelta(1, `{"n":`), inputDelta(2, `{"n":2}`), inputDelta(1, `1}`), blockStop(2), blockStop(1), end),
		"an event without a name":             messageStream(nameless, called(1, "t1", `{"n":1}`), end),
		"a block in the start of the message": early + called(1, "t1", `{"n":1}`) + end,
		"arguments in the start and deltas":   messageStream(said(0, "Hi"), blockStart(1, `{"type":"tool_use","id":"t1","name":"a","input":{"n":9}}`), inputDelta(1, `{"n":1}`), blockStop(1), end),
		"doubled members":                     messageStream(said(0, "Hi"), strings.Replace(called(1, "t1", `{"n":1}`), `"name":"a"`, `"name":"b","name":"a"`, 1), end),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, resp, err := leaves(body)
			require.NoError(t, err)
			require.Empty(t, wrongUnit(left))
			require.Equal(t, "Hi", resp.Message.Text())
			require.Equal(t, `{"n":1}`, resp.Message.ToolCalls[0].Arguments)
			requireSameAnswer(t, resp, decodeResponse(t, left))
			require.NotContains(t, left, `"index":4`, "the index of a block is its place")
			formats := envelope.Formats()
			f := formats[slices.IndexFunc(formats, func(f envelope.Format) bool { return f.Name == "anthropic" })]
			for _, r := range f.Readers(true) {
				calls := r.Calls(left)
				require.Len(t, calls, len(resp.Message.ToolCalls), r.Name)
				for i, c := range calls {
					require.True(t, isCall(c, resp.Message.ToolCalls[i]), "%s sees %q", r.Name, c)
				}
			}
		})
	}
}

// A block of an unknown type whose input comes in deltas is shown. What follows it can be written.
func TestInputOfAnUnknownBlock(t *testing.T) {
	t.Parallel()
	event := func(kind, members string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + members + "}\n\n"
	}
	body := event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"m","content":[]}`) +
		event("content_block_start", `,"index":0,"content_block":{"type":"odd_use","id":"o1","input":{}}`) +
		event("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\": 1}"}`) +
		event("content_block_stop", `,"index":0`) +
		event("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":"c1","name":"pay","input":{}}`) +
		event("content_block_stop", `,"index":1`) +
		event("message_delta", `,"delta":{"stop_reason":"tool_use"}`) + event("message_stop", "")
	left, resp, err := leaves(body)
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, 1)
	require.Contains(t, left, `"name":"pay"`)
}

// An event whose text is spelled anew does not become a pattern for the next event, even if it
// has a piece of a call.
func TestPieceOfARewrittenEvent(t *testing.T) {
	t.Parallel()
	event := func(kind, rest string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + rest + "}\n\n"
	}
	for kind, want := range map[string]string{"input_json_delta": `{"n":1}`, "input_json_delta\xc6": "{}", "other_delta": "{}"} {
		for _, before := range []string{"", "\"a\":\"\xc6\xc6\xc6\xc6\",", `"a":{"b":1,"b":2},`, `"a" : 1 ,`} {
			piece := func(json string) string {
				return event("content_block_delta", before+`"index":0,"delta":{"type":"`+kind+`","partial_json":"`+json+`"}`)
			}
			body := event("message_start", `"message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{}}`) +
				event("content_block_start", `"index":0,"content_block":{"type":"tool_use","id":"t","name":"a","input":{}}`) +
				piece(`{\"n\"`) + piece(`:1`) + piece(`}`) +
				event("content_block_stop", `"index":0`) + event("message_delta", `"delta":{"stop_reason":"tool_use"},"usage":{}`) + event("message_stop", `"a":1`)
			resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
			require.NoError(t, err)
			require.Equal(t, want, resp.Message.ToolCalls[0].Arguments, "%q", body)
		}
	}
}
