package responses_test

import (
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const plainMessage = `{"id":"msg","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi.","annotations":[],"logprobs":[{"token":"Hi."}]}]}`

func TestDecodeAnswer(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, answerBody(`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":1},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":16},`,
		plainReasoning, plainMessage,
		`{"type":"web_search_call","id":"ws","status":"completed"}`,
		`{"type":"shell_call","call_id":"s1","action":{}}`, `{"type":"shell_call_output","call_id":"s1","output":[]}`,
		`{"type":"mcp_call","id":"mcp","name":"f","arguments":"{}"}`, plainCall))
	require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
	require.Equal(t, "m", resp.Model)
	require.Equal(t, middleware.Usage{InputTokens: 10, Cached: 4, CacheWrite: 1, OutputTokens: 6, Reasoning: 2}, resp.Usage)
	kinds := []middleware.PartKind{}
	for _, p := range resp.Message.Parts {
		kinds = append(kinds, p.Kind)
	}
	require.Equal(t, []middleware.PartKind{"reasoning", "", "opaque", "opaque", "opaque", "opaque"}, kinds, "what the provider runs is opaque, its shell too")
	require.Len(t, resp.Message.ToolCalls, 1)
	require.True(t, strings.HasPrefix(resp.Message.Native.Raw, `{"output":[`+plainReasoning+`,`+plainMessage+`,`))

	_, items, _ := strings.Cut(resp.Message.Native.Raw, ":")
	again := decodeRequest(t, `{"input":`+items)
	require.Equal(t, middleware.RoleAssistant, again.Messages[0].Role)
}

func TestCallsThatTheClientAnswersInAFormOfTheirOwn(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, answerBody("",
		`{"type":"computer_call","id":"cu","call_id":"c1","actions":[{"type":"click"}]}`, `{"type":"local_shell_call","call_id":"c2","action":{"command":["ls"]}}`,
		`{"type":"apply_patch_call","call_id":"c3","operation":{}}`, `{"type":"shell_call","call_id":"c4","action":{}}`,
		`{"type":"mcp_approval_request","id":"c5","name":"f","arguments":"{}"}`, `{"type":"tool_search_call","execution":"client","call_id":"c6","arguments":{}}`))
	seen := []string{}
	for _, c := range resp.Message.ToolCalls {
		require.Equal(t, middleware.KindBuiltin, c.Kind)
		seen = append(seen, c.ID+" "+c.Name)
	}
	require.Equal(t, []string{"c1 computer", "c2 local_shell", "c3 apply_patch", "c4 shell", "c5 mcp_approval_request", "c6 tool_search"}, seen)
	require.Equal(t, `[{"type":"click"}]`, resp.Message.ToolCalls[0].Arguments)
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want middleware.FinishReason
	}{
		"stop":       {`{"status":"completed","output":[]}`, middleware.FinishStop},
		"no status":  {`{"output":[]}`, middleware.FinishStop},
		"length":     {`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`, middleware.FinishLength},
		"filter":     {`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`, middleware.FinishFilter},
		"other":      {`{"status":"incomplete","incomplete_details":{"reason":"new"},"output":[]}`, "new"},
		"no reason":  {`{"status":"incomplete","output":[]}`, "incomplete"},
		"background": {`{"status":"queued","output":[],"usage":null}`, "queued"},
		"running":    {`{"status":"in_progress","output":[]}`, "in_progress"},
		"cancelled":  {`{"status":"cancelled","output":[]}`, "cancelled"},
	} {
		resp := decodeResponse(t, c.body)
		require.Equal(t, c.want, resp.FinishReason, name)
		require.Empty(t, resp.Message.ToolCalls)
	}
}

