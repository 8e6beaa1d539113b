package responses_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const (
	plainReasoning = `{"id":"rs","type":"reasoning","summary":[]}`
	plainCall      = `{"id":"fc","type":"function_call","call_id":"c1","name":"f","arguments":"{}","status":"completed"}`
)

// answerBody returns an answer with those members and those items of output.
func answerBody(members string, items ...string) string {
	return `{"id":"resp","object":"response","status":"completed","model":"m",` + members + `"output":[` + strings.Join(items, ",") + `]}`
}

// encodeReask returns body with the turn of an answer and a reply to its call
// appended.
func encodeReask(t *testing.T, body string, resp *middleware.Response) (string, error) {
	t.Helper()
	req := decodeRequest(t, body)
	reply := middleware.ToolReply(resp.Message.ToolCalls[0], "bad")
	reply.IsError = true
	out, err := format.EncodeRequest(req.With(resp.Message, reply))
	again, errAgain := format.EncodeRequest(req.With(throughJSON(t, []middleware.Message{resp.Message, reply})...))
	require.Equal(t, err, errAgain)
	require.Equal(t, string(out), string(again))
	return string(out), err
}

// A re-ask is the request with the turn put in, as far as the provider does not
// have it: see the files of testdata/TestReask.
func TestReask(t *testing.T) {
	t.Parallel()
	cases := []string{
		"a list", "a text", "the same previous answer",
		"a conversation that the provider holds", "a conversation as an object",
		"reasoning that nobody kept", "reasoning that the provider says it did not keep", "reasoning that was given away",
		"reasoning in the open", "reasoning in the request itself",
	}
	casefile.OneForEach(t, slices.Values(cases))
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := encodeReask(t, casefile.Body(t, "request"), decodeResponse(t, casefile.Body(t, "answer")))
			require.NoError(t, err)
			casefile.Expect(t, "reask", out)
			again, err := editRequest(t, out, func(*middleware.Request) {})
			require.NoError(t, err)
			require.Equal(t, out, again)
		})
	}
}

func TestReaskWithEdits(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, answerBody("", plainReasoning, plainCall))
	resp.Message.ToolCalls[0].Arguments = `{"a":1}`
	resp.Message.ToolCalls[0].ID = "c2"
	out, err := encodeReask(t, `{"input":[]}`, resp)
	require.NoError(t, err)
	require.Equal(t, `{"input":[`+plainReasoning+`,{"id":"fc","type":"function_call","call_id":"c2","name":"f","arguments":"{\"a\":1}","status":"completed"},`+
		`{"type":"function_call_output","call_id":"c2","output":"bad"}]}`, out)

	_, err = encodeReask(t, `{"input":[],"conversation":"conv"}`, resp)
	require.ErrorIs(t, err, codec.ErrUnencodable, "the provider has it under the other id")
}

// What the provider holds cannot be changed, but an echo in a form that any
// provider takes is not a change.
func TestReaskOfATurnThatTheProviderHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit  func(m *middleware.Message)
		fails bool
	}{
		"the echo of rubbish": {func(m *middleware.Message) { m.ToolCalls[0].Arguments, m.ToolCalls[0].Name = "{}", "f_" }, false},
		"other arguments":     {func(m *middleware.Message) { m.ToolCalls[0].Arguments = `{"a":1}` }, true},
		"no call":             {func(m *middleware.Message) { m.ToolCalls = m.ToolCalls[1:] }, true},
		"a call":              {func(m *middleware.Message) { m.ToolCalls = append(m.ToolCalls, middleware.ToolCall{ID: "c3"}) }, true},
		"text":                {func(m *middleware.Message) { m.Parts[0].Text = "x" }, true},
	} {
		resp := decodeResponse(t, answerBody("", plainMessage, strings.Replace(plainCall, "{}", "{", 1), strings.Replace(plainCall, "c1", "c2", 1)))
		c.edit(&resp.Message)
		out, err := encodeReask(t, `{"input":[],"conversation":"conv"}`, resp)
		if c.fails {
			require.ErrorIs(t, err, codec.ErrUnencodable, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, `{"input":[{"type":"function_call_output","call_id":"c1","output":"bad"}],"conversation":"conv"}`, out)
	}
}

