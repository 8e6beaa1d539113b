package gemini_test

import (
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func decodeResponse(t testing.TB, body string) *middleware.Response {
	t.Helper()
	resp, err := codec.Decode(format.NewStream(decodeRequest(t, plainRequest), nil), []byte(body))
	require.NoError(t, err)
	return resp
}

func encodeResponse(t testing.TB, resp *middleware.Response) string {
	t.Helper()
	body, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	return string(body)
}

func TestAnswerView(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, callAnswer)
	require.Equal(t, "Let me look.", resp.Message.Text())
	require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
	require.Equal(t, "gemini-x", resp.Model)
	require.Equal(t, middleware.Usage{InputTokens: 13, Cached: 4, OutputTokens: 12, Reasoning: 7}, resp.Usage)
	require.Equal(t, "toolmend_1", resp.Message.ToolCalls[0].ID)
	require.Equal(t, `{"city": "Bergen"}`, resp.Message.ToolCalls[0].Arguments)
	require.NotNil(t, resp.Message.ToolCalls[0].Native)

	later, err := codec.Decode(format.NewStream(decodeRequest(t, fullRequest), nil), []byte(callAnswer))
	require.NoError(t, err)
	require.Equal(t, "toolmend_3", later.Message.ToolCalls[0].ID, "by its place in the conversation")
}

// Each chunk's part stays a part of its own, signed or not.
func TestStreamView(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, callStream)
	require.Equal(t, []middleware.Message{{Role: middleware.RoleAssistant,
		Parts: []middleware.Part{{Kind: middleware.PartReasoning, Text: "hm"}, {Text: "Let me "}, {Text: "look."}, {}},
		ToolCalls: []middleware.ToolCall{
			{ID: "toolmend_1", Name: "wind", Arguments: `{"city": "Bergen"}`},
			{ID: "toolmend_2", Name: "wind", Arguments: `{"city": "Oslo"}`}}}}, withoutNative([]middleware.Message{resp.Message}))
	require.Equal(t, middleware.Usage{InputTokens: 10, OutputTokens: 6}, resp.Usage, "the last figures count")
	array := decodeResponse(t, arrayStream)
	require.Equal(t, "Let me look.", array.Message.Text())
	require.Len(t, array.Message.ToolCalls, 1)
	require.Equal(t, middleware.FinishToolCalls, array.FinishReason, "a number for a word")
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]middleware.FinishReason{
		`"STOP"`: middleware.FinishStop, `1`: middleware.FinishStop, `"MAX_TOKENS"`: middleware.FinishLength, `2`: middleware.FinishLength,
		`"SAFETY"`: middleware.FinishFilter, `"RECITATION"`: middleware.FinishFilter, `"BLOCKLIST"`: middleware.FinishFilter, `4`: middleware.FinishFilter,
		`"PROHIBITED_CONTENT"`: middleware.FinishFilter, `"SPII"`: middleware.FinishFilter, `"OTHER"`: "OTHER", `"NEW_WORD"`: "NEW_WORD", `12`: "12",
	} {
		resp := decodeResponse(t, `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":`+word+`}]}`)
		require.Equal(t, want, resp.FinishReason, word)
	}
}

