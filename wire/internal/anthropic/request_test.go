package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

var format anthropic.Format

// tester is what tests, benchmarks and properties have in common.
type tester interface {
	require.TestingT
	Helper()
}

func decodeRequest(t tester, body string) *middleware.Request {
	t.Helper()
	req, err := format.DecodeRequest([]byte(body))
	require.NoError(t, err)
	return req
}

func encodeRequest(t tester, req *middleware.Request) string {
	t.Helper()
	body, err := format.EncodeRequest(req)
	require.NoError(t, err)
	require.True(t, json.Valid(body), "%s", body)
	return string(body)
}

// throughJSON returns v as a program reads it back that keeps conversations.
func throughJSON[T any](t tester, v T) T {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	var out T
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

const conversation = `{"model": "m-1","max_tokens":99, "system":[{"type":"text","text":"S1","cache_control":{"type":"ephemeral"}},{"type":"text","text":"S2"}],
 "messages":[
  {"role":"user","content":"Look."},
  {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig="},{"type":"text","text":"I do.","citations":null},
   {"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]},
   {"type":"tool_use","id":"t1","name":"look","input":{"n": 1.0},"caller":{"type":"direct"}},{"type":"tool_use","id":"t2","name":"see","input":{}}]},
  {"content" : [ {"type":"tool_result","tool_use_id":"t1","content":"ok","cache_control":{"type":"ephemeral"}}, {"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"bad"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAEC"}}]}, {"type":"text","text":"Well?"}] , "role":"user","x":1},
  {"role":"system","content":[{"type":"text","text":"From now on."}]}
 ],
 "tools":[{"name":"look","description":"L","input_schema":{"type":"object"},"strict":true},{"type":"web_search_20250305","name":"web_search","max_uses":2},{"type":"bash_20250124","name":"bash"}],
 "tool_choice":{"type":"any","disable_parallel_tool_use":true},"temperature":0.50,"stop_sequences":["END"],"metadata":{"user_id":"u"}}`

func TestDecodeRequest(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, conversation)
	require.Equal(t, "m-1", req.Model)
	require.Equal(t, 99, req.MaxTokens)
	require.InDelta(t, 0.5, *req.Temperature, 0)
	require.Equal(t, []string{"END"}, req.Stop)
	require.Equal(t, middleware.ToolRequired, req.ToolChoice.Mode)
	var roles []middleware.Role
	for _, m := range req.Messages {
		roles = append(roles, m.Role)
		require.NotNil(t, m.Native)
	}
	require.Equal(t, []middleware.Role{"system", "system", "user", "assistant", "tool", "tool", "user", "system"}, roles)
	require.Equal(t, "S2", req.Messages[1].Text())

	said := req.Messages[3]
	require.Equal(t, []middleware.PartKind{middleware.PartReasoning, middleware.PartText, middleware.PartOpaque, middleware.PartOpaque}, partKinds(said))
	require.Len(t, said.ToolCalls, 2)
	require.Equal(t, `{"n": 1.0}`, said.ToolCalls[0].Arguments)
	require.Equal(t, "t1", said.ToolCalls[0].ID)

	require.Equal(t, "ok", req.Messages[4].Text())
	require.Equal(t, "look", req.Messages[4].ToolName)
	require.False(t, req.Messages[4].IsError)
	require.True(t, req.Messages[5].IsError)
	require.Equal(t, []byte{0, 1, 2}, req.Messages[5].Parts[1].Data)
	require.Equal(t, "image/png", req.Messages[5].Parts[1].MediaType)

	require.Len(t, req.Tools, 3)
	require.JSONEq(t, `{"type":"object"}`, string(req.Tools[0].Parameters))
	require.True(t, req.Tools[0].Strict)
	require.Equal(t, middleware.KindHosted, req.Tools[1].Kind)
	require.Equal(t, middleware.KindFunction, req.Tools[2].Kind, "the client runs it, and is called as for its own")
	require.Nil(t, req.Tools[2].Parameters)

	require.Equal(t, conversation, encodeRequest(t, req))
	require.Equal(t, conversation, encodeRequest(t, req.Clone()))
	require.Equal(t, conversation, encodeRequest(t, throughJSON(t, req)))
}