func TestFreshRequest(t *testing.T) {
	t.Parallel()
	hot := 0.25
	req := &middleware.Request{
		Model: "m", MaxTokens: 9, Temperature: &hot, ToolChoice: middleware.ToolChoice{Mode: middleware.ToolRequired},
		Tools: []middleware.Tool{
			{Name: "f", Description: "d", Parameters: []byte(` {"type":"object"} `), Strict: true}, {Name: "g"}, {Name: "h", Kind: middleware.KindCustom},
		},
		Messages: []middleware.Message{
			middleware.System("Be kind."), middleware.System("Be brief."),
			{Role: middleware.RoleUser, Parts: []middleware.Part{{Text: "Look:"}, {Kind: middleware.PartMedia, MediaType: "image/png", Data: []byte{1}},
				{Kind: middleware.PartMedia, MediaType: "application/pdf", Data: []byte{1}}, {Kind: middleware.PartMedia, MediaType: "application/pdf", URL: "https://x.test/a.pdf"}}},
			{Role: middleware.RoleAssistant, Parts: []middleware.Part{{Kind: middleware.PartReasoning, Text: "Hm.", Native: &middleware.Native{Dialect: "d"}}, {Text: "Well."}},
				ToolCalls: []middleware.ToolCall{{ID: "c1", Name: "f", Arguments: "rubbish"}, {ID: "c2", Name: "h", Kind: middleware.KindCustom, Arguments: "x"}}},
			middleware.ToolReply(middleware.ToolCall{ID: "c1"}, "1"), middleware.ToolReply(middleware.ToolCall{ID: "c2"}, "2"),
		},
		Params: []byte(`{"reasoning":{"effort":"low"},"max_output_tokens":7}`),
		Sink:   func(middleware.Event) error { return nil },
	}
	out, err := format.EncodeRequest(req)
	require.NoError(t, err)
	require.JSONEq(t, `{"model":"m","instructions":"Be kind.","input":[{"role":"system","content":"Be brief."},`+
		`{"role":"user","content":[{"type":"input_text","text":"Look:"},{"type":"input_image","image_url":"data:image/png;base64,AQ=="},`+
		`{"type":"input_file","file_data":"data:application/pdf;base64,AQ==","filename":"file.pdf"},{"type":"input_file","file_url":"https://x.test/a.pdf"}]},`+
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Well.","annotations":[]}]},`+
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"rubbish"},{"type":"custom_tool_call","call_id":"c2","name":"h","input":"x"},`+
		`{"type":"function_call_output","call_id":"c1","output":"1"},{"type":"custom_tool_call_output","call_id":"c2","output":"2"}],`+
		`"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true},`+
		`{"type":"function","name":"g","parameters":null,"strict":false},{"type":"custom","name":"h"}],"tool_choice":"required",`+
		`"temperature":0.25,"max_output_tokens":7,"stream":true,"reasoning":{"effort":"low"}}`, string(out))

	back := decodeRequest(t, string(out))
	require.Len(t, back.Messages, len(req.Messages))
	require.Equal(t, "Well.", back.Messages[3].Text())
	require.Equal(t, req.Messages[2].Parts[2].Data, back.Messages[2].Parts[2].Data)
}

// A conversation goes on in a request of its own: what was decoded is written
// from its own form.
func TestFreshRequestWithOwnForms(t *testing.T) {
	t.Parallel()
	from := decodeRequest(t, conversation)
	out, err := format.EncodeRequest(&middleware.Request{Model: "n", Messages: from.Messages, Tools: from.Tools, ToolChoice: middleware.ToolChoice{Name: "web_search"}})
	require.NoError(t, err)
	back := decodeRequest(t, string(out))
	require.Len(t, back.Messages, len(from.Messages))
	for i, m := range from.Messages {
		require.Equal(t, m.Text(), back.Messages[i].Text())
		require.Equal(t, m.Native.Raw, back.Messages[i].Native.Raw)
	}
	require.Contains(t, string(out), `"tool_choice":{"type":"web_search"}`)
	require.Equal(t, "web_search", back.ToolChoice.Name)

	held, err := format.EncodeRequest(&middleware.Request{Messages: []middleware.Message{middleware.User("a"), decodeResponse(t, answerBody("", plainCall)).Message},
		Params: []byte(`{"conversation":"conv"}`)})
	require.NoError(t, err)
	require.NotContains(t, string(held), "function_call", "the provider has it")

	held, err = format.EncodeRequest(&middleware.Request{Messages: decodeRequest(t, `{"input":[`+plainReasoning+`,`+plainCall+`]}`).Messages,
		Params: []byte(`{"conversation":"conv","store":false}`)})
	require.NoError(t, err)
	require.Contains(t, string(held), plainReasoning+`,`+plainCall, "what a client sent, the provider need not have")
}

