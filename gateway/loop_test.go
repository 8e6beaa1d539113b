package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/gateway"
)

// TestLoopsAndEscalation: a call that repeats failures is re-asked once, and the last attempt of
// a step goes to the model of the setting; in mode repair neither happens.
func TestLoopsAndEscalation(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","required":["a"]}}}]`
	const failed = `{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"x","content":"Error: no"}`
	answer := func(arguments string) string {
		return `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"` + arguments + `"}}]},"finish_reason":"tool_calls"}]}`
	}
	for name, c := range map[string]struct {
		settings  gateway.Settings
		tool      gateway.ToolRule
		history   int
		arguments string
		models    string
	}{
		"a loop":             {gateway.Settings{LoopAfter: new(3)}, gateway.ToolRule{}, 3, `{\"a\":1}`, "small small"},
		"polling":            {gateway.Settings{LoopAfter: new(3)}, gateway.ToolRule{Name: "f", Polling: true}, 3, `{\"a\":1}`, "small"},
		"off by default":     {gateway.Settings{}, gateway.ToolRule{}, 3, `{\"a\":1}`, "small"},
		"off":                {gateway.Settings{LoopAfter: new(0)}, gateway.ToolRule{}, 3, `{\"a\":1}`, "small"},
		"repair":             {gateway.Settings{LoopAfter: new(3), Escalate: "large", Mode: gateway.Repair}, gateway.ToolRule{}, 3, `{\"a\":1}`, "small"},
		"another model":      {gateway.Settings{Escalate: "large"}, gateway.ToolRule{}, 0, `{}`, "small small large"},
		"no other model":     {gateway.Settings{Escalate: "none"}, gateway.ToolRule{}, 0, `{}`, "small small small"},
		"no further attempt": {gateway.Settings{Escalate: "large", Attempts: 1}, gateway.ToolRule{}, 0, `{}`, "small"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var models []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				_, model, _ := strings.Cut(string(b), `"model":"`)
				model, _, _ = strings.Cut(model, `"`)
				models = append(models, model)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer(c.arguments))
			}))
			t.Cleanup(s.Close)
			u := gateway.Upstream{URL: s.URL}
			if c.tool.Name != "" {
				u.ToolRules = []gateway.ToolRule{c.tool}
			}
			url := serve(t, gateway.Config{Settings: c.settings, Upstreams: []gateway.Upstream{u}})
			status, _, _ := post(t, url+"/v1/chat/completions", `{"model":"small","messages":[{"role":"user","content":"?"}`+strings.Repeat(","+failed, c.history)+`],`+tools+`}`)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, c.models, strings.Join(models, " "))
		})
	}
	require.ErrorContains(t, gateway.Config{Settings: gateway.Settings{LoopAfter: new(-1)}, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}.Validate(), "loop_after")
}

