package wire_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// bodies have one request in each format, with a function a, a function b and further members.
var bodies = map[string]struct {
	codec wire.Codec
	body  string
}{
	"chat":      {wire.OpenAIChat(), `{"model":"m","messages":[{"role":"user","content":"1?"}],"tools":[{"type":"function","function":{"name":"a"}},{"type":"custom","custom":{"name":"b"}}]%s}`},
	"responses": {wire.OpenAIResponses(), `{"model":"m","input":"1?","tools":[{"type":"function","name":"a","parameters":{}},{"type":"custom","name":"b"},{"type":"web_search"}]%s}`},
	"anthropic": {wire.Anthropic(), `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"1?"}],"tools":[{"name":"a","input_schema":{}},{"name":"b","input_schema":{}}]%s}`},
	"gemini":    {wire.Gemini(), `{"contents":[{"role":"user","parts":[{"text":"1?"}]}],"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b"}]}]%s}`},
	"ollama":    {wire.Ollama(), `{"model":"m","messages":[{"role":"user","content":"1?"}],"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}]%s}`},
}

// limits are what a request says about the calls.
type limits struct {
	choice  middleware.ToolChoice
	allowed []string
	one     bool
}

func limitsOf(r *middleware.Request) limits {
	return limits{r.ToolChoice, r.AllowedTools, r.NoParallelCalls}
}

var (
	none     = middleware.ToolChoice{Mode: middleware.ToolNone}
	required = middleware.ToolChoice{Mode: middleware.ToolRequired}
)

