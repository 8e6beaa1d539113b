package responses_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestStream(t *testing.T) {
	t.Parallel()
	var text, reasoning string
	s := format.NewStream(offering, func(e middleware.Event) error {
		if e.Kind == middleware.EventReasoning {
			reasoning += e.Text
		} else {
			text += e.Text
		}
		return nil
	})
	for i := range len(talkative) {
		_, err := s.Write([]byte(talkative[i : i+1]))
		require.NoError(t, err)
	}
	require.Equal(t, strings.Index(talkative, "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":14"), s.Safe(),
		"all up to the reasoning in front of the call may be shown")
	resp, err := s.Close()
	require.NoError(t, err)
	require.Equal(t, "Let me see.", text)
	require.Equal(t, "Look first.\n\nThen ask.", reasoning)
	require.Equal(t, reasoning, resp.Message.Parts[0].Text)
	require.Equal(t, text, resp.Message.Text())
	require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
	require.Equal(t, middleware.Usage{InputTokens: 10, Cached: 4, OutputTokens: 6, Reasoning: 2}, resp.Usage)
	require.Contains(t, resp.Message.Native.Raw, `"encrypted_content":"AA=="`, "an item is what output_item.done says")
	again, err := s.Close()
	require.NoError(t, err)
	require.Same(t, resp, again)
}

func TestSinkEndsTheStream(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for _, body := range []string{talkative, answerBody("", plainMessage)} {
		s := format.NewStream(offering, func(middleware.Event) error { return stop })
		_, err := codec.Decode(s, []byte(body))
		require.ErrorIs(t, err, stop)
		_, err = s.Close()
		require.ErrorIs(t, err, stop)
	}
}

func TestTextWithoutDeltasIsShown(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"an object": answerBody("", plainMessage),
		"a stream": eventStream(`{"type":"response.output_item.done","output_index":0,"item":`+plainMessage+`}`,
			`{"type":"response.completed","response":{"status":"completed","output":[]}}`),
	} {
		var text string
		_, err := codec.Decode(format.NewStream(offering, func(e middleware.Event) error { text += e.Text; return nil }), []byte(body))
		require.NoError(t, err)
		require.Equal(t, "Hi.", text, name)
	}
}

// A changed call is changed in each of the places that hold a copy of it.
func TestEveryCopyOfACallIsChanged(t *testing.T) {
	t.Parallel()
	body := casefile.Body(t, "before")
	resp := decodeResponse(t, body)
	c := &resp.Message.ToolCalls[0]
	c.ID, c.Name, c.Arguments = "call_x", "forecast", `{"city":"Oslo"}`
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	casefile.Expect(t, "after", string(out))
	require.NotContains(t, string(out), "call_1")
	require.NotContains(t, string(out), `"weather"`)
	require.NotContains(t, string(out), `city\":7`)
	require.Equal(t, 4, strings.Count(string(out), `{\"city\":\"Oslo\"}`))
	require.Equal(t, 3, strings.Count(string(out), `"call_x"`))
	require.Equal(t, 3, strings.Count(string(out), `"forecast"`))
	_, err = play(string(out))
	require.NoError(t, err)

	back := decodeResponse(t, string(out))
	*c = back.Message.ToolCalls[0]
	c.ID, c.Name, c.Arguments = "call_1", "weather", `{"city":7}`
	undone, err := format.EncodeResponse(&middleware.Response{Message: resp.Message, FinishReason: back.FinishReason, Model: back.Model, Usage: back.Usage, Native: back.Native})
	require.NoError(t, err)
	require.Equal(t, decodeResponse(t, body).Message.ToolCalls[0].Arguments, decodeResponse(t, string(undone)).Message.ToolCalls[0].Arguments)
}