// Each edit changes what it has to and nothing else: see the files of
// testdata/TestEditedAnswers.
func TestEditedAnswers(t *testing.T) {
	t.Parallel()
	type resp = *middleware.Response
	other := decodeResponse(t, answerBody("", `{"id":"fc","type":"function_call","call_id":"c9","name":"f","arguments":"{}","status":"completed"}`))
	edits := map[string]func(resp){
		"a call": func(r resp) {
			c := &r.Message.ToolCalls[0]
			c.ID, c.Name, c.Arguments = "x", "g", "no JSON"
		},
		"a call goes, its reasoning stays": func(r resp) { r.Message.ToolCalls = nil },
		"a call comes": func(r resp) {
			r.Message.ToolCalls = []middleware.ToolCall{{ID: "call_7", Name: "f", Arguments: "{}"}}
		},
		"a call of another answer": func(r resp) { r.Message.ToolCalls = other.Message.ToolCalls },
		"a custom call":            func(r resp) { r.Message.ToolCalls[0].Arguments = "b\n" },
		"a text, and its copies":   func(r resp) { r.Message.Parts[0].Text = "Ho." },
		"the usage":                func(r resp) { r.Usage = middleware.Usage{InputTokens: 20, Cached: 5, OutputTokens: 6, Reasoning: 1} },
		"no usage to write":        func(r resp) { r.Usage.InputTokens = 5 },
		"the model":                func(r resp) { r.Model = "n" },
		"the finish reason":        func(r resp) { r.FinishReason = middleware.FinishLength },
		"filtered no more":         func(r resp) { r.FinishReason = middleware.FinishStop },
		"filtered now":             func(r resp) { r.FinishReason = middleware.FinishFilter },
	}
	casefile.OneForEach(t, maps.Keys(edits))
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, casefile.Body(t, "before"))
			edit(resp)
			out, err := format.EncodeResponse(resp)
			require.NoError(t, err)
			casefile.Expect(t, "after", string(out))
			again, err := format.EncodeResponse(throughJSON(t, resp))
			require.NoError(t, err)
			require.Equal(t, string(out), string(again), "stored in between")
		})
	}
}

func TestAnswerEditsWithoutAPlace(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(r *middleware.Response){
		"further choices": func(r *middleware.Response) { r.Choices = make([]middleware.Message, 1) },
		"a foreign call": func(r *middleware.Response) {
			r.Message.ToolCalls[0] = middleware.ToolCall{Kind: middleware.KindBuiltin}
		},
		"another role":         func(r *middleware.Response) { r.Message.Role = middleware.RoleUser },
		"not from this format": func(r *middleware.Response) { r.Native = &middleware.Native{Dialect: "d"} },
		"from nowhere":         func(r *middleware.Response) { r.Native = nil },
		"an image of the model": func(r *middleware.Response) {
			r.Message.Parts = []middleware.Part{{Kind: middleware.PartMedia, URL: "u"}}
		},
	} {
		for _, body := range []string{answerBody("", plainReasoning, plainCall), talkative} {
			resp := decodeResponse(t, body)
			edit(resp)
			_, err := format.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable, name)
		}
	}
}

// A finish reason without a word of the format is the reason of an incomplete answer. A reason
// that the calls contradict follows them, because no status means calls.
func TestFinishReasonsWithoutAWord(t *testing.T) {
	t.Parallel()
	for _, body := range []string{answerBody("", plainReasoning, plainCall), talkative} {
		for finish, want := range map[middleware.FinishReason]middleware.FinishReason{"new": "new", middleware.FinishStop: middleware.FinishToolCalls} {
			resp := decodeResponse(t, body)
			resp.FinishReason = finish
			out, err := format.EncodeResponse(resp)
			require.NoError(t, err)
			require.Equal(t, want, decodeResponse(t, string(out)).FinishReason)
		}
	}
}

// Of a member that appears twice the last one counts, and is the only one that is
// written.
func TestMembersThatAppearTwice(t *testing.T) {
	t.Parallel()
	for _, more := range []int64{0, 1} {
		resp := decodeResponse(t, `{"output":[],"usage":{"input_tokens":1},"usage":{"input_tokens":2}}`)
		resp.Usage.InputTokens += more
		out, err := format.EncodeResponse(resp)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(out), "usage"))
		require.Equal(t, 2+more, decodeResponse(t, string(out)).Usage.InputTokens)
	}
}

// What a rude middleware does in place is seen, too.
func TestEditsInPlaceAreSeen(t *testing.T) {
	t.Parallel()
	for _, body := range []string{answerBody("", plainCall), talkative} {
		resp := decodeResponse(t, body)
		resp.Message.ToolCalls[0].Arguments = `{"in":"place"}`
		out, err := format.EncodeResponse(resp)
		require.NoError(t, err)
		require.Equal(t, `{"in":"place"}`, decodeResponse(t, string(out)).Message.ToolCalls[0].Arguments)
	}
}

func TestDecodeAnswerFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"failed":           {`{"status":"failed","error":{"code":"server_error","message":"Oops"},"output":[]}`, 0, "server_error"},
		"failed by number": {`{"status":"failed","error":{"code":503,"message":"Oops"},"output":[]}`, 503, "503"},
		"an error alone":   {`{"error":{"type":"invalid_request_error","message":"Oops"}}`, 0, "invalid_request_error"},
		"in a stream":      {eventStream(`{"type":"response.created","response":{}}`, `{"type":"error","code":"rate_limit_exceeded","message":"Oops"}`), 0, "rate_limit_exceeded"},
		"nested in one":    {eventStream(`{"type":"error","error":{"code":"429","message":"Oops"}}`), 429, "429"},
		"without a type":   {"data: {\"error\":{\"code\":502,\"message\":\"Oops\"}}\n\n", 502, "502"},
		"a text":           {"event: error\ndata: Oops\n\n", 0, ""},
		"named":            {"event: error\ndata: {\"type\":\"server_error\",\"message\":\"Oops\"}\n\n", 0, "server_error"},
		"without a field":  {": comment\n\n{\"error\":{\"code\":502,\"message\":\"Oops\"}}\n\n", 502, "502"},
		"at the end of one": {eventStream(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Oops"},"usage":{"input_tokens":5}}}`),
			0, "server_error"},
	} {
		_, err := codec.Decode(format.NewStream(nil, nil), []byte(c.body))
		var e *middleware.ModelError
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, c.status, e.StatusCode, name)
		require.Equal(t, c.code, e.Code, name)
		require.ErrorContains(t, err, "Oops", name)
		if name == "at the end of one" {
			require.Equal(t, int64(5), middleware.ReportOf(nil, err).Usage().InputTokens, "what it cost is known")
		}
	}
	_, err := codec.Decode(format.NewStream(nil, nil), []byte(`{"status":"failed","error":null,"output":[]}`))
	require.ErrorContains(t, err, "an error without a message")
	for _, body := range []string{
		`[]`, `{}`, `{"output":{}}`, `<html>`,
		`{"choices":[]}`, `{"output":[{"type":"function_call","arguments":7}]}`,
	} {
		_, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
		require.ErrorIs(t, err, codec.ErrShape, body)
	}
	for _, body := range []string{``, `{"output":[`, "data: {}\n\n", talkative[:len(talkative)/2], strings.Split(talkative, "event: response.completed")[0]} {
		_, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
		require.True(t, errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, code, text string }{
		"OpenAI":  {`{"error":{"message":"No key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, "invalid_api_key", "No key"},
		"no code": {`{"error":{"message":"No key","type":"invalid_request_error","code":null}}`, "invalid_request_error", "No key"},
		"xAI":     {`{"code":"invalid-argument","error":"No key"}`, "invalid-argument", "No key"},
		"detail":  {`{"detail":"No key"}`, "", "No key"},
		"a page":  {`<html>secret</html>`, "", "HTML"},
		"other":   {`{"a":1}`, "", "another form"},
	} {
		e := format.DecodeError(400, nil, []byte(c.body))
		require.Equal(t, 400, e.StatusCode, name)
		require.Equal(t, c.code, e.Code, name)
		require.ErrorContains(t, e, c.text, name)
		require.NotContains(t, e.Error(), "secret", name)
	}
	e := format.DecodeError(400, nil, []byte(`{"error":{"message":"secret","code":"tool_use_failed","failed_generation":"f(1"}}`))
	require.ErrorIs(t, e, middleware.ErrInvalidToolCall)
	require.Equal(t, "f(1", e.Output)
	require.NotContains(t, e.Error(), "secret")
	e = format.DecodeError(400, nil, []byte(`{"error":{"message":"error parsing tool call: raw='{\"secret', err=unexpected end","type":"api_error"}}`))
	require.ErrorIs(t, e, middleware.ErrInvalidToolCall)
	require.Equal(t, `{"secret`, e.Output)
	require.NotContains(t, e.Error(), "secret", "Ollama quotes the arguments")
	require.JSONEq(t, `{"error":{"message":"m","type":"rate_limit_error","param":null,"code":null}}`, string(format.EncodeError(429, "", "m")))
	require.JSONEq(t, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"c"}}`, string(format.EncodeError(422, "c", "m")))
	require.JSONEq(t, `{"error":{"message":"m","type":"server_error","param":null,"code":"c"}}`, string(format.EncodeError(500, "c", "m")))
}
