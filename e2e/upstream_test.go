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

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

var codecs = map[string]wire.Codec{
	anthropic.name: wire.Anthropic(), chat.name: wire.OpenAIChat(), responses.name: wire.OpenAIResponses(),
}

// ask is a model call in each format, as small as it can be.
var ask = map[string]string{
	anthropic.name: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi."}],
		"tools":[{"name":"read","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]`,
	chat.name: `{"model":"m","messages":[{"role":"user","content":"Hi."}],
		"tools":[{"type":"function","function": {"name": "read","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]`,
	responses.name: `{"model":"m","input":"Hi.",
		"tools":[{"type":"function","name":"read","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]`,
}

func name(s string, stream bool) string {
	if stream {
		return s + "/streamed"
	}
	return s + "/whole"
}

func send(t *testing.T, address string, f format, stream bool) (*http.Response, error) {
	body := ask[f.name] + "}"
	if stream {
		body = ask[f.name] + `,"stream":true}`
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1"+f.path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// TestAnswers reads what the upstream says in each format with Toolmend's
// codecs.
func TestAnswers(t *testing.T) {
	t.Parallel()
	want := answer{text: opening, calls: []call{{"read", `{"path":"a \"quoted\" file"}`}, {"read", `{"path":"b"}`}}}
	for _, f := range []format{anthropic, chat, responses} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			codec := codecs[f.name]
			var stream strings.Builder
			deltas := 0
			for _, fr := range f.frames(want, "a1") {
				stream.WriteString(fr.text)
				if fr.args {
					deltas++
				}
			}
			require.Equal(t, 2*pieces, deltas)
			s := codec.NewStream(&middleware.Request{}, nil)
			_, err := s.Write([]byte(stream.String()))
			require.NoError(t, err)
			streamed, err := s.Close()
			require.NoError(t, err)
			whole, err := codec.DecodeResponse(&middleware.Request{}, []byte(f.whole(want, "a1")))
			require.NoError(t, err)
			for _, r := range []*middleware.Response{streamed, whole} {
				require.Equal(t, want.text, r.Message.Text())
				require.Len(t, r.Message.ToolCalls, len(want.calls))
				for i, c := range want.calls {
					require.Equal(t, c.name, r.Message.ToolCalls[i].Name)
					require.JSONEq(t, c.args, r.Message.ToolCalls[i].Arguments)
				}
			}
		})
	}
}

// TestRunsOfOneCall sends one model call in each format through each front.
func TestRunsOfOneCall(t *testing.T) {
	t.Parallel()
	for _, f := range []format{anthropic, chat, responses} {
		for _, fr := range fronts {
			for _, stream := range []bool{false, true} {
				t.Run(name(f.name+"/"+fr.name, stream), func(t *testing.T) {
					t.Parallel()
					up := &upstream{
						format: f, task: task{good: call{"read", `{"path":"a"}`}, bad: call{"read", `{"wrong":"a"}`}}, say: scenarios[0].say,
					}
					provider := httptest.NewServer(up)
					t.Cleanup(provider.Close)
					at, err := url.Parse(provider.URL)
					require.NoError(t, err)
					next, err := fr.open(at)
					require.NoError(t, err)
					seen := &meter{next: next, format: f, tool: "read"}
					server := httptest.NewServer(seen)
					t.Cleanup(server.Close)

					resp, err := send(t, server.URL, f, stream)
					require.NoError(t, err)
					defer resp.Body.Close()
					body, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Equal(t, 1, seen.attempts)
					got, err := codecs[f.name].DecodeResponse(&middleware.Request{}, body)
					require.NoError(t, err)
					require.Len(t, got.Message.ToolCalls, 1)
					if fr.validates {
						require.Equal(t, 2, up.calls)
						require.JSONEq(t, up.task.good.args, got.Message.ToolCalls[0].Arguments)
					} else {
						require.Equal(t, 1, up.calls)
						require.JSONEq(t, up.task.bad.args, got.Message.ToolCalls[0].Arguments)
					}
				})
			}
		}
	}
}

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, f := range []format{anthropic, chat, responses} {
		for _, stream := range []bool{false, true} {
			t.Run(name(f.name, stream), func(t *testing.T) {
				t.Parallel()
				up := &upstream{format: f, task: task{good: call{"read", `{"path":"a"}`}}, say: func(t task, _ int) answer {
					return answer{text: opening, calls: []call{t.good}, broke: true}
				}}
				provider := httptest.NewServer(up)
				t.Cleanup(provider.Close)
				resp, err := send(t, provider.URL, f, stream)
				require.NoError(t, err)
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				require.Contains(t, string(body), opening)
			})
		}
	}
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

func TestReplaceTable(t *testing.T) {
	t.Parallel()
	got, err := replaceTable("before\n"+tableBegin+"\nold\n"+tableEnd+"\nafter\n", "new")
	require.NoError(t, err)
	require.Equal(t, "before\n"+tableBegin+"\nnew\n"+tableEnd+"\nafter\n", got)
	_, err = replaceTable("before", "new")
	require.Error(t, err)
}