// partKinds returns the kind of each part.
func partKinds(m middleware.Message) []middleware.PartKind {
	var out []middleware.PartKind
	for _, p := range m.Parts {
		out = append(out, p.Kind)
	}
	return out
}

func TestRequestEdits(t *testing.T) {
	t.Parallel()
	quarter := 0.25
	for name, x := range map[string]struct {
		edit     func(*middleware.Request)
		old, now string // what of the body becomes what
	}{
		"model":        {func(r *middleware.Request) { r.Model = "m-2" }, `"m-1"`, `"m-2"`},
		"max tokens":   {func(r *middleware.Request) { r.MaxTokens = 5 }, `"max_tokens":99`, `"max_tokens":5`},
		"no bound":     {func(r *middleware.Request) { r.MaxTokens = 0 }, `"max_tokens":99`, `"max_tokens":4096`},
		"temperature":  {func(r *middleware.Request) { r.Temperature = &quarter }, `0.50`, `0.25`},
		"none":         {func(r *middleware.Request) { r.Temperature = nil }, `"temperature":0.50,`, ``},
		"stop":         {func(r *middleware.Request) { r.Stop[0] = "E" }, `["END"]`, `["E"]`},
		"no stop":      {func(r *middleware.Request) { r.Stop = nil }, `"stop_sequences":["END"],`, ``},
		"auto":         {func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolAuto }, `"type":"any"`, `"type":"auto"`},
		"no tools":     {func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolNone }, `{"type":"any","disable_parallel_tool_use":true}`, `{"type":"none"}`},
		"one tool":     {func(r *middleware.Request) { r.ToolChoice.Name = "look" }, `{"type":"any","disable_parallel_tool_use":true}`, `{"type":"tool","disable_parallel_tool_use":true,"name":"look"}`},
		"schema":       {func(r *middleware.Request) { r.Tools[0].Parameters = []byte(`{"a":1}`) }, `"input_schema":{"type":"object"}`, `"input_schema":{"a":1}`},
		"schema, rude": {func(r *middleware.Request) { copy(r.Tools[0].Parameters, `{"typo"`) }, `"input_schema":{"type":`, `"input_schema":{"typo":`},
		"not strict":   {func(r *middleware.Request) { r.Tools[0].Strict = false }, `"strict":true`, `"strict":false`},
		"description":  {func(r *middleware.Request) { r.Tools[0].Description = "D" }, `"description":"L"`, `"description":"D"`},
		"tool renamed": {func(r *middleware.Request) { r.Tools[2].Name = "sh" }, `"name":"bash"`, `"name":"sh"`},
		"tool dropped": {func(r *middleware.Request) { r.Tools = r.Tools[:2] }, `,{"type":"bash_20250124","name":"bash"}`, ``},
		"tool added": {func(r *middleware.Request) {
			r.Tools = append(r.Tools, middleware.Tool{Name: "new", Description: "N", Strict: true})
		}, `"name":"bash"}`, `"name":"bash"},{"name":"new","description":"N","input_schema":{"type":"object"},"strict":true}`},
		"system":         {func(r *middleware.Request) { r.Messages[1].Parts[0].Text = "T" }, `"S2"`, `"T"`},
		"system dropped": {func(r *middleware.Request) { r.Messages = r.Messages[1:] }, `{"type":"text","text":"S1","cache_control":{"type":"ephemeral"}},`, ``},
		"no system":      {func(r *middleware.Request) { r.Messages = r.Messages[2:] }, ` "system":[{"type":"text","text":"S1","cache_control":{"type":"ephemeral"}},{"type":"text","text":"S2"}],`, ``},
		"system added":   {func(r *middleware.Request) { *r = *r.WithSystem("N") }, `"text":"S2"}`, `"text":"S2"},{"type":"text","text":"N"}`},
		"text":           {func(r *middleware.Request) { r.Messages[2].Parts[0].Text = "Say \"x\"" }, `"Look."`, `"Say \"x\""`},
		"two texts": {func(r *middleware.Request) {
			r.Messages[2].Parts = append(r.Messages[2].Parts, middleware.Part{Text: "N"})
		},
			`"content":"Look."`, `"content":[{"type":"text","text":"Look."},{"type":"text","text":"N"}]`},
		"arguments":    {func(r *middleware.Request) { r.Messages[3].ToolCalls[0].Arguments = `{"n":2}` }, `{"n": 1.0}`, `{"n":2}`},
		"no object":    {func(r *middleware.Request) { r.Messages[3].ToolCalls[0].Arguments = `[1` }, `{"n": 1.0}`, `{}`},
		"name":         {func(r *middleware.Request) { r.Messages[3].ToolCalls[0].Name = "l" }, `"t1","name":"look"`, `"t1","name":"l"`},
		"call dropped": {func(r *middleware.Request) { r.Messages[3].ToolCalls = r.Messages[3].ToolCalls[:1] }, `,{"type":"tool_use","id":"t2","name":"see","input":{}}`, ``},
		"text without Native": {func(r *middleware.Request) { r.Messages[3].Parts[1].Native = nil },
			`{"type":"text","text":"I do.","citations":null}`, `{"type":"text","text":"I do."}`},
		"result":       {func(r *middleware.Request) { r.Messages[4].Parts[0].Text = "no" }, `"content":"ok"`, `"content":"no"`},
		"result of":    {func(r *middleware.Request) { r.Messages[4].ToolCallID = "t9" }, `"tool_use_id":"t1"`, `"tool_use_id":"t9"`},
		"not in error": {func(r *middleware.Request) { r.Messages[5].IsError = false }, `"is_error":true`, `"is_error":false`},
		"in error": {func(r *middleware.Request) { r.Messages[4].IsError = true },
			`"content":"ok","cache_control":{"type":"ephemeral"}`, `"content":"ok","cache_control":{"type":"ephemeral"},"is_error":true`},
		"image, rude":      {func(r *middleware.Request) { r.Messages[5].Parts[1].Data[0] = 4 }, `{"type":"base64","media_type":"image/png","data":"AAEC"}`, `{"type":"base64","media_type":"image/png","data":"BAEC"}`},
		"results together": {func(r *middleware.Request) { r.Messages[6].Parts[0].Text = "?" }, `"Well?"`, `"?"`},
		"last dropped":     {func(r *middleware.Request) { r.Messages = r.Messages[:7] }, `,"x":1},` + "\n" + `  {"role":"system","content":[{"type":"text","text":"From now on."}]}`, `,"x":1}`},
		"message first": {func(r *middleware.Request) {
			r.Messages = append(r.Messages[:2:2], append([]middleware.Message{middleware.User("0")}, r.Messages[2:]...)...)
		}, `{"role":"user","content":"Look."}`, `{"role":"user","content":"0"},{"role":"user","content":"Look."}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, conversation, x.old)
			want := replaceOnce(t, conversation, x.old, x.now)
			req := decodeRequest(t, conversation)
			x.edit(req)
			require.Equal(t, want, encodeRequest(t, req))
			if name == "image, rude" || name == "schema, rude" {
				return // storage copies what these share
			}
			req = throughJSON(t, decodeRequest(t, conversation))
			x.edit(req)
			require.Equal(t, want, encodeRequest(t, req), "from storage")
		})
	}
}

func TestRequestUnencodable(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*middleware.Request){
		"signed reasoning":      func(r *middleware.Request) { r.Messages[3].Parts[0].Text = "other" },
		"an opaque part":        func(r *middleware.Request) { r.Messages[3].Parts[2].Text = "other" },
		"another kind of part":  func(r *middleware.Request) { r.Messages[3].Parts[1].Kind = middleware.PartReasoning },
		"another kind of call":  func(r *middleware.Request) { r.Messages[3].ToolCalls[0].Kind = middleware.KindCustom },
		"another kind of tool":  func(r *middleware.Request) { r.Tools[0].Kind = middleware.KindHosted },
		"a schema that is none": func(r *middleware.Request) { r.Tools[0].Parameters = []byte(`true`) },
		"a built-in tool": func(r *middleware.Request) {
			r.Tools = append(r.Tools, middleware.Tool{Name: "f", Kind: middleware.KindBuiltin})
		},
		"an opaque part of yore": func(r *middleware.Request) { r.Messages[2].Parts[0] = middleware.Part{Kind: middleware.PartOpaque} },
		"sound": func(r *middleware.Request) {
			r.Messages[2].Parts[0] = middleware.Part{Kind: middleware.PartMedia, MediaType: "audio/wav", Data: []byte{1}}
		},
		"a user's calls": func(r *middleware.Request) { r.Messages[2].ToolCalls = r.Messages[3].ToolCalls },
		"a Native of rubbish": func(r *middleware.Request) {
			r.Messages[2].Native = &middleware.Native{Dialect: format.Dialect(), Raw: "{"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, conversation)
			edit(req)
			_, err := format.EncodeRequest(req)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
	for name, body := range map[string]string{
		"a member twice":       `{"max_tokens":1,"max_tokens":2,"messages":[]}`,
		"a path with a model":  `{"anthropic_version":"bedrock-2023-05-31","max_tokens":1,"messages":[]}`,
		"a content that is so": `{"max_tokens":1,"messages":[{"role":"user","content":"a","content":"b"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, body)
			require.Equal(t, body, encodeRequest(t, req))
			req.Model, req.MaxTokens = "m", 7
			if len(req.Messages) > 0 {
				req.Messages[0].Parts[0].Text = "c"
			}
			_, err := format.EncodeRequest(req)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

func TestRequestShape(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":              ``,
		"a list":               `[]`,
		"no messages":          `{"model":"m"}`,
		"messages as text":     `{"messages":"a"}`,
		"a message as text":    `{"messages":["a"]}`,
		"an unknown role":      `{"messages":[{"role":"tool","content":"a"}]}`,
		"content as a number":  `{"messages":[{"role":"user","content":1}]}`,
		"a bare text":          `{"messages":[{"role":"user","content":["a"]}]}`,
		"no type":              `{"messages":[{"role":"user","content":[{"text":"a"}]}]}`,
		"text as a number":     `{"messages":[{"role":"user","content":[{"type":"text","text":1}]}]}`,
		"an id as a list":      `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":[]}]}]}`,
		"a name as a list":     `{"messages":[{"role":"assistant","content":[{"type":"tool_use","name":[]}]}]}`,
		"a result for 1":       `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":1}]}]}`,
		"a result of 1":        `{"messages":[{"role":"user","content":[{"type":"tool_result","content":1}]}]}`,
		"an error of 1":        `{"messages":[{"role":"user","content":[{"type":"tool_result","is_error":1}]}]}`,
		"system as an object":  `{"messages":[],"system":{}}`,
		"system of texts":      `{"messages":[],"system":["a"]}`,
		"tools as an object":   `{"messages":[],"tools":{}}`,
		"a tool as text":       `{"messages":[],"tools":["a"]}`,
		"a schema as a list":   `{"messages":[],"tools":[{"input_schema":[]}]}`,
		"a tool's name as 1":   `{"messages":[],"tools":[{"name":1}]}`,
		"the model as a list":  `{"messages":[],"model":[]}`,
		"more than one object": `{"messages":[]}{}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := format.DecodeRequest([]byte(body))
			require.ErrorIs(t, err, codec.ErrShape)
		})
	}
}

func replaceOnce(t *testing.T, s, old, now string) string {
	t.Helper()
	i := indexOnce(s, old)
	require.GreaterOrEqual(t, i, 0, "%q stands there not once", old)
	return s[:i] + now + s[i+len(old):]
}

// Members without a meaning stay as they are when another one changes.
func TestNullStays(t *testing.T) {
	t.Parallel()
	const body = `{"messages":[],"tools":null,"system":null,"temperature":null,"stop_sequences":null,"tool_choice":null,"max_tokens":5}`
	req := decodeRequest(t, body)
	req.MaxTokens = 6
	require.Equal(t, replaceOnce(t, body, `5`, `6`), encodeRequest(t, req))
}
