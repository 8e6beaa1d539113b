package ollama_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/ollama"
)

var format ollama.Format

// pixel is the smallest thing that is taken for a picture.
const pixel = "\x89PNG\x0d\x0a\x1a\x0a"

var pixel64 = base64.StdEncoding.EncodeToString([]byte(pixel))

func decodeRequest(t require.TestingT, body string) *middleware.Request {
	req, err := format.DecodeRequest([]byte(body))
	require.NoError(t, err)
	return req
}

func encodeRequest(t require.TestingT, req *middleware.Request) string {
	body, err := format.EncodeRequest(req)
	require.NoError(t, err)
	return string(body)
}

const asked = `{"model":"m1", "keep_alive":"5m","options":{"temperature":0.50,"num_predict":64 ,"stop":["END"],"seed":7},
 "messages":[{"role":"system","content":"Be kind."}, {"role":"user","content":"What is it?","images":["PIC"]},
  {"role":"assistant","content":"Let me see.","thinking":"Hm.","tool_calls":[{"function":{"name":"look","arguments":{"z":1.0,"a":12345678901234567890}}}]},
  {"role":"tool","content":"a cat","tool_name":"look"}],
 "tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object"}}}],"stream":false, "think":true}`

func withPicture(body string) string {
	return replace(body, "PIC", pixel64)
}

func TestDecodeRequest(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, withPicture(asked))
	require.Equal(t, "m1", req.Model)
	require.InDelta(t, 0.5, *req.Temperature, 0)
	require.Equal(t, 64, req.MaxTokens)
	require.Equal(t, []string{"END"}, req.Stop)
	require.Empty(t, req.ToolChoice.Mode)

	require.Len(t, req.Messages, 4)
	require.Equal(t, middleware.RoleSystem, req.Messages[0].Role)
	require.Equal(t, "Be kind.", req.Messages[0].Text())
	picture := req.Messages[1].Parts[1]
	require.Equal(t, middleware.PartMedia, picture.Kind)
	require.Equal(t, "image/png", picture.MediaType)
	require.Equal(t, pixel, string(picture.Data))

	turn := req.Messages[2]
	require.Equal(t, middleware.PartReasoning, turn.Parts[0].Kind)
	require.Equal(t, "Hm.", turn.Parts[0].Text)
	require.Equal(t, "Let me see.", turn.Text())
	require.Len(t, turn.ToolCalls, 1)
	require.Equal(t, codec.PlaceID(1), turn.ToolCalls[0].ID)
	require.Equal(t, "look", turn.ToolCalls[0].Name)
	require.Equal(t, `{"z":1.0,"a":12345678901234567890}`, turn.ToolCalls[0].Arguments, "numbers and order as they were")
	require.Equal(t, codec.PlaceID(1), req.Messages[3].ToolCallID)
	require.Equal(t, "look", req.Messages[3].ToolName)

	require.Len(t, req.Tools, 1)
	require.Equal(t, "look", req.Tools[0].Name)
	require.Equal(t, "Looks.", req.Tools[0].Description)
	require.JSONEq(t, `{"type":"object"}`, string(req.Tools[0].Parameters))

	require.Equal(t, "ollama-chat", req.Native.Dialect)
	for _, m := range req.Messages {
		require.NotNil(t, m.Native)
		for _, p := range m.Parts {
			require.NotNil(t, p.Native)
		}
		for _, c := range m.ToolCalls {
			require.NotNil(t, c.Native)
		}
	}
	require.NotNil(t, req.Tools[0].Native)
}

func TestDecodeRequestOddities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		check      func(t *testing.T, req *middleware.Request)
	}{
		{"nothing", `{}`, func(t *testing.T, req *middleware.Request) { require.Empty(t, req.Messages) }},
		{"nulls", `{"model":null,"messages":null,"tools":null,"options":null}`, func(t *testing.T, req *middleware.Request) { require.Empty(t, req.Tools) }},
		{"no bound", `{"options":{"num_predict":-1,"stop":null}}`, func(t *testing.T, req *middleware.Request) { require.Zero(t, req.MaxTokens) }},
		{"a role in capitals", `{"messages":[{"role":"User","content":"x"}]}`, func(t *testing.T, req *middleware.Request) {
			require.Equal(t, middleware.RoleUser, req.Messages[0].Role)
		}},
		{"the last of two members", `{"model":"a","model":"b"}`, func(t *testing.T, req *middleware.Request) { require.Equal(t, "b", req.Model) }},
		{"an image that is none", `{"messages":[{"role":"user","images":["?",7,""]}]}`, func(t *testing.T, req *middleware.Request) {
			require.Len(t, req.Messages[0].Parts, 3)
			require.Equal(t, middleware.PartOpaque, req.Messages[0].Parts[0].Kind)
			require.Equal(t, `7`, req.Messages[0].Parts[1].Native.Raw)
		}},
		{"data that is not an image", `{"messages":[{"role":"user","images":["aGVsbG8="]}]}`, func(t *testing.T, req *middleware.Request) {
			require.Equal(t, middleware.PartMedia, req.Messages[0].Parts[0].Kind)
			require.Empty(t, req.Messages[0].Parts[0].MediaType)
		}},
		{"a tool of another kind", `{"tools":[{"type":"web_search"}]}`, func(t *testing.T, req *middleware.Request) {
			require.Equal(t, middleware.KindHosted, req.Tools[0].Kind)
			require.Equal(t, "web_search", req.Tools[0].Name)
		}},
		{"a call without arguments", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":null}}]}]}`,
			func(t *testing.T, req *middleware.Request) { require.Empty(t, req.Messages[0].ToolCalls[0].Arguments) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, c.body)
			c.check(t, req)
			require.Equal(t, c.body, encodeRequest(t, req))
		})
	}
}