func TestBlockedPrompt(t *testing.T) {
	t.Parallel()
	const body = `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":8}}`
	resp := decodeResponse(t, body)
	require.Equal(t, middleware.FinishFilter, resp.FinishReason)
	require.Equal(t, middleware.RoleAssistant, resp.Message.Role)
	require.Equal(t, int64(8), resp.Usage.InputTokens)
	require.Equal(t, body, encodeResponse(t, resp))
	resp.Message.Parts = []middleware.Part{{Text: "x"}}
	_, err := format.EncodeResponse(resp)
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

func TestOtherCandidates(t *testing.T) {
	t.Parallel()
	const body = `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`
	resp := decodeResponse(t, body)
	require.Equal(t, "a", resp.Message.Text())
	require.Len(t, resp.Choices, 1)
	require.Equal(t, "b", resp.Choices[0].Text())
	resp.Message.Parts[0].Text = "c"
	requireSame(t, strings.Replace(body, `"a"`, `"c"`, 1), encodeResponse(t, resp))
	resp.Choices[0].Parts[0].Text = "d"
	requireSame(t, strings.NewReplacer(`"a"`, `"c"`, `"b"`, `"d"`).Replace(body), encodeResponse(t, resp))
	resp.Choices = nil
	_, err := format.EncodeResponse(resp)
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

// A call that the server refused is an error that asks for another try, with
// what the model wrote and what it cost; one that is there is a call.
func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	for _, word := range []string{`"MALFORMED_FUNCTION_CALL"`, `"UNEXPECTED_TOOL_CALL"`, `"TOO_MANY_TOOL_CALLS"`, `10`} {
		for _, body := range []string{
			`{"candidates":[{"content":{},"finishReason":` + word + `,"finishMessage":"Malformed function call: wind(city="}],"usageMetadata":{"promptTokenCount":8,"thoughtsTokenCount":3}}`,
			eventStream(`{"candidates":[{"content":{"parts":[{"text":""}]}}]}`, `{"candidates":[{"finishReason":`+word+`,"finishMessage":"Malformed function call: wind(city="}],"usageMetadata":{"promptTokenCount":8,"thoughtsTokenCount":3}}`),
		} {
			s := format.NewStream(nil, nil)
			_, err := s.Write([]byte(body))
			require.NoError(t, err)
			_, err = s.Close()
			require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
			var refused *middleware.ModelError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "Malformed function call: wind(city=", refused.Output)
			require.Contains(t, refused.Code, "_CALL")
			require.NotContains(t, err.Error(), "city")
			require.Equal(t, middleware.Usage{InputTokens: 8, OutputTokens: 3, Reasoning: 3}, middleware.ReportOf(nil, err).Usage())
		}
	}
	const body = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"sea","args":{}}}]},"finishReason":"UNEXPECTED_TOOL_CALL"}]}`
	resp := decodeResponse(t, body)
	require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
	requireSame(t, body, encodeResponse(t, resp))
	resp.Message.ToolCalls[0].Name = "wind"
	requireSame(t, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"wind","args":{}}}]},"finishReason":"STOP"}]}`, encodeResponse(t, resp))
}

func TestNotAnAnswer(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a page":          `<html>`,
		"another format":  `{"choices":[]}`,
		"text":            `"x"`,
		"a list":          `[[1]]`,
		"candidates":      `{"candidates":1}`,
		"content":         `{"candidates":[{"content":"x"}]}`,
		"parts":           `{"candidates":[{"content":{"parts":"x"}}]}`,
		"a part":          `{"candidates":[{"content":{"parts":["x"]}}]}`,
		"usage":           `{"usageMetadata":[]}`,
		"model":           `{"modelVersion":1}`,
		"a broken event":  "data: {\"candidates\":[}\n\ndata: {}\n\n",
		"between events":  `[{"candidates":[{"finishReason":"STOP"}]} x]`,
		"endless chunks":  strings.Repeat("data:{}\n\n", 1<<18+1),
		"endless answers": `{"candidates":[` + strings.Repeat(`{},`, 1000) + `{}]}`,
		"a number inside": `[{"candidates":[{"finishReason":"STOP"}]},]`,
	} {
		_, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
		require.ErrorIs(t, err, codec.ErrShape, name)
	}
}

func TestIncompleteAnswers(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":           ``,
		"half an object":    callAnswer[:200],
		"no finish reason":  `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`,
		"unspecified":       `{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}`,
		"half a stream":     callStream[:len(callStream)/2],
		"half an event":     callStream + `data: {"candi`,
		"an array's begin":  arrayStream[:len(arrayStream)-1],
		"half its elements": arrayStream[:120],
		"figures only":      `{"usageMetadata":{"promptTokenCount":3}}`,
	} {
		_, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
		require.ErrorIs(t, err, codec.ErrIncomplete, name)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, name)
	}
}

