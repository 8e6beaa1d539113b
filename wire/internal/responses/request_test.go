package responses_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/responses"
)

var format = responses.Format{}

func decodeRequest(t *testing.T, body string) *middleware.Request {
	t.Helper()
	req, err := format.DecodeRequest([]byte(body))
	require.NoError(t, err)
	return req
}

func decodeResponse(t *testing.T, body string) *middleware.Response {
	t.Helper()
	resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
	require.NoError(t, err)
	return resp
}

// throughJSON returns v as a program reads it back that keeps conversations.
func throughJSON[T any](t *testing.T, v T) T {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	var out T
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

const conversation = `{"model":"m","instructions":"Be kind.","input":[
  {"role":"developer","content":"Be brief."},
  {"role":"user","content":[{"type":"input_text","text":"Weather?"},{"type":"input_image","image_url":"data:image/png;base64,AQI="},{"type":"input_file","file_id":"f1"}]},
  {"type":"reasoning","id":"rs_0","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"AA=="},
  {"type":"function_call","id":"fc_0","call_id":"c0","name":"weather","arguments":"{\"city\":\"Oslo\"}"},
  {"type":"custom_tool_call","call_id":"c1","name":"sql","input":"select 1"},
  {"type":"function_call_output","call_id":"c0","output":"rain"},
  {"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_text","text":"1"}]},
  {"type":"web_search_call","id":"ws_0","status":"completed","action":{"type":"search"}},
  {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Rain.","annotations":[],"logprobs":[{"token":"Rain."}]}]},
  {"role":"user","content":"Thanks."}
 ],"tools":[{"type":"function","name":"weather","parameters":{"type":"object"},"strict":true,"x":1},{"type":"web_search"},{"type":"custom","name":"sql"}],
 "tool_choice":"auto","temperature":1.0,"max_output_tokens":100,"store":false,"x_new":{"a":1.0}}`

func TestDecodeRequest(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, conversation)
	require.Equal(t, "m", req.Model)
	require.Equal(t, 100, req.MaxTokens)
	require.Equal(t, 1.0, *req.Temperature)
	roles := []middleware.Role{}
	for _, m := range req.Messages {
		roles = append(roles, m.Role)
		require.NotNil(t, m.Native)
		for _, p := range m.Parts {
			require.NotNil(t, p.Native)
		}
	}
	require.Equal(t, []middleware.Role{"system", "system", "user", "assistant", "tool", "tool", "assistant", "user"}, roles)
	user, turn := req.Messages[2], req.Messages[3]
	require.Equal(t, middleware.PartMedia, user.Parts[1].Kind)
	require.Equal(t, []byte{1, 2}, user.Parts[1].Data)
	require.Equal(t, "image/png", user.Parts[1].MediaType)
	require.Equal(t, middleware.PartOpaque, user.Parts[2].Kind, "a file that only the provider knows")
	require.Equal(t, middleware.PartReasoning, turn.Parts[0].Kind)
	require.Equal(t, "Hm.", turn.Parts[0].Text)
	require.Len(t, turn.ToolCalls, 2)
	require.Equal(t, "c0", turn.ToolCalls[0].ID)
	require.Equal(t, middleware.KindCustom, turn.ToolCalls[1].Kind)
	require.Equal(t, "select 1", turn.ToolCalls[1].Arguments)
	require.Equal(t, "weather", req.Messages[4].ToolName, "looked up, as the wire does not say")
	require.Equal(t, "1", req.Messages[5].Text())
	require.Equal(t, middleware.PartOpaque, req.Messages[6].Parts[0].Kind, "run by the provider")
	require.Equal(t, []middleware.Kind{middleware.KindFunction, middleware.KindHosted, middleware.KindCustom},
		[]middleware.Kind{req.Tools[0].Kind, req.Tools[1].Kind, req.Tools[2].Kind})
	require.True(t, req.Tools[0].Strict)
}