func TestFreshRequestRefuses(t *testing.T) {
	t.Parallel()
	part := func(p middleware.Part) *middleware.Request {
		return &middleware.Request{Messages: []middleware.Message{{Role: middleware.RoleUser, Parts: []middleware.Part{p}}}}
	}
	for name, req := range map[string]*middleware.Request{
		"stop sequences":      {Stop: []string{"x"}},
		"an opaque part":      part(middleware.Part{Kind: middleware.PartOpaque, Native: &middleware.Native{Dialect: "d"}}),
		"media without place": part(middleware.Part{Kind: middleware.PartMedia}),
		"a hosted tool":       {Tools: []middleware.Tool{{Name: "x", Kind: middleware.KindHosted}}},
		"a schema":            {Tools: []middleware.Tool{{Name: "x", Parameters: []byte(`{`)}}},
		"params":              {Params: []byte(`[]`)},
		"a role":              {Messages: []middleware.Message{{Role: "critic"}}},
		"a foreign call":      {Messages: []middleware.Message{middleware.Assistant("", middleware.ToolCall{Kind: middleware.KindBuiltin})}},
	} {
		_, err := format.EncodeRequest(req)
		require.ErrorIs(t, err, codec.ErrUnencodable, name)
	}
}

// The conversation that the provider holds has the input and the answers of earlier attempts:
// a re-ask sends what is new.
func TestReaskInAConversation(t *testing.T) {
	t.Parallel()
	first, second := decodeResponse(t, answerBody("", plainReasoning, plainCall)).Message, decodeResponse(t, answerBody("", strings.Replace(plainCall, "c1", "c2", 1))).Message
	empty := decodeResponse(t, answerBody("", plainReasoning)).Message
	reply := func(m middleware.Message) middleware.Message { return middleware.ToolReply(m.ToolCalls[0], "bad") }
	const again = `{"type":"function_call_output","call_id":"c2","output":"bad"}`
	for name, c := range map[string]struct {
		input string
		turns []middleware.Message
		want  string
	}{
		"no re-ask":           {`[{"role":"user","content":"Go."}]`, nil, `[{"role":"user","content":"Go."}]`},
		"a list":              {`[{"role":"user","content":"Go."}]`, []middleware.Message{first, reply(first)}, `[{"type":"function_call_output","call_id":"c1","output":"bad"}]`},
		"a text":              {`"Go."`, []middleware.Message{second, reply(second)}, `[` + again + `]`},
		"results":             {`[{"type":"function_call_output","call_id":"c0","output":"1"}]`, []middleware.Message{second, reply(second)}, `[` + again + `]`},
		"a third attempt":     {`"Go."`, []middleware.Message{first, reply(first), second, reply(second)}, `[` + again + `]`},
		"an answer's text":    {`"Go."`, []middleware.Message{middleware.Assistant("(empty)"), middleware.User("Answer.")}, `[{"role":"user","content":"Answer."}]`},
		"an answer as it was": {`"Go."`, []middleware.Message{empty, middleware.User("Answer.")}, `[{"role":"user","content":"Answer."}]`},
		"a turn of the client's": {`[{"role":"assistant","content":"Hi."},{"role":"user","content":"Go."}]`, nil,
			`[{"role":"assistant","content":"Hi."},{"role":"user","content":"Go."}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, more := range []string{``, `"instructions":"Be brief.",`} {
				body := `{` + more + `"conversation":"conv","input":` + c.input + `}`
				out, err := format.EncodeRequest(decodeRequest(t, body).With(c.turns...))
				require.NoError(t, err)
				require.Equal(t, `{`+more+`"conversation":"conv","input":`+c.want+`}`, string(out))
			}
			fresh := &middleware.Request{Model: "m", Messages: append([]middleware.Message{middleware.User("Go.")}, c.turns...), Params: []byte(`{"conversation":"conv"}`)}
			out, err := format.EncodeRequest(fresh)
			require.NoError(t, err)
			require.Equal(t, len(c.turns) == 0 || name == "an answer's text", strings.Contains(string(out), "Go."), string(out))
		})
	}
}
