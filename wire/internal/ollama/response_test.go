package ollama_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const (
	unary = `{"model":"m","created_at":"t1","message":{"role":"assistant","content":"Well.","thinking":"Hm.","tool_calls":[` + call0 + `,` + call1 + `]},` +
		`"done":true,"done_reason":"stop","total_duration":9,"prompt_eval_count":10,"eval_count":4}`
	call0  = `{"id":"c0","function":{"index":0,"name":"f","arguments":{"a": 1.0}}}`
	call1  = `{"id":"c1","function":{"index":1,"name":"g","arguments":{}}}`
	stream = `{"model":"m","created_at":"t1","message":{"role":"assistant","content":"","thinking":"H"},"done":false}
{"model":"m","created_at":"t2","message":{"role":"assistant","content":"","thinking":"m."},"done":false}
{"model":"m","created_at":"t3","message":{"role":"assistant","content":"We"},"done":false}
{"model":"m","created_at":"t4","message":{"role":"assistant","content":"ll."},"done":false}
{"model":"m","created_at":"t5","message":{"role":"assistant","content":"","tool_calls":[` + call0 + `]},"done":false}
{"model":"m","created_at":"t6","message":{"role":"assistant","content":"","tool_calls":[` + call1 + `]},"done":false}
{"model":"m","created_at":"t7","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":10,"eval_count":4}
`
	pretty = "{\n  \"model\": \"m\",\n  \"message\": {\n    \"role\": \"assistant\",\n    \"content\": \"Well.\",\n    \"thinking\": \"Hm.\",\n" +
		"    \"tool_calls\": [\n      " + call0 + ",\n      " + call1 + "\n    ]\n  },\n  \"done\": true,\n  \"done_reason\": \"stop\",\n" +
		"  \"prompt_eval_count\": 10,\n  \"eval_count\": 4\n}\n"
)

// forms are one answer in all its forms.
var forms = map[string]string{"unary": unary, "stream": stream, "pretty": pretty}

func decodeResponse(t require.TestingT, body string) *middleware.Response {
	resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
	require.NoError(t, err, body)
	return resp
}

func encodeResponse(t require.TestingT, resp *middleware.Response) string {
	body, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	return string(body)
}

func TestDecodeResponse(t *testing.T) {
	t.Parallel()
	for name, body := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, body)
			require.Equal(t, "m", resp.Model)
			require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
			require.Equal(t, middleware.Usage{InputTokens: 10, OutputTokens: 4}, resp.Usage)
			m := resp.Message
			require.Equal(t, middleware.RoleAssistant, m.Role)
			require.Len(t, m.Parts, 2)
			require.Equal(t, "Hm.", m.Parts[0].Text)
			require.Equal(t, middleware.PartReasoning, m.Parts[0].Kind)
			require.Equal(t, "Well.", m.Text())
			require.Len(t, m.ToolCalls, 2)
			require.Equal(t, "c0", m.ToolCalls[0].ID)
			require.Equal(t, `{"a": 1.0}`, m.ToolCalls[0].Arguments)
			require.Equal(t, call1, m.ToolCalls[1].Native.Raw)
			require.JSONEq(t, `{"role":"assistant","content":"Well.","thinking":"Hm.","tool_calls":[`+call0+`,`+call1+`]}`, m.Native.Raw)
			require.Equal(t, body, resp.Native.Raw)
			requireSame(t, body, encodeResponse(t, resp))
			requireSame(t, body, encodeResponse(t, throughJSON(t, resp)))
		})
	}
}

func TestDecodeResponseFinish(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, message, end string
		want               middleware.FinishReason
	}{
		{"stop", `{"role":"assistant","content":"x"}`, `,"done_reason":"stop"`, middleware.FinishStop},
		{"calls, and no word", `{"role":"assistant","content":"","tool_calls":[` + call0 + `]}`, ``, middleware.FinishToolCalls},
		{"cut off", `{"role":"assistant","content":"","tool_calls":[` + call0 + `]}`, `,"done_reason":"length"`, middleware.FinishLength},
		{"another word", `{"role":"assistant","content":""}`, `,"done_reason":"load"`, "load"},
		{"no word", `{"content":"x"}`, ``, ""},
		{"no message", `null`, `,"done_reason":null`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := `{"message":` + c.message + `,"done":true` + c.end + `}`
			resp := decodeResponse(t, body)
			require.Equal(t, c.want, resp.FinishReason)
			require.Equal(t, middleware.RoleAssistant, resp.Message.Role)
			require.Equal(t, body, encodeResponse(t, resp))
		})
	}
}

// Members of a streamed message that this package does not know are in the history too, each
// with its last value.
func TestDecodeResponseKeepsWhatIsNew(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, `{"message":{"role":"assistant","content":"a","sig":1,"images":["`+pixel64+`"]}}
{"message":{"content":"b","sig":2,"more":[ ]},"done":true}`)
	require.Equal(t, `{"role":"assistant","content":"ab","images":["`+pixel64+`"],"sig":2,"more":[]}`, resp.Message.Native.Raw)
	require.Equal(t, middleware.PartMedia, resp.Message.Parts[1].Kind)
}