func TestDecodeRequestRefuses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `[]`, `{"messages":[}`, `{"model":1}`, `{"messages":{}}`, `{"messages":["x"]}`, `{"messages":[{"role":1}]}`,
		`{"messages":[{"role":"user","content":[]}]}`, `{"messages":[{"thinking":true}]}`, `{"messages":[{"images":"x"}]}`,
		`{"messages":[{"tool_calls":{}}]}`, `{"messages":[{"tool_calls":[1]}]}`, `{"messages":[{"tool_calls":[{}]}]}`,
		`{"messages":[{"role":"tool","tool_call_id":1}]}`, `{"messages":[{"role":"tool","tool_name":1}]}`, `{"messages":[{"role":"tool","name":1}]}`,
		`{"tools":{}}`, `{"tools":[1]}`, `{"tools":[{"function":1}]}`, `{"tools":[{"function":{"name":1}}]}`, `{"tools":[{"function":{"description":1}}]}`,
		`{"tools":[{"type":1}]}`, `{"options":[]}`, `{"options":{"temperature":"1"}}`, `{"options":{"num_predict":"1"}}`,
		`{"options":{"stop":"x"}}`, `{"options":{"stop":[1]}}`} {
		_, err := format.DecodeRequest([]byte(body))
		require.ErrorIs(t, err, codec.ErrShape, body)
	}
}

