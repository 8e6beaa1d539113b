package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// TestPathsOfFormats: the calls of every path that clients use for a format are validated.
func TestPathsOfFormats(t *testing.T) {
	t.Parallel()
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Raise})
	for path, s := range map[string]speech{
		"/messages": anthropic(), "/v2/messages": anthropic(), "/v1/agents/completions": chat(), "/chat/completions": chat(), "/responses": responses(), "/v1/responses/compact": responses(),
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				form, kind := s.whole, "application/json"
				if stream {
					form, kind = s.stream, s.kind
				}
				sent := func(arguments string) (*http.Response, string) {
					u := serve(t, answer(http.StatusOK, form("hi", arguments), "Content-Type", kind))
					resp, err := http.Post(proxy(t, transport.New(transport.Options{}, raise), u.URL)+path, "application/json", strings.NewReader(s.request(stream)))
					require.NoError(t, err)
					return resp, read(t, resp)
				}
				resp, got := sent(evil)
				require.NotContains(t, got, "evil")
				require.Equal(t, "invalid_tool_call", resp.Header.Get("X-Toolmend-Error")+resp.Trailer.Get("X-Toolmend-Error"), got)
				resp, got = sent(`{"n":1}`)
				require.Equal(t, form("hi", `{"n":1}`), got)
				require.Equal(t, "valid", resp.Header.Get("X-Toolmend-Status")+resp.Trailer.Get("X-Toolmend-Status"))
			}
		})
	}
	t.Run("a compacted history", func(t *testing.T) {
		t.Parallel()
		s := responses()
		const body = `{"id":"resp_1","object":"response.compaction","created_at":1,"output":[{"id":"m1","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"1?"}]},{"id":"cmp_1","type":"compaction","encrypted_content":"gAAA"}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}`
		u := serve(t, answer(http.StatusOK, body))
		resp, err := http.Post(proxy(t, transport.New(transport.Options{}, raise), u.URL)+"/v1/responses/compact", "application/json", strings.NewReader(s.request(false)))
		require.NoError(t, err)
		require.Equal(t, body, read(t, resp))
		require.Empty(t, resp.Header.Get("X-Toolmend-Status"))
	})
}