func TestDecodeRequestRefusesOtherShapes(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `[]`, `{`, `{"input":{}}`, `{"input":["x"]}`, `{"input":[{"type":1}]}`, `{"input":[{"type":"message"}]}`,
		`{"input":[{"role":"user","content":5}]}`, `{"input":[{"role":"user","content":["x"]}]}`, `{"instructions":["x"]}`,
		`{"input":[{"type":"function_call","name":{}}]}`, `{"input":[{"type":"function_call","arguments":[]}]}`,
		`{"input":[{"type":"function_call_output","output":true}]}`, `{"input":[{"type":"function_call_output","call_id":1}]}`,
		`{"input":[{"type":"reasoning","summary":"x"}]}`, `{"input":[{"role":"user","content":[{"type":"input_text","text":{}}]}]}`,
		`{"tools":{}}`, `{"tools":["x"]}`, `{"tools":[{"type":"function","name":{}}]}`, `{"tools":[{"type":"namespace","tools":["x"]}]}`,
		`{"tool_choice":1}`, `{"model":1}`, `{"temperature":"hot"}`, `{"max_output_tokens":[]}`, `{"conversation":1}`,
	} {
		_, err := format.DecodeRequest([]byte(body))
		require.ErrorIs(t, err, codec.ErrShape, body)
	}
}

// editRequest returns a request with an edit. It requires that storage before
// encoding makes no difference.
func editRequest(t *testing.T, body string, edit func(r *middleware.Request)) (string, error) {
	t.Helper()
	req := decodeRequest(t, body)
	edit(req)
	out, err := format.EncodeRequest(req)
	again, errAgain := format.EncodeRequest(throughJSON(t, req))
	require.Equal(t, err == nil, errAgain == nil)
	require.Equal(t, string(out), string(again), "stored in between")
	return string(out), err
}