func TestStreamsThatAreNotComplete(t *testing.T) {
	t.Parallel()
	const added = `{"type":"response.output_item.added","output_index":0,"item":{"id":"fc","type":"function_call","call_id":"c","name":"f","arguments":""}}`
	const delta = `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"a\":"}`
	const done = `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}`
	const end = `{"type":"response.completed","response":{"status":"completed","output":[]}}`
	for name, c := range map[string]struct{ body, arguments string }{
		"a call that was not finished": {eventStream(added, delta, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`), `{"a":`},
		"no item at the end":           {eventStream(added, delta, strings.Replace(delta, `{\"a\":`, "1}", 1), done, end), `{"a":1}`},
		"only the end":                 {eventStream(`{"type":"response.completed","response":{"status":"completed","output":[` + plainCall + `]}}`), `{}`},
		"nothing but an announcement":  {eventStream(added, end), ``},
		"no announcement":              {eventStream(`{"type":"response.output_item.done","output_index":3,"item":`+plainCall+`}`, end), `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, c.body)
			require.Len(t, resp.Message.ToolCalls, 1)
			require.Equal(t, c.arguments, resp.Message.ToolCalls[0].Arguments)
			resp.Message.ToolCalls[0].Arguments = `{"b":2}`
			out, err := format.EncodeResponse(resp)
			require.NoError(t, err)
			require.NotContains(t, string(out), `\"a\"`)
			require.Equal(t, `{"b":2}`, decodeResponse(t, string(out)).Message.ToolCalls[0].Arguments)
			resp.Message.ToolCalls = nil
			out, err = format.EncodeResponse(resp)
			require.NoError(t, err)
			require.Empty(t, decodeResponse(t, string(out)).Message.ToolCalls)
		})
	}
}

func TestStreamsOfOtherShapes(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"an end without a response":  eventStream(`{"type":"response.completed","response":[]}`),
		"arguments without a call":   eventStream(`{"type":"response.function_call_arguments.delta","output_index":0,"delta":""}`),
		"arguments that are no text": eventStream(`{"type":"response.output_item.added","output_index":0,"item":`+plainCall+`}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":{}}`),
		"an output that is none":     eventStream(`{"type":"response.completed","response":{"output":{}}}`),
	} {
		_, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
		require.ErrorIs(t, err, codec.ErrShape, name)
	}
}

// Events in another order than usual are read, if there is one way to read them.
func TestStreamsInAnotherOrder(t *testing.T) {
	t.Parallel()
	const end = `{"type":"response.completed","response":{"status":"completed","output":[]}}`
	for name, c := range map[string]struct {
		body  string
		text  string
		calls int
	}{
		"two ends":                  {eventStream(end, strings.Replace(end, "[]", "["+plainCall+"]", 1)), "", 0},
		"an item after the end":     {eventStream(end, `{"type":"response.output_item.done","output_index":0,"item":`+plainCall+`}`), "", 0},
		"a call without a place":    {eventStream(`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"f"}}`, `{"type":"response.function_call_arguments.delta","delta":"{}"}`, end), "", 1},
		"a call that was a message": {eventStream(`{"type":"response.output_item.added","output_index":0,"item":`+plainMessage+`}`, `{"type":"response.output_item.done","output_index":0,"item":`+plainCall+`}`, end), "", 1},
		"null beside a call":        {eventStream(`{"type":"response.output_item.done","output_index":0,"item":`+plainCall+`}`, strings.Replace(end, "[]", `[null,"tool_use"]`, 1)), "", 1},
		"a call that is done twice": {eventStream(`{"type":"response.output_item.done","output_index":0,"item":`+strings.Replace(plainCall, "{}", "[", 1)+`}`, `{"type":"response.output_item.done","output_index":0,"item":`+plainCall+`}`, end), "", 1},
	} {
		resp := decodeResponse(t, c.body)
		require.Equal(t, c.text, resp.Message.Text(), name)
		require.Len(t, resp.Message.ToolCalls, c.calls, name)
		if c.calls > 0 {
			require.Equal(t, "{}", resp.Message.ToolCalls[0].Arguments, name)
		}
		if c.calls > 0 {
			resp.Message.ToolCalls[0].Arguments = `{"a":1}`
		}
		out, err := format.EncodeResponse(resp)
		require.NoError(t, err, name)
		again := decodeResponse(t, string(out)).Message
		require.Len(t, again.ToolCalls, c.calls, name)
		require.Len(t, again.Parts, len(resp.Message.Parts), name)
	}
}

// The end belongs to the item that was done, not to one that was announced as another
// sort with the same id: its text and its call are in the answer once.
func TestItemsAnnouncedAsAnotherSort(t *testing.T) {
	t.Parallel()
	stranger := func(id string) string {
		return `{"type":"response.output_item.added","output_index":0,"item":{"id":"` + id + `","type":"assistant","status":"in_progress"}}`
	}
	done := func(item string) string {
		return `{"type":"response.output_item.done","output_index":0,"item":` + item + `}`
	}
	end := func(items string) string {
		return `{"type":"response.completed","response":{"status":"completed","output":[` + items + `]}}`
	}
	withoutID := strings.Replace(plainMessage, `"id":"msg",`, "", 1)
	require.NotEqual(t, plainMessage, withoutID)
	const approval = `{"id":"a","type":"mcp_approval_request","server_label":"l","name":"pay","arguments":"{}"}`
	for name, c := range map[string]struct {
		body  string
		text  string
		calls int
	}{
		"a message":                     {eventStream(stranger("msg"), done(plainMessage), end(plainMessage)), "Hi.", 0},
		"a message done without its id": {eventStream(stranger("msg"), done(withoutID), end(plainMessage)), "Hi.", 0},
		"a message that is not done":    {eventStream(stranger("msg"), end(plainMessage)), "Hi.", 0},
		"a call":                        {eventStream(stranger("fc"), done(plainCall), end(plainCall)), "", 1},
		"a call known by its id alone":  {eventStream(stranger("a"), done(approval), end(approval)), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, c.body)
			require.Equal(t, c.text, resp.Message.Text())
			require.Len(t, resp.Message.ToolCalls, c.calls)
			out, err := format.EncodeResponse(resp)
			require.NoError(t, err)
			again := decodeResponse(t, string(out)).Message
			require.Equal(t, c.text, again.Text())
			require.Len(t, again.ToolCalls, c.calls)
			resp.Message.Parts = append(resp.Message.Parts, middleware.Part{Text: " More."})
			out, err = format.EncodeResponse(resp)
			require.NoError(t, err)
			again = decodeResponse(t, string(out)).Message
			require.Equal(t, c.text+" More.", again.Text())
			require.Len(t, again.ToolCalls, c.calls)
		})
	}
}

