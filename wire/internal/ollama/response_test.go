package ollama_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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

func answer(t require.TestingT, body string) *middleware.Response {
	resp, err := format.DecodeResponse(nil, []byte(body))
	require.NoError(t, err, body)
	return resp
}

func written(t require.TestingT, resp *middleware.Response) string {
	body, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	return string(body)
}

func TestDecodeResponse(t *testing.T) {
	t.Parallel()
	for name, body := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := answer(t, body)
			require.Equal(t, "m", resp.Model)
			require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
			require.Equal(t, middleware.Usage{Input: 10, Output: 4}, resp.Usage)
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
			require.Equal(t, body, written(t, resp))
			require.Equal(t, body, written(t, stored(t, resp)))
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
		{"calls, and no word", `{"role":"assistant","tool_calls":[` + call0 + `]}`, ``, middleware.FinishToolCalls},
		{"cut off", `{"role":"assistant","tool_calls":[` + call0 + `]}`, `,"done_reason":"length"`, middleware.FinishLength},
		{"another word", `{"role":"assistant","content":""}`, `,"done_reason":"load"`, "load"},
		{"no word", `{"content":"x"}`, ``, ""},
		{"no message", `null`, `,"done_reason":null`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := `{"message":` + c.message + `,"done":true` + c.end + `}`
			resp := answer(t, body)
			require.Equal(t, c.want, resp.FinishReason)
			require.Equal(t, middleware.RoleAssistant, resp.Message.Role)
			require.Equal(t, body, written(t, resp))
		})
	}
}

// Members of a streamed message that this package does not know stand in the
// history too, each with its last value.
func TestDecodeResponseKeepsWhatIsNew(t *testing.T) {
	t.Parallel()
	resp := answer(t, `{"message":{"role":"assistant","content":"a","sig":1,"images":["`+pixel64+`"]}}
{"message":{"content":"b","sig":2,"more":[ ]},"done":true}`)
	require.Equal(t, `{"role":"assistant","content":"ab","images":["`+pixel64+`"],"sig":2,"more":[ ]}`, resp.Message.Native.Raw)
	require.Equal(t, middleware.PartMedia, resp.Message.Parts[1].Kind)
}