// Each edit changes what it has to and nothing else: see the files of
// testdata/TestAnswerEdits.
func TestAnswerEdits(t *testing.T) {
	t.Parallel()
	type resp = *middleware.Response
	tide := middleware.ToolCall{Name: "tide", Arguments: "{}"}
	length := func(r resp) { r.FinishReason = middleware.FinishLength }
	edits := map[string]func(resp){
		"arguments":     func(r resp) { r.Message.ToolCalls[0].Arguments = `{"city":"Ås"}` },
		"in a stream":   func(r resp) { r.Message.ToolCalls[1].Arguments = "{\n}" },
		"in an array":   func(r resp) { r.Message.ToolCalls[0].Arguments = "{\n}" },
		"a name":        func(r resp) { r.Message.ToolCalls[0].Name = "sea" },
		"another place": func(r resp) { r.Message.ToolCalls[0].ID = "toolmend_7" },
		"an id":         func(r resp) { r.Message.ToolCalls[1].ID = "x" },
		"text":          func(r resp) { r.Message.Parts[2].Text = "ask." },
		"reasoning":     func(r resp) { r.Message.Parts[0].Text = "" },
		"signed text":   func(r resp) { r.Message.Parts[3].Text = "!" },
		"a call less":   func(r resp) { r.Message.ToolCalls = r.Message.ToolCalls[:1] },
		"a call more": func(r resp) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{ID: "x", Name: "tide", Arguments: "{}"})
		},
		"another call": func(r resp) {
			r.Message.ToolCalls = []middleware.ToolCall{{ID: "toolmend_1", Name: "tide", Arguments: "{}"}}
		},
		"no call before":    func(r resp) { r.Message.ToolCalls = []middleware.ToolCall{tide} },
		"no parts before":   func(r resp) { r.Message.Parts = []middleware.Part{{Text: "a"}} },
		"the end":           length,
		"the end, filter":   func(r resp) { r.FinishReason = middleware.FinishFilter },
		"the end, a number": length,
		"the same end":      func(r resp) { r.FinishReason = middleware.FinishStop },
		"the model":         func(r resp) { r.Model = "m" },
		"input":             func(r resp) { r.Usage.InputTokens += 100 },
		"output":            func(r resp) { r.Usage.OutputTokens++ },
		"reasoning figure":  func(r resp) { r.Usage.OutputTokens += 2; r.Usage.Reasoning += 2 },
		"no figures":        func(r resp) { r.Usage.InputTokens = 5 },
	}
	casefile.OneForEach(t, maps.Keys(edits))
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, casefile.Body(t, "before"))
			edit(resp)
			casefile.Expect(t, "after", encodeResponse(t, resp))
		})
	}
}

func TestAnswerRefuses(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*middleware.Response){
		"no object":         func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = "[]" },
		"no Native":         func(r *middleware.Response) { r.Native = nil },
		"of another format": func(r *middleware.Response) { r.Native = &middleware.Native{Dialect: "openai-chat", Raw: r.Native.Raw} },
		"another role":      func(r *middleware.Response) { r.Message.Role = middleware.RoleUser },
		"a custom call":     func(r *middleware.Response) { r.Message.ToolCalls[0].Kind = middleware.KindCustom },
		"cache writes":      func(r *middleware.Response) { r.Usage.CacheWrite = 1 },
		"more reasoning":    func(r *middleware.Response) { r.Usage.Reasoning = r.Usage.OutputTokens + 1 },
		"an opaque part":    func(r *middleware.Response) { r.Message.Parts[0] = middleware.Part{Kind: middleware.PartOpaque} },
		"a call as a part":  func(r *middleware.Response) { r.Message.Parts[0].Native = r.Message.ToolCalls[0].Native },
		"a part as a call":  func(r *middleware.Response) { r.Message.ToolCalls[0].Native = r.Message.Parts[0].Native },
		"rubbish in a Native": func(r *middleware.Response) {
			r.Message.Parts[0].Native = &middleware.Native{Dialect: "gemini-generate", Raw: "x"}
		},
		"rubbish for a Native": func(r *middleware.Response) { r.Native = &middleware.Native{Dialect: "gemini-generate", Raw: "x"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, callAnswer)
			edit(resp)
			_, err := format.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

// A member that appears twice on the way to a call is read by its last value, and
// written once.
func TestAnswerTwice(t *testing.T) {
	t.Parallel()
	const once = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}}]},"finishReason":"STOP","index":0}]}`
	for _, body := range []string{
		`{"candidates":[],"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{}}}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{},"content":{"parts":[{"functionCall":{"name":"a","args":{}}}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","name":"a","args":{},"args":{}}}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{}},"FunctionCall":{"name":"b"}}]},"finishReason":"STOP"}]}`,
	} {
		require.Equal(t, once, encodeResponse(t, decodeResponse(t, body)), body)
	}
	resp := decodeResponse(t, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{"b":1,"b":2}}}]},"finishReason":"STOP"}]}`)
	resp.Message.ToolCalls[0].Arguments = `{"b":2}`
	require.Contains(t, encodeResponse(t, resp), `"args":{"b":2}}`, "in the arguments it is for mending")
}

// A call of another answer keeps its text, with its signature.
func TestCallOfAnotherAnswer(t *testing.T) {
	t.Parallel()
	resp, other := decodeResponse(t, laterStream), decodeResponse(t, callAnswer)
	other.Message.ToolCalls[0].Arguments = `{"city":"Ås"}`
	resp.Message.ToolCalls = other.Message.ToolCalls
	body := encodeResponse(t, resp)
	require.Contains(t, body, `"thoughtSignature":"c2ln"`)
	require.Contains(t, body, `{"city":"Ås"}`)
	require.NotContains(t, body, "Tromsø")
}