func TestEncodeRequestEdits(t *testing.T) {
	t.Parallel()
	half := 0.25
	for _, c := range []struct {
		name     string
		edit     func(req *middleware.Request)
		old, new string // a text in asked, and its replacement
	}{
		{"nothing", func(*middleware.Request) {}, "", ""},
		{"the model", func(r *middleware.Request) { r.Model = "m2" }, `"model":"m1"`, `"model":"m2"`},
		{"the temperature", func(r *middleware.Request) { r.Temperature = &half }, `"temperature":0.50`, `"temperature":0.25`},
		{"in place", func(r *middleware.Request) { *r.Temperature = 0.25 }, `"temperature":0.50`, `"temperature":0.25`},
		{"no temperature", func(r *middleware.Request) { r.Temperature = nil }, `"temperature":0.50,`, ``},
		{"options of all kinds", func(r *middleware.Request) { r.MaxTokens, r.Stop, r.Temperature = 9, nil, &half },
			`"temperature":0.50,"num_predict":64 ,"stop":["END"],`, `"temperature":0.25,"num_predict":9,`},
		{"a stop in place", func(r *middleware.Request) { r.Stop[0] = "x" }, `["END"]`, `["x"]`},
		{"text", func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "Be \"brief\"." }, `Be kind.`, `Be \"brief\".`},
		{"a second text", func(r *middleware.Request) {
			r.Messages[0].Parts = append(r.Messages[0].Parts, middleware.Part{Text: " Please."})
		}, `Be kind.`, `Be kind. Please.`},
		{"no text", func(r *middleware.Request) { r.Messages[0].Parts = nil }, `Be kind.`, ``},
		{"reasoning", func(r *middleware.Request) { r.Messages[2].Parts[0].Text = "So." }, `Hm.`, `So.`},
		{"no reasoning", func(r *middleware.Request) { r.Messages[2].Parts = r.Messages[2].Parts[1:] }, `,"thinking":"Hm."`, ``},
		{"an image", func(r *middleware.Request) { r.Messages[1].Parts[1].Data = []byte("abc") }, `"PIC"`, `"YWJj"`},
		{"an image in place", func(r *middleware.Request) { r.Messages[1].Parts[1].Data[0] = 'x' }, `"PIC"`, `"eFBORw0KGgo="`},
		{"one more image", func(r *middleware.Request) {
			r.Messages[1].Parts = append(r.Messages[1].Parts, middleware.Part{Kind: middleware.PartMedia, Data: []byte("abc")})
		}, `"PIC"`, `"PIC","YWJj"`},
		{"arguments", func(r *middleware.Request) { r.Messages[2].ToolCalls[0].Arguments = `{"b": 1.50}` },
			`{"z":1.0,"a":12345678901234567890}`, `{"b": 1.50}`},
		{"arguments that are no object", func(r *middleware.Request) { r.Messages[2].ToolCalls[0].Arguments = `{"b"` },
			`{"z":1.0,"a":12345678901234567890}`, `{}`},
		{"a call's name", func(r *middleware.Request) { r.Messages[2].ToolCalls[0].Name = "see" }, `"name":"look","arg`, `"name":"see","arg`},
		{"an id of a place is not written", func(r *middleware.Request) {
			r.Messages[2].ToolCalls[0].ID, r.Messages[3].ToolCallID = codec.PlaceID(9), codec.PlaceID(9)
		}, ``, ``},
		{"another id is; the result still follows", func(r *middleware.Request) {
			r.Messages[2].ToolCalls[0].ID, r.Messages[3].ToolCallID = "c1", "c1"
		}, `}}]},`, `},"id":"c1"}]},`},
		{"a result of another call", func(r *middleware.Request) { r.Messages[3].ToolCallID = "c2" },
			`"tool_name":"look"`, `"tool_name":"look","tool_call_id":"c2"`},
		{"a result's name", func(r *middleware.Request) { r.Messages[3].ToolName = "see" }, `"tool_name":"look"`, `"tool_name":"see"`},
		{"a role", func(r *middleware.Request) { r.Messages[0].Role = middleware.RoleUser }, `"system"`, `"user"`},
		{"a message in front", func(r *middleware.Request) { *r = *r.WithSystem("First.") },
			`"Be kind."}, `, `"Be kind."},{"role":"system","content":"First."}, `},
		{"a message at the end", func(r *middleware.Request) { *r = *r.With(middleware.User("Sure?")) },
			`"tool_name":"look"}`, `"tool_name":"look"},{"role":"user","content":"Sure?"}`},
		{"a message less", func(r *middleware.Request) { r.Messages = r.Messages[1:] }, `{"role":"system","content":"Be kind."}, `, ``},
		{"no tools", func(r *middleware.Request) { r.Tools = nil },
			`{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object"}}}`, ``},
		{"a tool's words", func(r *middleware.Request) { r.Tools[0].Description, r.Tools[0].Name = "", "see" },
			`"name":"look","description":"Looks.",`, `"name":"see",`},
		{"a tool's schema", func(r *middleware.Request) { r.Tools[0].Parameters = []byte(`{"type": "object" }`) },
			`{"type":"object"}`, `{"type": "object" }`},
		{"a schema in place", func(r *middleware.Request) {
			r.Tools[0].Parameters[0] = ' '
			r.Tools[0].Parameters = append(r.Tools[0].Parameters[:0], `{}`...)
		},
			`{"type":"object"}`, `{}`},
		{"one more tool", func(r *middleware.Request) { r.Tools = append(r.Tools, middleware.Tool{Name: "t", Strict: true}) },
			`{"type":"object"}}}`, `{"type":"object"}}},{"type":"function","function":{"name":"t"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := withPicture(asked)
			want := replace(body, withPicture(c.old), withPicture(c.new))
			req := decodeRequest(t, body)
			c.edit(req)
			require.Equal(t, want, encodeRequest(t, req))
			require.Equal(t, want, encodeRequest(t, throughJSON(t, req)), "after storage")
		})
	}
}

func TestEncodeRequestRefuses(t *testing.T) {
	t.Parallel()
	other := &middleware.Native{Dialect: "openai-chat", Raw: "{}"}
	for name, edit := range map[string]func(r *middleware.Request){
		"a tool choice":   func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolRequired },
		"one tool":        func(r *middleware.Request) { r.ToolChoice.Name = "look" },
		"a failed result": func(r *middleware.Request) { r.Messages[3].IsError = true },
		"an image's address": func(r *middleware.Request) {
			r.Messages[1].Parts[1] = middleware.Part{Kind: middleware.PartMedia, URL: "https://x.example/y.png"}
		},
		"an opaque part": func(r *middleware.Request) {
			r.Messages[1].Parts[1] = middleware.Part{Kind: middleware.PartOpaque, Native: other}
		},
		"a custom call": func(r *middleware.Request) { r.Messages[2].ToolCalls[0].Kind = middleware.KindCustom },
		"a fresh opaque": func(r *middleware.Request) {
			r.Messages[1].Native = nil
			r.Messages[1].Parts[1] = middleware.Part{Kind: middleware.PartOpaque}
		},
		"a tool's kind":       func(r *middleware.Request) { r.Tools[0].Kind = middleware.KindCustom },
		"a tool's strictness": func(r *middleware.Request) { r.Tools[0].Strict = true },
		"no schema":           func(r *middleware.Request) { r.Tools[0].Parameters = []byte(`{`) },
		"a hosted tool":       func(r *middleware.Request) { r.Tools[0] = middleware.Tool{Kind: middleware.KindHosted} },
		"a broken request":    func(r *middleware.Request) { r.Native = &middleware.Native{Dialect: "ollama-chat", Raw: "["} },
		"a broken message": func(r *middleware.Request) {
			r.Messages[0].Native = &middleware.Native{Dialect: "ollama-chat", Raw: "["}
		},
		"a message that is none": func(r *middleware.Request) {
			r.Messages[0].Native = &middleware.Native{Dialect: "ollama-chat", Raw: `{"role":1}`}
		},
		"a call that is not an object": func(r *middleware.Request) {
			r.Messages[2].ToolCalls[0].Native = &middleware.Native{Dialect: "ollama-chat", Raw: `[]`}
		},
		"a broken call": func(r *middleware.Request) {
			r.Messages[2].ToolCalls[0].Native = &middleware.Native{Dialect: "ollama-chat", Raw: `{}`}
		},
		"a broken tool": func(r *middleware.Request) {
			r.Tools[0].Native = &middleware.Native{Dialect: "ollama-chat", Raw: `{"function":1}`}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, withPicture(asked))
			edit(req)
			_, err := format.EncodeRequest(req)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

// A member that appears twice is read, kept, and not edited.
func TestEncodeRequestDuplicates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		edit func(r *middleware.Request)
	}{
		"model":      {`{"model":"a","model":"b"}`, func(r *middleware.Request) { r.Model = "c" }},
		"options":    {`{"options":{},"options":{"num_predict":1}}`, func(r *middleware.Request) { r.MaxTokens = 2 }},
		"an option":  {`{"options":{"num_predict":1,"num_predict":1}}`, func(r *middleware.Request) { r.MaxTokens = 2 }},
		"messages":   {`{"messages":[],"messages":[{"role":"user"}]}`, func(r *middleware.Request) { r.Messages = nil }},
		"tools":      {`{"tools":[],"tools":[]}`, func(r *middleware.Request) { r.Tools = []middleware.Tool{{Name: "t"}} }},
		"content":    {`{"messages":[{"role":"user","content":"a","content":"b"}]}`, func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "c" }},
		"tool_calls": {`{"messages":[{"role":"assistant","tool_calls":[],"tool_calls":[]}]}`, func(r *middleware.Request) { r.Messages[0].ToolCalls = []middleware.ToolCall{{Name: "f"}} }},
		"function": {`{"messages":[{"role":"assistant","tool_calls":[{"function":{},"function":{"name":"f"}}]}]}`,
			func(r *middleware.Request) { r.Messages[0].ToolCalls[0].Name = "g" }},
		"id": {`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","id":"b","function":{}}]}]}`,
			func(r *middleware.Request) { r.Messages[0].ToolCalls[0].ID = "c" }},
		"a tool": {`{"tools":[{"function":{},"function":{"name":"f"}}]}`, func(r *middleware.Request) { r.Tools[0].Name = "g" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, c.body)
			require.Equal(t, c.body, encodeRequest(t, req))
			c.edit(req)
			_, err := format.EncodeRequest(req)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

// Some clients give a tool's name twice: both copies change.
func TestEncodeRequestToolNameCopies(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"tools":[{"type":"function","name":"f","function":{"name":"f"}}]}`)
	req.Tools[0].Name = "g"
	require.Equal(t, `{"tools":[{"type":"function","name":"g","function":{"name":"g"}}]}`, encodeRequest(t, req))
	req = decodeRequest(t, `{"tools":[{"function":{}}]}`)
	req.Tools[0].Name = "g"
	require.Equal(t, `{"tools":[{"function":{"name":"g"}}]}`, encodeRequest(t, req), "one place is enough")
}

func TestMatchAndAddress(t *testing.T) {
	t.Parallel()
	body := []byte(`{"model":"m","messages":[]}`)
	require.True(t, format.Match("/api/chat", body))
	require.True(t, format.Match("/gateway/ollama/api/chat", body))
	require.False(t, format.Match("/v1/chat/completions", body))
	require.False(t, format.Match("/api/generate", body))
	require.False(t, format.Match("/api/chat", []byte(`{"prompt":"x"}`)))
	require.Equal(t, "http://localhost:11434/api/chat", format.URL("", "m", true))
	require.Equal(t, "https://x.example/o/api/chat", format.URL("https://x.example/o/", "m", false))
	h := http.Header{}
	format.Authorize(h, "")
	require.Empty(t, h)
	format.Authorize(h, "k")
	require.Equal(t, "Bearer k", h.Get("Authorization"))
	require.Equal(t, "ollama-chat", format.Dialect())
}