func TestLimitsOfCallsAreRead(t *testing.T) {
	t.Parallel()
	const gemini = `,"toolConfig":{"functionCallingConfig":{"mode":%s}}`
	for _, c := range []struct {
		format, member string
		want           limits
	}{
		{"chat", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"a"}},{"type":"custom","custom":{"name":"b"}}]}}`, limits{allowed: []string{"a", "b"}}},
		{"chat", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"a"}}]}}`, limits{choice: required, allowed: []string{"a"}}},
		{"chat", `,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"a"}]}`, limits{choice: required, allowed: []string{"a"}}},
		{"chat", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"a"}},{"type":"web"}]}}`, limits{}},
		{"chat", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`, limits{allowed: []string{}}},
		{"chat", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto"}}`, limits{}},
		{"responses", `,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[]}`, limits{choice: required, allowed: []string{}}},
		{"gemini", fmt.Sprintf(gemini, `"ANY","allowedFunctionNames":[]`), limits{choice: required}},
		{"chat", `,"parallel_tool_calls":false`, limits{one: true}},
		{"chat", `,"parallel_tool_calls":true`, limits{}},
		{"chat", `,"function_call":"none"`, limits{choice: none}},
		{"responses", `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"a"},{"type":"web_search"},{"type":"mcp","server_label":"wiki"},{"type":"computer_use_preview"}]}`,
			limits{allowed: []string{"a", "web_search", "wiki", "computer"}}},
		{"responses", `,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"custom","name":"b"}]}`, limits{choice: required, allowed: []string{"b"}}},
		{"responses", `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"a"},{"type":"tool_search"}]}`, limits{}},
		{"responses", `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function"}]}`, limits{}},
		{"responses", `,"parallel_tool_calls":false`, limits{one: true}},
		{"responses", `,"parallel_tool_calls":null`, limits{}},
		{"anthropic", `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, limits{one: true}},
		{"anthropic", `,"tool_choice":{"type":"any","disable_parallel_tool_use":false}`, limits{choice: required}},
		{"gemini", fmt.Sprintf(gemini, `"ANY","allowedFunctionNames":["a","b"]`), limits{choice: required, allowed: []string{"a", "b"}}},
		{"gemini", fmt.Sprintf(gemini, `"ANY","allowedFunctionNames":["a"]`), limits{choice: middleware.ToolChoice{Name: "a"}, allowed: []string{"a"}}},
		{"gemini", fmt.Sprintf(gemini, `"ANY"`), limits{choice: required}},
		{"gemini", fmt.Sprintf(gemini, `"VALIDATED","allowedFunctionNames":["a"]`), limits{allowed: []string{"a"}}},
		{"gemini", fmt.Sprintf(gemini, `4,"allowedFunctionNames":["a"]`), limits{allowed: []string{"a"}}},
		{"gemini", fmt.Sprintf(gemini, `"VALIDATED"`), limits{}},
		{"gemini", fmt.Sprintf(gemini, `"AUTO","allowedFunctionNames":["a"]`), limits{}},
	} {
		t.Run(c.format+c.member, func(t *testing.T) {
			t.Parallel()
			f, body := bodies[c.format].codec, fmt.Sprintf(bodies[c.format].body, c.member)
			req, err := f.DecodeRequest([]byte(body))
			require.NoError(t, err)
			require.Equal(t, c.want, limitsOf(req))
			again, err := f.EncodeRequest(req.With())
			require.NoError(t, err)
			require.Equal(t, body, string(again))
			more, err := f.EncodeRequest(req.With(middleware.User("2?")))
			require.NoError(t, err)
			require.Contains(t, string(more), c.member, "a re-ask keeps the member as it is")
		})
	}
}

func TestLimitsOfCallsAreWritten(t *testing.T) {
	t.Parallel()
	list := func(choice middleware.ToolChoice, names ...string) limits {
		return limits{choice: choice, allowed: names}
	}
	const gemini = `,"toolConfig":{"functionCallingConfig":{"mode":%s}}`
	for name, c := range map[string]struct {
		format, member string
		set            limits
		want           string // of the edited body; "" means ErrUnencodable
	}{
		"chat, a list": {"chat", ``, list(middleware.ToolChoice{}, "a", "b"),
			`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"a"}},{"type":"custom","custom":{"name":"b"}}]}}`},
		"chat, another list": {"chat", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"b"}}]}}`, list(required, "a"),
			`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"a"}}]}}`},
		"chat, another mode": {"chat", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function", "function":{"name":"a"}}]}}`, list(required, "a"),
			`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function", "function":{"name":"a"}}]}}`},
		"chat, the mode beside the list": {"chat", `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"a"}]}`, list(required, "a"),
			`,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"a"}]}`},
		"chat, no list":       {"chat", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"a"}}]}}`, limits{}, ``},
		"chat, an empty list": {"chat", ``, limits{allowed: []string{}}, `,"tool_choice":"none"`},
		"chat, a named tool":  {"chat", ``, list(middleware.ToolChoice{Name: "a"}, "a"), `,"tool_choice":{"type":"function","function":{"name":"a"}}`},
		"chat, one call":      {"chat", ``, limits{one: true}, `,"parallel_tool_calls":false`},
		"chat, any number":    {"chat", `,"parallel_tool_calls":false`, limits{}, ``},
		"responses, a list": {"responses", ``, list(required, "a", "b", "web_search"),
			`,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"a"},{"type":"custom","name":"b"},{"type":"web_search"}]}`},
		"responses, another list": {"responses", `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"b"}]}`, list(middleware.ToolChoice{}, "a"),
			`,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"a"}]}`},
		"responses, no list":       {"responses", `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"b"}]}`, limits{}, `,"tool_choice":"auto"`},
		"responses, an empty list": {"responses", ``, limits{allowed: []string{}}, `,"tool_choice":"none"`},
		"responses, one call":      {"responses", ``, limits{one: true}, `,"parallel_tool_calls":false`},
		"anthropic, one call":      {"anthropic", ``, limits{one: true}, `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`},
		"anthropic, one, required": {"anthropic", `,"tool_choice":{"type":"auto","x":1}`, limits{choice: required, one: true}, `,"tool_choice":{"type":"any","x":1,"disable_parallel_tool_use":true}`},
		"anthropic, any number":    {"anthropic", `,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`, limits{choice: required}, `,"tool_choice":{"type":"any"}`},
		"anthropic, none":          {"anthropic", `,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`, limits{choice: none, one: true}, `,"tool_choice":{"type":"none"}`},
		"anthropic, a list":        {"anthropic", ``, list(middleware.ToolChoice{}, "a"), ``},
		"anthropic, an empty list": {"anthropic", ``, limits{allowed: []string{}}, `,"tool_choice":{"type":"none"}`},
		"gemini, a list":           {"gemini", ``, list(middleware.ToolChoice{}, "a"), fmt.Sprintf(gemini, `"VALIDATED","allowedFunctionNames":["a"]`)},
		"gemini, a required list":  {"gemini", ``, list(required, "a", "b"), fmt.Sprintf(gemini, `"ANY","allowedFunctionNames":["a","b"]`)},
		"gemini, an empty list":    {"gemini", ``, limits{allowed: []string{}}, fmt.Sprintf(gemini, `"NONE"`)},
		"gemini, a named tool":     {"gemini", fmt.Sprintf(gemini, `"VALIDATED","allowedFunctionNames":["a","b"]`), list(middleware.ToolChoice{Name: "a"}, "a", "b"), fmt.Sprintf(gemini, `"ANY","allowedFunctionNames":["a"]`)},
		"gemini, one call":         {"gemini", ``, limits{one: true}, ``},
		"ollama, a list":           {"ollama", ``, list(middleware.ToolChoice{}, "a"), ``},
		"ollama, one call":         {"ollama", ``, limits{one: true}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, body := bodies[c.format].codec, fmt.Sprintf(bodies[c.format].body, c.member)
			req, err := f.DecodeRequest([]byte(body))
			require.NoError(t, err)
			fresh := req.Clone()
			req.ToolChoice, req.AllowedTools, req.NoParallelCalls = c.set.choice, c.set.allowed, c.set.one
			got, err := f.EncodeRequest(req)
			if c.want == "" && c.member == "" {
				require.ErrorIs(t, err, middleware.ErrUnencodable)
				req.Tools, req.AllowedTools = nil, nil
				_, err = f.EncodeRequest(req)
				require.NoError(t, err, "without tools the number of calls needs no limit")
				return
			}
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf(bodies[c.format].body, c.want), string(got))

			fresh.Native, fresh.Messages[0].Native = nil, nil
			fresh.ToolChoice, fresh.AllowedTools, fresh.NoParallelCalls = c.set.choice, c.set.allowed, c.set.one
			got, err = f.EncodeRequest(fresh)
			require.NoError(t, err)
			read, err := f.DecodeRequest(got)
			require.NoError(t, err)
			want, err := f.DecodeRequest(fmt.Appendf(nil, bodies[c.format].body, c.want))
			require.NoError(t, err)
			require.Equal(t, limitsOf(want), limitsOf(read), string(got))
		})
	}
}

func TestOldFormHasNoList(t *testing.T) {
	t.Parallel()
	f := wire.OpenAIChat()
	req, err := f.DecodeRequest([]byte(`{"model":"m","messages":[],"functions":[{"name":"a"},{"name":"b"}]}`))
	require.NoError(t, err)
	req.AllowedTools = []string{"a"}
	_, err = f.EncodeRequest(req)
	require.ErrorIs(t, err, middleware.ErrUnencodable)
}