// Comments, [DONE], CRLF, events without names or numbers and of unknown types do not stop the
// reader and hold nothing back. After a call everything is written anew.
func TestFramings(t *testing.T) {
	t.Parallel()
	body := ": working\r\n\r\n" + strings.ReplaceAll(`data: {"type":"response.created","response":{"output":[]}}

data: {"type":"response.new","x":1}

data: no JSON

: still working

data: {"type":"response.output_item.added","output_index":0,"item":{"id":"fc","type":"function_call","call_id":"c1","name":"f","arguments":""}}

: keep alive

data: {"type":"response.output_item.done","output_index":0,"item":`+plainCall+`}

data: {"type":"response.completed","response":{"output":[`+plainCall+`]}}

data: [DONE]

`, "\n", "\r\n")
	s := format.NewStream(nil, nil)
	resp, err := codec.Decode(s, []byte(body))
	require.NoError(t, err)
	shown := shownOf(s)
	before, _, _ := strings.Cut(body, `data: {"type":"response.output_item.added"`)
	require.Equal(t, strings.Replace(before, "data: no JSON\r\n\r\n", "", 1), shown)

	resp.Message.ToolCalls = append(resp.Message.ToolCalls, middleware.ToolCall{ID: "c2", Name: "g", Arguments: "{}"})
	rest, err := s.Rest(s.Safe(), resp)
	require.NoError(t, err)
	all := shown + string(rest)
	for _, kept := range []string{": working", "response.new", ": still working", "[DONE]"} {
		require.Equal(t, 1, strings.Count(all, kept), kept)
	}
	require.NotContains(t, all, "event:")
	require.NotContains(t, all, "sequence_number")
	require.Len(t, decodeResponse(t, all).Message.ToolCalls, 2)
}