// A call whose arguments come in pieces is one call.
func TestArgumentsInPieces(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, partialStream)
	require.Len(t, resp.Message.ToolCalls, 1)
	require.Empty(t, resp.Message.Parts)
	require.Equal(t, "wind", resp.Message.ToolCalls[0].Name)
	require.Equal(t, `{"place":{"city":"Bergen"},"days":[3],"a b":true}`, resp.Message.ToolCalls[0].Arguments)
	requireSame(t, partialStream, encodeResponse(t, resp))
	require.NotContains(t, encodeResponse(t, resp), "partialArgs", "the client gets it whole")
	resp.Message.ToolCalls[0].Arguments = `{"n":1}`
	body := encodeResponse(t, resp)
	require.NotContains(t, body, "partialArgs")
	again := decodeResponse(t, body)
	require.Equal(t, resp.Message.ToolCalls[0].Arguments, again.Message.ToolCalls[0].Arguments)
	require.Contains(t, again.Message.ToolCalls[0].Native.Raw, "c2ln")
	resp.Message.ToolCalls = nil
	require.NotContains(t, encodeResponse(t, resp), "functionCall")

	head := `{"functionCall":{"name":"a","willContinue":true}}`
	piece := func(args string) string { return `{"functionCall":{"partialArgs":[` + args + `]}}` }
	for name, parts := range map[string][]string{
		"no end":           {head},
		"text between":     {head, `{"text":"x"}`, piece(``)},
		"a call between":   {head, `{"functionCall":{"name":"b"}}`},
		"whole arguments":  {head, `{"functionCall":{"args":{"a":1}}}`},
		"no root":          {head, piece(`{"jsonPath":"a","boolValue":true}`)},
		"the root":         {head, piece(`{"jsonPath":"$","boolValue":true}`)},
		"a wildcard":       {head, piece(`{"jsonPath":"$[*]","boolValue":true}`)},
		"a hole":           {head, piece(`{"jsonPath":"$.a[1]","boolValue":true}`)},
		"an escape":        {head, piece(`{"jsonPath":"$['\\u0061']","boolValue":true}`)},
		"an open quote":    {head, piece(`{"jsonPath":"$['a","boolValue":true}`)},
		"an empty name":    {head, piece(`{"jsonPath":"$..a","boolValue":true}`)},
		"two values":       {head, piece(`{"jsonPath":"$.a","boolValue":true},{"jsonPath":"$.a","boolValue":true}`)},
		"two texts":        {head, piece(`{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a","stringValue":"y"}`)},
		"below a value":    {head, piece(`{"jsonPath":"$.a","boolValue":true},{"jsonPath":"$.a.b","boolValue":true}`)},
		"a list with keys": {head, piece(`{"jsonPath":"$.a[0]","boolValue":true},{"jsonPath":"$.a.b","boolValue":true}`)},
		"no value":         {head, piece(`{"jsonPath":"$.a"}`)},
		"too deep":         {head, piece(`{"jsonPath":"$` + strings.Repeat(".a", 65) + `","boolValue":true}`)},
	} {
		_, err := codec.Decode(format.NewStream(nil, nil), []byte(`{"candidates":[{"content":{"parts":[`+strings.Join(parts, ",")+`]},"finishReason":"STOP"}]}`))
		require.ErrorIs(t, err, codec.ErrShape, name)
	}
}

// A call that was moved is not written between the pieces of the call before it.
func TestCallBehindOneInPieces(t *testing.T) {
	t.Parallel()
	whole := `{"functionCall":{"name":"calm","args":{"n":1}}}`
	resp := decodeResponse(t, strings.Replace(partialStream, `"parts": [`, `"parts": [`+whole+`,`, 1))
	calls := resp.Message.ToolCalls
	require.Len(t, calls, 2)
	require.Equal(t, "calm", calls[0].Name)
	calls[0], calls[1] = calls[1], calls[0]
	again := decodeResponse(t, encodeResponse(t, resp)).Message.ToolCalls
	require.Len(t, again, 2)
	for i, c := range again {
		require.Equal(t, calls[i].Name, c.Name)
		require.Equal(t, calls[i].Arguments, c.Arguments)
	}
}