func TestEditedRequests(t *testing.T) {
	t.Parallel()
	hot := 0.5
	user := middleware.User("And now?")
	for name, c := range map[string]struct {
		body string
		edit func(r *middleware.Request)
		want string
	}{
		"settings": {
			`{"model":"a","x":1.0,"temperature":1.0,"input":"hi"}`,
			func(r *middleware.Request) { r.Model, r.MaxTokens, r.Temperature = "b", 5, &hot },
			`{"model":"b","x":1.0,"temperature":0.5,"input":"hi","max_output_tokens":5}`},
		"settings go": {
			`{"model":"m","temperature":1.0,"input":"hi","max_output_tokens":5}`,
			func(r *middleware.Request) { r.Model, r.MaxTokens, r.Temperature = "", 0, nil },
			`{"input":"hi"}`},
		"a text input stays one": {
			`{"input":"hi"}`, func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "ho" }, `{"input":"ho"}`},
		"a text input becomes a list": {
			`{"input":"h\u0069","x":1}`, func(r *middleware.Request) { r.Messages = append(r.Messages, user) },
			`{"input":[{"role":"user","content":"h\u0069"},{"role":"user","content":"And now?"}],"x":1}`},
		"no input yet": {
			`{"prompt":{}}`, func(r *middleware.Request) { r.Messages = append(r.Messages, user) },
			`{"prompt":{},"input":[{"role":"user","content":"And now?"}]}`},
		"instructions": {
			`{"instructions":"Be kind.","input":"hi"}`, func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "Be good." },
			`{"instructions":"Be good.","input":"hi"}`},
		"instructions go": {
			`{"instructions":"Be kind.","input":"hi"}`, func(r *middleware.Request) { r.Messages = r.Messages[1:] }, `{"input":"hi"}`},
		"a system message behind instructions": {
			`{"instructions":"Be kind.","input":"hi"}`, func(r *middleware.Request) { *r = *r.WithSystem("Be brief.") },
			`{"instructions":"Be kind.","input":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]}`},
		"a system message before instructions": {
			`{"instructions":"Be kind.","input":[]}`,
			func(r *middleware.Request) {
				r.Messages = append([]middleware.Message{middleware.System("First.")}, r.Messages...)
			},
			`{"input":[{"role":"system","content":"First."},{"role":"system","content":"Be kind."}]}`},
		"a block": {
			`{"input":[{"role":"user","content":[ {"type":"input_text","text":"a","x":1}, {"type":"input_file","file_id":"f"} ]}]}`,
			func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "b" },
			`{"input":[{"role":"user","content":[ {"type":"input_text","text":"b","x":1}, {"type":"input_file","file_id":"f"} ]}]}`},
		"an image": {
			`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AQI=","detail":"low"}]}]}`,
			func(r *middleware.Request) { r.Messages[0].Parts[0].Data[0] = 2 },
			`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AgI=","detail":"low"}]}]}`},
		"a part more": {
			`{"input":[{"role":"user","content":"a"}]}`,
			func(r *middleware.Request) {
				r.Messages[0].Parts = append(r.Messages[0].Parts, middleware.Part{Kind: middleware.PartMedia, URL: "https://x.test/a.png"})
			},
			`{"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x.test/a.png"}]}]}`},
		"a call": {
			`{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}","x":1}]}`,
			func(r *middleware.Request) {
				r.Messages[0].ToolCalls[0] = middleware.ToolCall{ID: "d", Name: "g", Arguments: `{"a":1}`, Native: r.Messages[0].ToolCalls[0].Native}
			},
			`{"input":[{"type":"function_call","call_id":"d","name":"g","arguments":"{\"a\":1}","x":1}]}`},
		"a call that was incomplete": {
			`{"input":[{"type":"function_call"}]}`,
			func(r *middleware.Request) {
				c := &r.Messages[0].ToolCalls[0]
				c.ID, c.Name, c.Arguments = "d", "g", "{}"
			},
			`{"input":[{"type":"function_call","call_id":"d","name":"g","arguments":"{}"}]}`},
		"arguments that stand as an object": {
			`{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":{"a":1}}]}`,
			func(r *middleware.Request) { r.Messages[0].ToolCalls[0].Arguments = `{"a":2}` },
			`{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":{"a":2}}]}`},
		"reasoning goes with its call": {
			`{"input":[{"type":"reasoning","id":"r","summary":[]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"role":"user","content":"x"}]}`,
			func(r *middleware.Request) { r.Messages[0].ToolCalls = nil },
			`{"input":[{"role":"user","content":"x"}]}`},
		"reasoning stays with the next item": {
			`{"input":[{"type":"reasoning","id":"r","summary":[]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call","call_id":"d","name":"f","arguments":"{}"}]}`,
			func(r *middleware.Request) { r.Messages[0].ToolCalls = r.Messages[0].ToolCalls[1:] },
			`{"input":[{"type":"reasoning","id":"r","summary":[]},{"type":"function_call","call_id":"d","name":"f","arguments":"{}"}]}`},
		"a text in the middle of a turn": {
			`{"input":[{"role":"assistant","content":"a"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`,
			func(r *middleware.Request) {
				r.Messages[0].Parts = append(r.Messages[0].Parts, middleware.Part{Text: "b"})
			},
			`{"input":[{"role":"assistant","content":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`},
		"a result": {
			`{"input":[{"type":"function_call_output","call_id":"c","output":"a","x":1}]}`,
			func(r *middleware.Request) { r.Messages[0].ToolCallID, r.Messages[0].Parts[0].Text = "d", "b" },
			`{"input":[{"type":"function_call_output","call_id":"d","output":"b","x":1}]}`},
		"a result of a custom call": {
			`{"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"}]}`,
			func(r *middleware.Request) {
				r.Messages = append(r.Messages, middleware.ToolReply(r.Messages[0].ToolCalls[0], "y"))
			},
			`{"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"},{"type":"custom_tool_call_output","call_id":"c","output":"y"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := editRequest(t, c.body, c.edit)
			require.NoError(t, err)
			require.Equal(t, c.want, out)
		})
	}
}

func TestRequestEditsWithoutAPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		edit func(r *middleware.Request)
	}{
		"stop sequences":    {`{"input":"x"}`, func(r *middleware.Request) { r.Stop = []string{"x"} }},
		"a member twice":    {`{"model":"a","model":"b"}`, func(r *middleware.Request) { r.Model = "c" }},
		"an input twice":    {`{"input":"a","input":"b"}`, func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "c" }},
		"another role":      {`{"input":[{"role":"user","content":"a"}]}`, func(r *middleware.Request) { r.Messages[0].Role = middleware.RoleSystem }},
		"calls of the user": {`{"input":[{"role":"user","content":"a"}]}`, func(r *middleware.Request) { r.Messages[0].ToolCalls = make([]middleware.ToolCall, 1) }},
		"an image as instructions": {`{"instructions":"a"}`, func(r *middleware.Request) {
			r.Messages[0].Parts[0] = middleware.Part{Kind: middleware.PartMedia, URL: "u"}
		}},
		"an opaque part of elsewhere": {`{"input":"a"}`, func(r *middleware.Request) {
			r.Messages = append(r.Messages, middleware.Message{Role: middleware.RoleUser, Parts: []middleware.Part{{Kind: middleware.PartOpaque, Native: &middleware.Native{Dialect: "d"}}}})
		}},
		"an opaque part": {`{"input":[{"role":"user","content":[{"type":"new"}]}]}`, func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "b" }},
		"media without a type": {`{"input":"a"}`, func(r *middleware.Request) {
			r.Messages[0].Parts = append(r.Messages[0].Parts, middleware.Part{Kind: middleware.PartMedia, Data: []byte{1}})
		}},
		"media of the model": {`{"input":"a"}`, func(r *middleware.Request) {
			r.Messages = append(r.Messages, middleware.Message{Role: middleware.RoleAssistant, Parts: []middleware.Part{{Kind: middleware.PartMedia, URL: "u"}}})
		}},
		"an error mark":      {`{"input":[{"type":"function_call_output","call_id":"c","output":"a"}]}`, func(r *middleware.Request) { r.Messages[0].IsError = true }},
		"a name of a result": {`{"input":[{"type":"function_call_output","call_id":"c","output":"a"}]}`, func(r *middleware.Request) { r.Messages[0].ToolName = "f" }},
		"a reply to computer_call": {`{"input":[{"type":"computer_call","call_id":"c","action":{"type":"click"}}]}`, func(r *middleware.Request) {
			r.Messages = append(r.Messages, middleware.ToolReply(r.Messages[0].ToolCalls[0], "x"))
		}},
		"a screenshot": {`{"input":[{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot"}}]}`, func(r *middleware.Request) {
			r.Messages[0].Parts = []middleware.Part{{Text: "x"}}
		}},
		"a name for computer_call": {`{"input":[{"type":"computer_call","call_id":"c","action":{}}]}`, func(r *middleware.Request) { r.Messages[0].ToolCalls[0].Name = "x" }},
		"another kind of call":     {`{"input":[{"type":"function_call","call_id":"c"}]}`, func(r *middleware.Request) { r.Messages[0].ToolCalls[0].Kind = middleware.KindCustom }},
		"rubbish where an object stands": {`{"input":[{"type":"function_call","call_id":"c","arguments":{}}]}`, func(r *middleware.Request) {
			r.Messages[0].ToolCalls[0].Arguments = "x"
		}},
		"a change of additional tools": {`{"input":[{"type":"additional_tools","role":"developer","tools":[]}]}`, func(r *middleware.Request) {
			r.Messages[0].Parts = []middleware.Part{{Text: "x"}}
		}},
		"reasoning in several texts": {`{"input":[{"type":"reasoning","summary":[{"text":"a"},{"text":"b"}]}]}`, func(r *middleware.Request) {
			r.Messages[0].Parts[0].Text = "c"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := editRequest(t, c.body, c.edit)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

// A member that is null means the same as no member, and stays.
func TestNullStays(t *testing.T) {
	t.Parallel()
	out, err := editRequest(t, `{"model":"m","tools":null,"tool_choice":null,"temperature":null}`, func(r *middleware.Request) { r.Model = "n" })
	require.NoError(t, err)
	require.Equal(t, `{"model":"n","tools":null,"tool_choice":null,"temperature":null}`, out)
}

func TestUnchangedRequestsComeOutAsTheyWere(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		conversation, ` {"input" : "a" , "input" : "b"} `, `{"input":null,"instructions":null}`, `{"input":[{"type":"item_reference","id":"x"}]}`,
		`{"input":[{"role":"assistant","content":[]},{"role":"user"}],"tools":null,"tool_choice":null}`,
	} {
		out, err := editRequest(t, body, func(*middleware.Request) {})
		require.NoError(t, err)
		require.Equal(t, body, out)
	}
}