// TestToolsOnUnknownPaths: the calls of a response to a request that offers tools on another
// path are not validated. It is marked, or refused.
func TestToolsOnUnknownPaths(t *testing.T) {
	t.Parallel()
	s := gemini()
	envelope := `{"model":"m","project":"p","request":` + s.request(false) + `}`
	answered := `{"response":` + s.whole("hi", evil) + `}`
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		marked             bool
	}{
		"Gemini CLI with a login":         {"POST", "/v1internal:generateContent", envelope, nil, true},
		"Gemini CLI with a login, stream": {"POST", "/v1internal:streamGenerateContent?alt=sse", envelope, nil, true},
		"interactions":                    {"POST", "/v1beta/interactions", `{"model":"m","input":"hi","tools" : [ {"type":"function","name":"add"}]}`, nil, true},
		"conversations of Mistral":        {"POST", "/v1/conversations", `{"inputs":"hi","tools":[{"type":"function"}]}`, nil, true},
		"Bedrock Converse":                {"POST", "/model/m/converse", `{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"add"}}]}}`, nil, true},
		"a path that is not clean":        {"POST", "/v1/chat/completions%00", chat().request(false), nil, true},
		"no kind":                         {"POST", "/v1/runs", `{"tools":[{}]}`, []string{"Content-Type", ""}, true},
		"no tools":                        {"POST", "/v1internal:generateContent", `{"request":{"contents":[]}}`, nil, false},
		"an empty list":                   {"POST", "/v1beta/interactions", `{"tools":[],"input":"hi"}`, nil, false},
		"a capability":                    {"POST", "/mcp", `{"params":{"capabilities":{"tools":{}}}}`, nil, false},
		"quoted":                          {"POST", "/v1/logs", `{"text":"{\"tools\":[{\"name\":1}]}"}`, nil, false},
		"messages of a thread":            {"POST", "/v1/threads/t/messages", `{"role":"user","content":"hi"}`, nil, false},
		"token counts":                    {"POST", "/v1/messages/count_tokens?beta=true", anthropic().request(false), nil, false},
		"Gemini's token counts":           {"POST", "/v1beta/models/m:countTokens", s.request(false), nil, false},
		"an upload":                       {"POST", "/v1/files", `{"tools":[{}]}`, []string{"Content-Type", "multipart/form-data; boundary=x"}, false},
		"another method":                  {"PUT", "/v1/assistants", `{"tools":[{}]}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shapes(t, func(t *testing.T, with func(*transport.Transport, *upstream) (doer, string)) {
				send := func(o transport.Options, u *upstream) (*http.Response, string, *transport.Call) {
					do, at := with(transport.New(o, never(t)), u)
					ctx, call := transport.Watch(t.Context())
					req, err := http.NewRequestWithContext(ctx, c.method, at+c.path, strings.NewReader(c.body))
					require.NoError(t, err)
					req.Header.Set("Content-Type", "application/json")
					for i := 0; i < len(c.header); i += 2 {
						req.Header.Set(c.header[i], c.header[i+1])
					}
					resp, err := do(req)
					require.NoError(t, err)
					return resp, read(t, resp), call
				}
				u := serve(t, answer(http.StatusOK, answered))
				resp, got, call := send(transport.Options{}, u)
				require.Equal(t, answered, got)
				require.Equal(t, c.body, string(u.body[0]))
				want := ""
				if c.marked {
					want = "unchecked"
				}
				require.Equal(t, want, resp.Header.Get("X-Toolmend-Status"))
				if !strings.HasSuffix(t.Name(), "handler") { // whose request has a context of its own
					require.Equal(t, want, call.Status())
				}
				if !c.marked {
					resp, got, _ = send(transport.Options{RejectUnknownPaths: true}, serve(t, answer(http.StatusOK, answered)))
					require.Equal(t, answered, got)
					require.Equal(t, http.StatusOK, resp.StatusCode)
				}
			})
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		var heard []byte
		base := doer(func(r *http.Request) (*http.Response, error) {
			var err error
			heard, err = io.ReadAll(r.Body)
			return nil, err
		})
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/v1internal:generateContent", strings.NewReader(envelope))
		require.NoError(t, err)
		resp, err := transport.New(transport.Options{RejectUnknownPaths: true}, never(t)).RoundTripper(base).RoundTrip(ask)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
		require.Equal(t, "unknown_path", resp.Header.Get("X-Toolmend-Error"))
		require.Contains(t, read(t, resp), "RejectUnknownPaths")
		require.Empty(t, heard, "the provider does not get the request")
	})
	t.Run("a refusal of the provider", func(t *testing.T) {
		t.Parallel()
		u := serve(t, answer(http.StatusForbidden, `{"error":{}}`))
		resp, err := http.Post(proxy(t, toys(), u.URL)+"/v1beta/interactions", "application/json", strings.NewReader(`{"tools":[{}]}`))
		require.NoError(t, err)
		require.Equal(t, `{"error":{}}`, read(t, resp))
		require.Empty(t, resp.Header.Get("X-Toolmend-Status"))
	})
}

// TestCustomCallOfAFunction: free text is not validated, whatever tool has its name, and its
// message says so.
func TestCustomCallOfAFunction(t *testing.T) {
	t.Parallel()
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Raise})
	for name, c := range map[string]struct {
		s    speech
		path string
		body string
	}{
		"chat":      {chat(), "/v1/chat/completions", `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"add","input":"evil"}}]},"finish_reason":"tool_calls"}]}`},
		"responses": {responses(), "/v1/responses", `{"id":"x","object":"response","status":"completed","model":"m","output":[{"id":"ct1","type":"custom_tool_call","status":"completed","call_id":"c1","name":"add","input":"evil"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, answer(http.StatusOK, c.body))
			resp, err := http.Post(proxy(t, transport.New(transport.Options{}, raise), u.URL)+c.path, "application/json", strings.NewReader(c.s.request(false)))
			require.NoError(t, err)
			require.Contains(t, read(t, resp), `"input":"evil"`)
			require.Equal(t, "unchecked", resp.Header.Get("X-Toolmend-Status"))
		})
	}
}