func TestChangedEndOfAStream(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, casefile.Body(t, "before"))
	resp.FinishReason, resp.Model = middleware.FinishLength, "n"
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	casefile.Expect(t, "after", string(out))
	require.Contains(t, string(out), "event: response.incomplete\ndata: {\"type\":\"response.incomplete\"")
	require.NotContains(t, string(out), `"model":"m"`)
	p, err := play(string(out))
	require.NoError(t, err)
	require.Equal(t, 1.0, p.finished["x_new"])
	got := decodeResponse(t, string(out))
	require.Equal(t, middleware.FinishLength, got.FinishReason)
	require.Equal(t, "n", got.Model)
}

func TestManyEvents(t *testing.T) {
	t.Parallel()
	_, err := codec.Decode(format.NewStream(nil, nil), []byte(strings.Repeat(":\n\n", 1<<19+1)))
	require.ErrorIs(t, err, codec.ErrIncomplete)
}

// An event that is cut through may be the beginning of a call, and a list is no
// stream of this format.
func TestNothingIsSafeBehindWhatIsBroken(t *testing.T) {
	t.Parallel()
	head := eventStream(`{"type":"response.created","response":{}}`)
	for body, want := range map[string]int{
		head + "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\"\n\n": len(head),
		head + "event: error\ndata: Oops\n\n":         len(head),
		head + ": comment\n\n":                        len(head + ": comment\n\n"),
		`[{"type":"response.created","response":{}},`: 0,
	} {
		s := format.NewStream(nil, nil)
		_, err := s.Write([]byte(body))
		require.Equal(t, strings.HasPrefix(body, "["), err != nil, "%v", err)
		require.Equal(t, want, s.Safe(), body)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                          "https://api.openai.com/v1/responses",
		"https://host/v1/":          "https://host/v1/responses",
		"https://a/d?api-version=1": "https://a/d/responses?api-version=1",
	} {
		require.Equal(t, want, format.URL(base, "m", true))
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/v1/responses": true, "/openai/responses?api-version=1": true, "/proxy/openai/v1/responses/": true, "/v1/chat/completions": false,
		"/v1/responses/resp_1/cancel": false, "/v1/responses/compact": true, "/v1/responses/input_tokens": false,
	} {
		require.Equal(t, want, format.Match(path, []byte(` {"input":"x"}`)), path)
	}
	for body, want := range map[string]bool{`{"prompt":{}}`: true, `{"previous_response_id":"x"}`: true, `{"messages":[]}`: false, `["input"]`: false, ``: false} {
		require.Equal(t, want, format.Match("/v1/responses", []byte(body)), body)
	}
	require.Equal(t, "https://api.openai.com/v1/responses", format.URL("", "m", true))
	require.Equal(t, "https://x.test/v1/responses", format.URL("https://x.test/v1/", "m", false))
	h := http.Header{}
	format.Authorize(h, "")
	require.Empty(t, h)
	format.Authorize(h, "k")
	require.Equal(t, "Bearer k", h.Get("Authorization"))
}

// Many copies of items, many texts of one, and an event of any depth cost no more time
// than their bytes.
func TestHostileStreamsInTime(t *testing.T) {
	t.Parallel()
	big := `{"type":"response.output_item.done","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[{"type":"output_text","text":"` + strings.Repeat("x", 1<<20) + `"}]}}`
	copies := eventStream(big) + strings.Repeat(eventStream(`{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message"}}`), 10_000)
	texts := eventStream(`{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message"}}`)
	for i := range 2000 {
		texts += eventStream(`{"type":"response.output_text.delta","output_index":0,"content_index":` + codec.Count(int64(i)) + `,"delta":"x"}`)
	}
	deep := `data: {"type":"response.new","x":` + strings.Repeat(`{"a":`, 1<<16) + `"\"tool_calls\""` + strings.Repeat("}", 1<<16) + "}\n\n"
	for name, c := range map[string]struct {
		body string
		want error
	}{"copies": {copies, codec.ErrIncomplete}, "texts": {texts, codec.ErrShape}, "deep": {deep, codec.ErrShape}} {
		start := time.Now()
		_, err := codec.Decode(format.NewStream(nil, nil), []byte(c.body))
		require.ErrorIs(t, err, c.want, name)
		require.Less(t, time.Since(start), 20*time.Second, name)
	}
}