func TestStoredAnswer(t *testing.T) {
	t.Parallel()
	for _, body := range []string{callAnswer, callStream, arrayStream} {
		stored := throughJSON(t, decodeResponse(t, body))
		requireSame(t, body, encodeResponse(t, stored))
		stored.Message.ToolCalls[0].Arguments = `{"city":"Ås"}`
		requireSame(t, strings.Replace(body, `{"city": "Bergen"}`, `{"city":"Ås"}`, 1), encodeResponse(t, stored))
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	const slow = `{"error":{"code":429,"message":"Quota\nexceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.Help"},` +
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"13.5s"}]}}`
	for _, body := range []string{slow, "[" + slow + "]"} {
		e := format.DecodeError(429, nil, []byte(body))
		require.Equal(t, 429, e.StatusCode)
		require.Equal(t, "RESOURCE_EXHAUSTED", e.Code)
		require.Equal(t, 13500*time.Millisecond, e.RetryAfter)
		require.Contains(t, e.Error(), "Quota exceeded")
	}
	for name, body := range map[string]string{"a page": "<html>", "nothing": "", "another form": `{"error":"x"}`, "an empty one": `{"error":{}}`, "a list": `[]`} {
		require.Contains(t, format.DecodeError(502, nil, []byte(body)).Error(), "not an error of this format", name)
	}
	for name, body := range map[string]string{
		"an object":             slow,
		"an array":              "[" + slow + "]",
		"an event":              eventStream(`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, slow),
		"no event, in a stream": eventStream(`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`) + strings.ReplaceAll(slow, ",", ",\n"),
	} {
		s := format.NewStream(nil, nil)
		_, err := s.Write([]byte(body))
		require.NoError(t, err, name)
		require.LessOrEqual(t, s.Safe(), strings.Index(body, `{"error"`), name)
		_, err = s.Close()
		var failed *middleware.ModelError
		require.ErrorAs(t, err, &failed, name)
		require.Equal(t, 429, failed.StatusCode, name)
		require.Equal(t, 13500*time.Millisecond, failed.RetryAfter, name)
	}
	require.JSONEq(t, `{"error":{"code":400,"message":"no \"x\"","status":"INVALID_ARGUMENT","details":[
		{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"invalid_tool_call","domain":"toolmend"}]}}`, string(format.EncodeError(400, "invalid_tool_call", `no "x"`)))
	require.Contains(t, string(format.EncodeError(503, "", "m")), `"UNAVAILABLE"`)
	e := format.DecodeError(503, nil, []byte(`{"error":{"code":999,"details":[{"@type":"x/google.rpc.RetryInfo","retryDelay":"NaNs"}]}}`))
	require.Equal(t, "999", e.Code)
	require.Zero(t, e.RetryAfter)
	e = format.DecodeError(503, nil, []byte(strings.Replace(slow, "13.5s", "315360000s", 1)))
	require.Equal(t, 315360000*time.Second, e.RetryAfter)
}

// requireSame requires that a client reads the same answer from both bodies.
func requireSame(t require.TestingT, want, got string) {
	w, err := codec.Decode(format.NewStream(nil, nil), []byte(want))
	require.NoError(t, err)
	g, err := codec.Decode(format.NewStream(nil, nil), []byte(got))
	require.NoError(t, err, "%s", got)
	require.Equal(t, withoutNative([]middleware.Message{w.Message}), withoutNative([]middleware.Message{g.Message}))
	require.Equal(t, withoutNative(w.Choices), withoutNative(g.Choices))
	require.Equal(t, w.Usage, g.Usage)
	require.Equal(t, w.FinishReason, g.FinishReason)
	require.Equal(t, w.Model, g.Model)
}

// A call in the place of a text, such as the model's name, is not written.
func TestCallInPlaceOfAText(t *testing.T) {
	t.Parallel()
	const call, hidden = `{"functionCall":{"name":"ping","args":{}}}`, `[{"functionCall":{"name":"steal","args":{}}}]`
	resp, err := codec.Decode(format.NewStream(nil, nil), []byte(`{"candidates":[{"content":{"role":`+hidden+`,"parts":[`+call+`]},"finishReason":`+hidden+`,"finishMessage":`+hidden+`}],`+
		`"modelVersion":`+hidden+`,"responseId":`+hidden+`,"createTime":`+hidden+`}`))
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, 1)
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	require.NotContains(t, string(out), "steal")
	again, err := codec.Decode(format.NewStream(nil, nil), out)
	require.NoError(t, err)
	require.Len(t, again.Message.ToolCalls, 1)
}