func TestDecodeResponsePlaces(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]},{"role":"tool"}]}`)
	const body = `{"message":{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}},` + call0 + `]},"done":true}`
	resp, err := codec.Decode(format.NewStream(req, nil), []byte(body))
	require.NoError(t, err)
	require.Equal(t, codec.PlaceID(2), resp.Message.ToolCalls[0].ID)
	require.Equal(t, "c0", resp.Message.ToolCalls[1].ID)
	resp.Message.ToolCalls[0].ID = codec.PlaceID(7)
	require.NotContains(t, encodeResponse(t, resp), "toolmend_", "never written")
}

func TestDecodeResponseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       error
	}{
		{"nothing", ``, codec.ErrIncomplete},
		{"no end", `{"message":{"role":"assistant","content":"x"},"done":false}` + "\n", codec.ErrIncomplete},
		{"a line cut off", `{"message":{"role":"assistant","content":"x"},"done":false}` + "\n" + `{"message":{"ro`, codec.ErrIncomplete},
		{"one line cut off", unary[:40], codec.ErrIncomplete},
		{"a text cut off", pretty[:40], codec.ErrIncomplete},
		{"a page", `<html>`, codec.ErrShape},
		{"a list", `[{}]`, codec.ErrShape},
		{"a string over lines", "\n\"a\"", codec.ErrShape},
		{"not JSON", "{\n]", codec.ErrShape},
		{"another object", `{"choices":[]}`, codec.ErrShape},
		{"two on a line", `{"done":true}{"done":true}`, codec.ErrShape},
		{"message", `{"message":"x","done":true}`, codec.ErrShape},
		{"calls", `{"message":{"tool_calls":{"0":1}},"done":true}`, codec.ErrShape},
		{"calls as text", `{"message":{"tool_calls":"[{}]"},"done":true}`, codec.ErrShape},
		{"a call", `{"message":{"tool_calls":[[]]},"done":true}`, codec.ErrShape},
		{"a call without a function", `{"message":{"tool_calls":[{}]},"done":true}`, codec.ErrShape},
		{"a name", `{"message":{"tool_calls":[{"function":{"name":1}}]},"done":true}`, codec.ErrShape},
		{"a call behind the end", `{"done":true}` + "\n" + `{"message":{"tool_calls":[` + call0 + `]}}` + "\n", codec.ErrShape},
		{"an object over two lines", `{"done":false}` + "\n" + `{"message":{"content":"x"}` + "\n" + `,"done":true}` + "\n", codec.ErrShape},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			resp, err := codec.Decode(format.NewStream(nil, nil), []byte(c.body))
			require.ErrorIs(t, err, c.want)
			require.Nil(t, resp)
		})
	}
}

// What is not a JSON object is kept and not read.
func TestDecodeResponseIgnores(t *testing.T) {
	t.Parallel()
	const body = "{\"done\":false}\n\n[1]\nkeep-alive\n{\"note\":1}\r\n{\"message\":{\"content\":\"x\"},\"done\":true}\n{\"mess"
	resp := decodeResponse(t, body)
	require.Equal(t, "x", resp.Message.Text())
	requireSame(t, body, encodeResponse(t, resp))
	resp.Message.Parts[0].Text = "y"
	requireSame(t, replace(body, `"x"`, `"y"`), encodeResponse(t, resp))
}

// Each edit changes what it has to and nothing else, in an answer that is one
// object and in a stream: see the files of testdata/TestEncodeResponseEdits.
func TestEncodeResponseEdits(t *testing.T) {
	t.Parallel()
	type resp = *middleware.Response
	moved := decodeResponse(t, `{"message":{"role":"assistant","tool_calls":[{"id":"m0","function":{"index":5,"name":"f","arguments":{}}}]},"done":true}`).Message.ToolCalls[0]
	edits := map[string]func(resp){}
	for name, edit := range map[string]func(resp){
		"arguments":   func(r resp) { r.Message.ToolCalls[0].Arguments = `{"b":2.50}` },
		"name and id": func(r resp) { r.Message.ToolCalls[1].Name, r.Message.ToolCalls[1].ID = "h", "d" },
		"no id":       func(r resp) { r.Message.ToolCalls[1].ID = "" },
		"text":        func(r resp) { r.Message.Parts[1].Text = "So\n" },
		"no text":     func(r resp) { r.Message.Parts = r.Message.Parts[:1] },
		"reasoning":   func(r resp) { r.Message.Parts[0].Text = "Aha." },
		"a call less": func(r resp) { r.Message.ToolCalls = r.Message.ToolCalls[:1] },
		"the first call less, and indices follow": func(r resp) { r.Message.ToolCalls = r.Message.ToolCalls[1:] },
		"no calls": func(r resp) { r.Message.ToolCalls = nil },
		"a call more": func(r resp) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{ID: "n", Name: "h", Arguments: `{"x":1}`})
		},
		"a call of another answer": func(r resp) { r.Message.ToolCalls[0] = moved },
		"the finish reason":        func(r resp) { r.FinishReason = middleware.FinishLength },
		"usage":                    func(r resp) { r.Usage = middleware.Usage{InputTokens: 30, OutputTokens: 5, Cached: 1} },
	} {
		edits[name+", unary"], edits[name+", stream"] = edit, edit
	}
	edits["the model, unary"] = func(r resp) { r.Model = "n" }
	casefile.OneForEach(t, maps.Keys(edits))
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, casefile.Body(t, "before"))
			edit(resp)
			casefile.Expect(t, "after", encodeResponse(t, resp))
			casefile.Expect(t, "after", encodeResponse(t, throughJSON(t, resp)))
		})
	}
}