func TestDecodeResponsePlaces(t *testing.T) {
	t.Parallel()
	req := decode(t, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]},{"role":"tool"}]}`)
	const body = `{"message":{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}},` + call0 + `]},"done":true}`
	resp, err := format.DecodeResponse(req, []byte(body))
	require.NoError(t, err)
	require.Equal(t, codec.PlaceID(2), resp.Message.ToolCalls[0].ID)
	require.Equal(t, "c0", resp.Message.ToolCalls[1].ID)
	resp.Message.ToolCalls[0].ID = codec.PlaceID(7)
	require.Equal(t, body, written(t, resp), "never written")
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
			resp, err := format.DecodeResponse(nil, []byte(c.body))
			require.ErrorIs(t, err, c.want)
			require.Nil(t, resp)
		})
	}
}

// What is no JSON object is kept and not read.
func TestDecodeResponseIgnores(t *testing.T) {
	t.Parallel()
	const body = "{\"done\":false}\n\n[1]\nkeep-alive\n{\"note\":1}\r\n{\"message\":{\"content\":\"x\"},\"done\":true}\n{\"mess"
	resp := answer(t, body)
	require.Equal(t, "x", resp.Message.Text())
	require.Equal(t, body, written(t, resp))
	resp.Message.Parts[0].Text = "y"
	require.Equal(t, replace(body, `"x"`, `"y"`), written(t, resp))
}

func TestEncodeResponseEdits(t *testing.T) {
	t.Parallel()
	const (
		t3, t4 = `"content":"We"`, `"content":"ll."`
		freshA = `{"id":"n","function":{"name":"h","arguments":{"x":1}}}`
	)
	fresh := middleware.ToolCall{ID: "n", Name: "h", Arguments: `{"x":1}`}
	moved := answer(t, `{"message":{"role":"assistant","tool_calls":[{"id":"m0","function":{"index":5,"name":"f","arguments":{}}}]},"done":true}`).Message.ToolCalls[0]
	const movedTo = `{"id":"m0","function":{"index":0,"name":"f","arguments":{}}}`
	for _, c := range []struct {
		name   string
		edit   func(r *middleware.Response)
		unary  []string // old, new, old, new, …
		stream []string
	}{
		{"arguments", func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = `{"b":2.50}` },
			[]string{`{"a": 1.0}`, `{"b":2.50}`}, []string{`{"a": 1.0}`, `{"b":2.50}`}},
		{"name and id", func(r *middleware.Response) { r.Message.ToolCalls[1].Name, r.Message.ToolCalls[1].ID = "h", "d" },
			[]string{`"g"`, `"h"`, `"c1"`, `"d"`}, []string{`"g"`, `"h"`, `"c1"`, `"d"`}},
		{"no id", func(r *middleware.Response) { r.Message.ToolCalls[1].ID = "" },
			[]string{`"id":"c1",`, ``}, []string{`"id":"c1",`, ``}},
		{"text", func(r *middleware.Response) { r.Message.Parts[1].Text = "So\n" },
			[]string{`"Well."`, `"So\n"`}, []string{t3, `"content":"So\n"`, t4, `"content":""`}},
		{"no text", func(r *middleware.Response) { r.Message.Parts = r.Message.Parts[:1] },
			[]string{`"Well."`, `""`}, []string{t3, `"content":""`, t4, `"content":""`}},
		{"reasoning", func(r *middleware.Response) { r.Message.Parts[0].Text = "Aha." },
			[]string{`"Hm."`, `"Aha."`}, []string{`"H"`, `"Aha."`, `"m."`, `""`}},
		{"a call less", func(r *middleware.Response) { r.Message.ToolCalls = r.Message.ToolCalls[:1] },
			[]string{`,` + call1, ``}, []string{`,"tool_calls":[` + call1 + `]`, ``}},
		{"the first call less, and indices follow", func(r *middleware.Response) { r.Message.ToolCalls = r.Message.ToolCalls[1:] },
			[]string{call0 + `,` + call1, replace(call1, `"index":1`, `"index":0`)},
			[]string{call0, replace(call1, `"index":1`, `"index":0`), `,"tool_calls":[` + call1 + `]`, ``}},
		{"no calls", func(r *middleware.Response) { r.Message.ToolCalls = nil },
			[]string{`,"tool_calls":[` + call0 + `,` + call1 + `]`, ``}, []string{`,"tool_calls":[` + call0 + `]`, ``, `,"tool_calls":[` + call1 + `]`, ``}},
		{"a call more", func(r *middleware.Response) { r.Message.ToolCalls = append(r.Message.ToolCalls, fresh) },
			[]string{call1, call1 + `,` + freshA}, []string{call0, call0 + `,` + call1 + `,` + freshA, `,"tool_calls":[` + call1 + `]`, ``}},
		{"a call of another answer", func(r *middleware.Response) { r.Message.ToolCalls[0] = moved },
			[]string{call0, movedTo}, []string{call0, movedTo + `,` + call1, `,"tool_calls":[` + call1 + `]`, ``}},
		{"the finish reason", func(r *middleware.Response) { r.FinishReason = middleware.FinishLength },
			[]string{`"stop"`, `"length"`}, []string{`"stop"`, `"length"`}},
		{"usage", func(r *middleware.Response) { r.Usage = middleware.Usage{Input: 30, Output: 5, Cached: 1} },
			[]string{`"prompt_eval_count":10,"eval_count":4`, `"prompt_eval_count":30,"eval_count":5`},
			[]string{`"prompt_eval_count":10,"eval_count":4`, `"prompt_eval_count":30,"eval_count":5`}},
		{"the model", func(r *middleware.Response) { r.Model = "n" }, []string{`"model":"m"`, `"model":"n"`}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for name, edits := range map[string][]string{"unary": c.unary, "stream": c.stream} {
				if edits == nil {
					continue
				}
				want := forms[name]
				for i := 0; i < len(edits); i += 2 {
					require.Contains(t, want, edits[i])
					want = replace(want, edits[i], edits[i+1])
				}
				resp := answer(t, forms[name])
				c.edit(resp)
				require.Equal(t, want, written(t, resp), name)
				require.Equal(t, want, written(t, stored(t, resp)), name)
			}
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
			resp := answer(t, body)
			resp.Model = "n"
			resp.Message.Parts[1].Text = "Other"
			resp.Message.ToolCalls = []middleware.ToolCall{fresh, resp.Message.ToolCalls[0]}
			resp.Usage.Output = 7
			got := answer(t, written(t, resp))
			require.Equal(t, "n", got.Model)
			require.Equal(t, "Other", got.Message.Text())
			require.Equal(t, int64(7), got.Usage.Output)
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
	fresh := middleware.ToolCall{Name: "h", Arguments: `{}`}
	const raw = `{"function":{"name":"h","arguments":{}}}`
	for _, c := range []struct{ name, body, want string }{
		{"unary", `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}`,
			`{"message":{"role":"assistant","content":"Hi","tool_calls":[` + raw + `]},"done":true,"done_reason":"stop"}`},
		{"an empty list", `{"message":{"role":"assistant","content":"","tool_calls":[]},"done":true}`,
			`{"message":{"role":"assistant","content":"Hi","tool_calls":[` + raw + `]},"done":true}`},
		{"a stream", `{"message":{"role":"assistant","content":""},"done":false}` + "\n" + `{"model":"m","created_at":"t","message":{"role":"assistant","content":""},"done":true}`,
			`{"message":{"role":"assistant","content":""},"done":false}` + "\n" +
				`{"model":"m","created_at":"t","message":{"role":"assistant","content":"","tool_calls":[` + raw + `]},"done":false}` + "\n" +
				`{"model":"m","created_at":"t","message":{"role":"assistant","content":"Hi"},"done":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			resp := answer(t, c.body)
			resp.Message.Parts = []middleware.Part{{Text: "Hi"}}
			resp.Message.ToolCalls = []middleware.ToolCall{fresh}
			require.Equal(t, c.want, written(t, resp))
			require.Equal(t, middleware.FinishToolCalls, answer(t, replace(c.want, `"done":true`, `"done":true,"done_reason":"stop"`)).FinishReason)
		})
	}
}