// TestConstrainedReasks: with the setting a re-ask has the constraint in each format that
// has one, and where the upstream refuses it the same re-ask is sent without it. The client's
// stream has no text of a constrained answer.
func TestConstrainedReasks(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`
	const forced = `{"type":"object","properties":{"name":{"const":"f"},"arguments":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}},"required":["name","arguments"],"additionalProperties":false}`
	const text = `{\"name\":\"f\",\"arguments\":{\"a\":1}}`
	requests := map[string]struct{ path, request, call, text string }{
		"chat": {"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `}}]}`,
			`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}]}`},
		"chat stream": {"/v1/chat/completions",
			`{"model":"m","stream":true,"messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `}}]}`,
			"data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":null}]}\n\ndata: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
			"data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"" + text + "\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"},
		"ollama": {"/api/chat",
			`{"model":"m","stream":false,"messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `}}]}`,
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":true,"done_reason":"stop"}`,
			`{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"` + text + `"},"done":true,"done_reason":"stop"}`},
		"anthropic": {"/v1/messages",
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"?"}],"tools":[{"name":"f","input_schema":` + schema + `}]}`,
			`{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"f","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`, ""},
		"responses": {"/v1/responses",
			`{"model":"m","input":[{"role":"user","content":"?"}],"tools":[{"type":"function","name":"f","parameters":` + schema + `}]}`,
			`{"id":"resp","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}","status":"completed"}]}`, ""},
		"gemini": {"/v1beta/models/m:generateContent",
			`{"contents":[{"role":"user","parts":[{"text":"?"}]}],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":` + schema + `}]}]}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}`, ""},
	}
	for name, c := range map[string]struct {
		format      string
		constrain   argsvalidate.Constrain
		destructive bool
		refuses     bool
		in          []string // in the second request
		calls       int
	}{
		"chat, named":                {"chat", argsvalidate.ConstrainNamed, false, false, []string{`"tool_choice":{"type":"function","function":{"name":"f"}}`, `"strict":true`}, 2},
		"anthropic, named":           {"anthropic", argsvalidate.ConstrainNamed, false, false, []string{`"tool_choice":{"type":"tool","name":"f"}`, `"strict":true`}, 2},
		"responses, named":           {"responses", argsvalidate.ConstrainNamed, false, false, []string{`"tool_choice":{"type":"function","name":"f"}`, `"strict":true`}, 2},
		"gemini, named":              {"gemini", argsvalidate.ConstrainNamed, false, false, []string{`"mode":"ANY"`, `"allowedFunctionNames":["f"]`}, 2},
		"ollama has none":            {"ollama", argsvalidate.ConstrainNamed, false, false, nil, 2},
		"refused":                    {"anthropic", argsvalidate.ConstrainNamed, false, true, []string{`"strict":true`}, 3},
		"destructive":                {"chat", argsvalidate.ConstrainNamed, true, false, nil, 2},
		"chat, form":                 {"chat", argsvalidate.ConstrainResponseFormat, false, false, []string{forced, `"response_format"`}, 2},
		"chat, form, stream":         {"chat stream", argsvalidate.ConstrainResponseFormat, false, false, []string{forced}, 2},
		"ollama, form":               {"ollama", argsvalidate.ConstrainResponseFormat, false, false, []string{`"format":` + forced}, 2},
		"anthropic has no such form": {"anthropic", argsvalidate.ConstrainResponseFormat, false, false, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := requests[c.format]
			var bodies []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(b))
				w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[strings.Contains(f.request, `"stream":true`)])
				switch {
				case len(bodies) == 2 && c.refuses:
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"Thinking may not be enabled when tool_choice forces tool use."}}`)
				case len(bodies) > 1 && strings.Contains(string(b), `"const":"f"`):
					_, _ = io.WriteString(w, f.text)
				case len(bodies) > 1:
					_, _ = io.WriteString(w, strings.NewReplacer(`"arguments":"{}"`, `"arguments":"{\"a\":1}"`, `"arguments":{}`, `"arguments":{"a":1}`, `"input":{}`, `"input":{"a":1}`, `"args":{}`, `"args":{"a":1}`).Replace(f.call))
				default:
					_, _ = io.WriteString(w, f.call)
				}
			}))
			t.Cleanup(s.Close)
			u := gateway.Upstream{URL: s.URL, ToolRules: []gateway.ToolRule{{Name: "f", Destructive: c.destructive}}}
			url := serve(t, gateway.Config{Settings: gateway.Settings{Constrain: c.constrain, Attempts: 2}, Upstreams: []gateway.Upstream{u}})
			status, answer, header := post(t, url+f.path, f.request)
			require.Equal(t, http.StatusOK, status, answer)
			require.Len(t, bodies, c.calls)
			for _, in := range c.in {
				require.Contains(t, bodies[1], in)
			}
			last := bodies[len(bodies)-1]
			if c.in == nil || c.refuses {
				require.NotContains(t, last, `"strict"`)
				require.NotContains(t, last, `"tool_choice"`)
				require.NotContains(t, last, `format"`)
			}
			require.True(t, json.Valid([]byte(last)))
			require.NotContains(t, answer, `\"name\"`, "no text of the constrained answer")
			if header.Get("X-Toolmend-Status") != "" {
				require.Equal(t, "valid", header.Get("X-Toolmend-Status"))
			}
		})
	}
}

// The setting formats decides which formats calls must obey.
func TestFormats(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"d":{"type":"string","format":"date"},"u":{"type":"string","format":"uri"}}}}}]`
	for name, c := range map[string]struct {
		formats   gateway.Formats
		date, uri string
	}{
		"default": {"", "valid", "valid"}, "off": {gateway.IgnoreFormats, "valid", "valid"},
		"safe": {gateway.SafeFormats, "invalid", "valid"}, "all": {gateway.AllFormats, "invalid", "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for arguments, want := range map[string]string{`{\"d\":\"tomorrow\"}`: c.date, `{\"u\":\"a.pdf\"}`: c.uri} {
				to, _ := upstream(t, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"`+arguments+`"}}]},"finish_reason":"tool_calls"}]}`)
				url := serve(t, gateway.Config{Settings: gateway.Settings{Formats: c.formats, Mode: gateway.Repair}, Upstreams: []gateway.Upstream{{URL: to}}})
				_, _, header := post(t, url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"?"}],`+tools+`}`)
				require.Equal(t, want, header.Get("X-Toolmend-Status"))
			}
		})
	}
	err := gateway.Config{Settings: gateway.Settings{Formats: "some"}, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}.Validate()
	require.ErrorContains(t, err, `formats: must be one of "all", "off", "safe", got "some"`)
}

// A key that differs in letter case only from a declared one is refused: the tool may be
// written in Go, which decodes it into the field of the declared one.
func TestKeysInAnotherLetterCase(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"sum":{"type":"integer"}}}}}]`
	for arguments, want := range map[string]string{
		`{\"sum\":5,\"other\":7}`: "valid", `{\"sum\":5,\"Sum\":7}`: "invalid", `{\"\\u017fum\":5}`: "invalid",
	} {
		t.Run(arguments, func(t *testing.T) {
			t.Parallel()
			to, _ := upstream(t, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"`+arguments+`"}}]},"finish_reason":"tool_calls"}]}`)
			url := serve(t, gateway.Config{Settings: gateway.Settings{Mode: gateway.Repair}, Upstreams: []gateway.Upstream{{URL: to}}})
			_, answer, header := post(t, url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"?"}],`+tools+`}`)
			require.Equal(t, want, header.Get("X-Toolmend-Status"), answer)
		})
	}
}
