package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/strict"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// ask is a model call of a format, as small as it can be.
type ask struct {
	format strict.Format
	codec  wire.Codec
	path   string
	body   string // TOOL, SCHEMA and STREAM stand for what their names say
}

func asks() []ask {
	const function = `{"type":"function","function":{"name":"read","parameters":SCHEMA}}`
	return []ask{
		{strict.Anthropic, wire.Anthropic(), "/v1/messages", `{"model":"m","max_tokens":9,"stream":STREAM,"messages":[{"role":"user","content":"Hi."}],"tools":[{"name":"read","input_schema":SCHEMA}]}`},
		{strict.Chat, wire.OpenAIChat(), "/v1/chat/completions", `{"model":"m","stream":STREAM,"messages":[{"role":"user","content":"Hi."}],"tools":[` + function + `]}`},
		{strict.Responses, wire.OpenAIResponses(), "/v1/responses", `{"model":"m","stream":STREAM,"input":"Hi.","tools":[{"type":"function", "name": "read","parameters":SCHEMA}]}`},
		{strict.Gemini, wire.Gemini(), "/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Hi."}]}],"tools":[{"functionDeclarations":[{"name":"read","parametersJsonSchema":SCHEMA}]}]}`},
		{strict.Ollama, wire.Ollama(), "/api/chat", `{"model":"m","stream":STREAM,"messages":[{"role":"user","content":"Hi."}],"tools":[` + function + `]}`},
	}
}

func (a ask) send(t *testing.T, address string, stream bool) (*http.Response, error) {
	const schema = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	path, streams := a.path, "false"
	if stream {
		path, streams = strings.Replace(path, ":generateContent", ":streamGenerateContent?alt=sse", 1), "true"
	}
	body := strings.NewReplacer("SCHEMA", schema, "STREAM", streams).Replace(a.body)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

func name(s string, stream bool) string {
	if stream {
		return s + "/streamed"
	}
	return s + "/whole"
}

// TestRunsOfOneCall sends one model call in each format through each front. The upstream
// gets what the client sent, byte for byte, with turns behind it.
func TestRunsOfOneCall(t *testing.T) {
	t.Parallel()
	for _, a := range asks() {
		for _, fr := range fronts {
			for _, stream := range []bool{false, true} {
				t.Run(name(a.format.Name+"/"+fr.name, stream), func(t *testing.T) {
					t.Parallel()
					seen := &meter{format: a.format, tool: "read"}
					up := &upstream{
						format: a.format, task: task{tool: "read", good: `{"path":"FILE"}`, bad: `{"wrong":"FILE"}`}, say: scenarios[0].say, sent: seen.request,
					}
					provider := httptest.NewServer(up)
					t.Cleanup(provider.Close)
					at, err := url.Parse(provider.URL)
					require.NoError(t, err)
					seen.next, err = fr.open(at, "")
					require.NoError(t, err)
					server := httptest.NewServer(seen)
					t.Cleanup(server.Close)

					resp, err := a.send(t, server.URL, stream)
					require.NoError(t, err)
					defer resp.Body.Close()
					body, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Equal(t, 1, seen.attempts)
					require.Empty(t, up.refused)
					require.Zero(t, up.changed)
					got, err := a.codec.DecodeResponse(&middleware.Request{}, body)
					require.NoError(t, err)
					require.Len(t, got.Message.ToolCalls, 1)
					if fr.validates {
						require.Equal(t, 2, up.calls)
						require.JSONEq(t, up.task.read(0).Arguments, got.Message.ToolCalls[0].Arguments)
					} else {
						require.Equal(t, 1, up.calls)
						require.JSONEq(t, up.task.misnamed(0).Arguments, got.Message.ToolCalls[0].Arguments)
					}
				})
			}
		}
	}
}

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, a := range asks() {
		for _, stream := range []bool{false, true} {
			t.Run(name(a.format.Name, stream), func(t *testing.T) {
				t.Parallel()
				up := &upstream{format: a.format, task: task{tool: "read", good: `{"path":"FILE"}`}, sent: (&meter{}).request, say: func(t task, _ int, _ bool) answer {
					return answer{text: opening, calls: []strict.Call{t.read(0)}, broke: true}
				}}
				provider := httptest.NewServer(up)
				t.Cleanup(provider.Close)
				resp, err := a.send(t, provider.URL, stream)
				require.NoError(t, err)
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				require.NotEmpty(t, body)
			})
		}
	}
}

// A request that the provider's rules refuse gets their words, and is counted. A client
// that changes a turn that it has sent before is noticed, but for marks of the cache.
func TestStrictUpstream(t *testing.T) {
	t.Parallel()
	seen := &meter{format: strict.Chat, tool: "read"}
	up := &upstream{format: strict.Chat, task: task{tool: "read"}, sent: seen.request, say: func(task, int, bool) answer { return answer{text: done} }}
	seen.next = up
	server := httptest.NewServer(seen)
	t.Cleanup(server.Close)
	for _, c := range []struct {
		messages      string
		status        int
		breaks, turns int
	}{
		{`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`, http.StatusOK, 0, 1},
		{`{"role":"user","content":"a"},{"role":"user","content":"b"}`, http.StatusOK, 0, 2},
		{`{"role":"user","content":"x"},{"role":"user","content":"b"}`, http.StatusOK, 1, 2},
		{`{"role":"user","content":"x"},{"role":"user","content":"b"},{"role":"tool","tool_call_id":"c","content":"r"}`, http.StatusBadRequest, 1, 3},
	} {
		resp, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"tools":[{"name":"read"}],"messages":[`+c.messages+`]}`))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.status, resp.StatusCode)
		require.Equal(t, c.breaks, seen.breaks)
		require.Len(t, seen.history, c.turns)
	}
	require.Len(t, up.refused, 1)
	require.Contains(t, seen.message(), "must be a response to a preceeding message")
}

// TestExecute: a program that waits for ever is killed with its children, and
// finds nothing in its home and its environment but what it was given.
func TestExecute(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	p := place{home: temp + "/home", dir: temp + "/work"}
	c := command{
		args: []string{"sh", "-c", `env; ls -A "$HOME"; sleep 600 & echo child $!`},
		env:  []string{"MINE=1"}, files: map[string]string{"a/b": "c"},
	}
	require.NoError(t, p.set(c))
	began := time.Now()
	out, err := execute(t.Context(), p, c)
	require.NoError(t, err)
	require.Less(t, time.Since(began), limit)
	require.Contains(t, out.text, "MINE=1\n")
	require.NotContains(t, out.text, "GO")
	require.Contains(t, out.text, "\na\nchild ")
	require.False(t, out.expired)
	require.Zero(t, out.code)
}