// A line that is put in speaks of the model as the others then do.
func TestEncodeResponseAddsALineOfTheModel(t *testing.T) {
	t.Parallel()
	resp := answer(t, `{"model":"m","message":{"role":"assistant","content":"a"},"done":false}`+"\n"+`{"model":"m","message":{"role":"assistant","content":""},"done":true}`)
	resp.Model = "n"
	resp.Message.ToolCalls = []middleware.ToolCall{{Name: "h", Arguments: `{}`}}
	require.Equal(t, `{"model":"n","message":{"role":"assistant","content":"a"},"done":false}`+"\n"+
		`{"model":"n","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"h","arguments":{}}}]},"done":false}`+"\n"+
		`{"model":"n","message":{"role":"assistant","content":""},"done":true}`, written(t, resp))
}

// Usage is written where there are figures, a missing one beside the other,
// and invented nowhere.
func TestEncodeResponseUsage(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"done":true}`:                       `{"done":true}`,
		`{"done":true,"eval_count":4}`:        `{"done":true,"eval_count":5,"prompt_eval_count":9}`,
		`{"done":true,"prompt_eval_count":0}`: `{"done":true,"prompt_eval_count":9,"eval_count":5}`,
	} {
		resp := answer(t, body)
		resp.Usage = middleware.Usage{Input: 9, Output: 5}
		require.Equal(t, want, written(t, resp))
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
		"an image": func(r *middleware.Response) {
			r.Message.Parts = append(r.Message.Parts, middleware.Part{Kind: middleware.PartMedia, Data: []byte("x")})
		},
		"an opaque part": func(r *middleware.Response) {
			r.Message.Parts = append(r.Message.Parts, middleware.Part{Kind: middleware.PartOpaque})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := answer(t, unary)
			edit(resp)
			_, err := format.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
	for name, body := range map[string]string{
		"no message": `{"done":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := answer(t, body)
			require.Equal(t, body, written(t, resp))
			for _, m := range []middleware.Message{middleware.Assistant("c"), middleware.Assistant("", middleware.ToolCall{Name: "f", Arguments: "{}"})} {
				resp.Message = m
				_, err := format.EncodeResponse(resp)
				require.ErrorIs(t, err, codec.ErrUnencodable)
			}
		})
	}
}