// What was edited is read as it was meant, in every form.
func TestEncodeResponseIsRead(t *testing.T) {
	t.Parallel()
	fresh := middleware.ToolCall{Name: "h", Arguments: "{\n\"x\": 1}"}
	for name, body := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, body)
			resp.Model = "n"
			resp.Message.Parts[1].Text = "Other"
			resp.Message.ToolCalls = []middleware.ToolCall{fresh, resp.Message.ToolCalls[0]}
			resp.Usage.OutputTokens = 7
			got := decodeResponse(t, encodeResponse(t, resp))
			require.Equal(t, "n", got.Model)
			require.Equal(t, "Other", got.Message.Text())
			require.Equal(t, int64(7), got.Usage.OutputTokens)
			require.Len(t, got.Message.ToolCalls, 2)
			require.Equal(t, codec.PlaceID(1), got.Message.ToolCalls[0].ID)
			require.JSONEq(t, fresh.Arguments, got.Message.ToolCalls[0].Arguments)
			require.Equal(t, "c0", got.Message.ToolCalls[1].ID)
		})
	}
}

// Calls that come to an answer without any, and text to one that had none.
func TestEncodeResponseAdds(t *testing.T) {
	t.Parallel()
	cases := []string{"unary", "an empty list", "a stream"}
	casefile.OneForEach(t, slices.Values(cases))
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, casefile.Body(t, "before"))
			resp.Message.Parts = []middleware.Part{{Text: "Hi"}}
			resp.Message.ToolCalls = []middleware.ToolCall{{Name: "h", Arguments: `{}`}}
			body := encodeResponse(t, resp)
			casefile.Expect(t, "after", body)
			require.Equal(t, middleware.FinishToolCalls, decodeResponse(t, replace(body, `"done":true`, `"done":true,"done_reason":"stop"`)).FinishReason)
		})
	}
}

// A line that is put in speaks of the model as the others then do.
func TestEncodeResponseAddsALineOfTheModel(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, casefile.Body(t, "before"))
	resp.Model = "n"
	resp.Message.ToolCalls = []middleware.ToolCall{{Name: "h", Arguments: `{}`}}
	casefile.Expect(t, "after", encodeResponse(t, resp))
}

// Usage is written to an answer with figures, with the missing ones, and to no other.
func TestEncodeResponseUsage(t *testing.T) {
	t.Parallel()
	const said = `{"message":{"role":"assistant","content":""},`
	for body, want := range map[string]string{
		said + `"done":true}`:                       said + `"done":true}`,
		said + `"done":true,"eval_count":4}`:        said + `"done":true,"eval_count":5,"prompt_eval_count":9}`,
		said + `"done":true,"prompt_eval_count":0}`: said + `"done":true,"prompt_eval_count":9,"eval_count":5}`,
	} {
		resp := decodeResponse(t, body)
		resp.Usage = middleware.Usage{InputTokens: 9, OutputTokens: 5}
		require.Equal(t, want, encodeResponse(t, resp))
	}
}

func TestEncodeResponseRefuses(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(r *middleware.Response){
		"no native":      func(r *middleware.Response) { r.Native = nil },
		"another format": func(r *middleware.Response) { r.Native = &middleware.Native{Dialect: "gemini-generate", Raw: unary} },
		"a broken one":   func(r *middleware.Response) { r.Native = &middleware.Native{Dialect: "ollama-chat", Raw: "{"} },
		"more answers":   func(r *middleware.Response) { r.Choices = []middleware.Message{{}} },
		"a role":         func(r *middleware.Response) { r.Message.Role = middleware.RoleUser },
		"a failure":      func(r *middleware.Response) { r.Message.IsError = true },
		"rubbish":        func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = `{"a":` },
		"a custom call":  func(r *middleware.Response) { r.Message.ToolCalls[0].Kind = middleware.KindCustom },
		"an image's address": func(r *middleware.Response) {
			r.Message.Parts = append(r.Message.Parts, middleware.Part{Kind: middleware.PartMedia, URL: "https://x/y.png"})
		},
		"an opaque part": func(r *middleware.Response) {
			r.Message.Parts = append(r.Message.Parts, middleware.Part{Kind: middleware.PartOpaque})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, unary)
			edit(resp)
			_, err := format.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}
