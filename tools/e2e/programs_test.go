package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/test/strict"
)

// sdkPrograms are programs that name no address, with the variable that has it, and what the SDK does
// about a limit of its client.
var sdkPrograms = []struct {
	client   string // of the table sdks
	variable string
	path     string // behind the address of the provider
	ignores  bool   // the SDK reads no variable
	limited  string // the error of the SDK for status 429
	waits    bool   // before a retry, for as long as retry-after says
}{
	{"openai-chat", "OPENAI_BASE_URL", "/v1", false, "openai.RateLimitError", true},
	{"openai-responses-stream", "OPENAI_BASE_URL", "/v1", false, "openai.RateLimitError", true},
	{"openai-js-chat", "OPENAI_BASE_URL", "/v1", false, "error RateLimitError 429", true},
	{"openai-js-responses", "OPENAI_BASE_URL", "/v1", false, "error RateLimitError 429", true},
	{"anthropic-messages-stream", "ANTHROPIC_BASE_URL", "", false, "anthropic.RateLimitError", true},
	{"anthropic-js", "ANTHROPIC_BASE_URL", "", false, "error RateLimitError 429", true},
	{"google-genai", "GOOGLE_GEMINI_BASE_URL", "", false, "google.genai.errors.ClientError: 429", false},
	{"genai-js", "GOOGLE_GEMINI_BASE_URL", "", false, "error ApiError 429", false},
	{"ollama", "OLLAMA_HOST", "", false, "ollama._types.ResponseError", false},
	{"ollama-js", "OLLAMA_HOST", "", true, "error ResponseError 429", false},
	{"ai-sdk-responses", "OPENAI_BASE_URL", "/v1", false, "error AI_APICallError 429", true},
	{"ai-sdk-messages", "ANTHROPIC_BASE_URL", "/v1", false, "error AI_APICallError 429", true},
}

// sdk returns an entry of the table sdks.
func sdk(name string) client {
	return sdks[slices.IndexFunc(sdks, func(c client) bool { return c.name == name })]
}

// unaddressed is the command of a program that names no address, with more variables.
func unaddressed(c client, p place, env ...string) command {
	p.url = ""
	of := c.command(p)
	of.env = append(of.env, env...)
	return of
}

// repairedThenReasked is a model whose first call has a key in another letter case, and whose second
// one a key that the tool does not have, until it is asked again.
func repairedThenReasked(t task, n int, _ bool) answer {
	switch n {
	case 0:
		return answer{calls: []strict.Call{{Name: t.tool, Arguments: t.fill(`{"Path":"FILE"}`, 0)}}}
	case 1:
		return answer{calls: []strict.Call{t.misnamed(1)}}
	case 2:
		return answer{calls: []strict.Call{t.read(1)}}
	}
	return answer{text: done}
}

// TestRunPrograms starts a program of each official SDK with `toolmend run --`. The program names no
// address: the provider's is in the variable that the SDK reads. A call is repaired and another one
// is re-asked, and the line at the end counts both.
func TestRunPrograms(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	toolmend := built(t)
	for _, s := range sdkPrograms {
		t.Run(s.client, func(t *testing.T) {
			t.Parallel()
			c := sdk(s.client)
			v, err := installed(t, root, c.pkg)
			require.NoError(t, err)
			temp := t.TempDir()
			p := place{root: root, pkg: c.pkg, home: filepath.Join(temp, "home"), dir: filepath.Join(temp, "work")}
			up := &upstream{format: c.format, task: c.task(p), say: repairedThenReasked, sent: func(string) []byte { return nil }}
			provider := httptest.NewServer(up)
			defer provider.Close()
			command := unaddressed(c, p, s.variable+"="+provider.URL+s.path)
			command.args = append([]string{toolmend, "run", "--"}, command.args...)
			require.NoError(t, p.set(command))
			out, err := execute(t.Context(), p, command)
			require.NoError(t, err)
			t.Logf("| %s | %s | `%s`%s |", c.title, v, s.variable, map[bool]string{true: " is not read"}[s.ignores])
			up.mu.Lock()
			defer up.mu.Unlock()
			require.Empty(t, up.refused, out.text)
			if s.ignores {
				require.Zero(t, up.calls, out.text)
				require.Contains(t, out.text, "toolmend: no request reached the gateway")
				return
			}
			require.Equal(t, endedDone, end(out), out.text)
			require.Zero(t, out.code, out.text)
			require.Equal(t, []string{fileName(0), fileName(1)}, filesRead.FindAllString(out.text, -1), out.text)
			require.Equal(t, 4, up.calls)
			require.Contains(t, out.text, "toolmend: 3 model requests, 2 tool calls; requests: 1 repaired, 1 re-asked, 0 still invalid, 0 failed; log: ")
		})
	}
}

// filesRead are the files that a program has read, by what it prints about its calls.
var filesRead = regexp.MustCompile(`note[-0-9]*\.txt`)

// TestLimitedPrograms lets a program of each official SDK exceed a limit of its client in the gateway:
// its second request. Without retries the SDK raises its own error for that, with the gateway's text.
// With retries, most of them wait for as long as retry-after says.
func TestLimitedPrograms(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	const key = "key-of-the-team-0001"
	keys := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(keys, []byte(key), 0o600))
	for _, s := range sdkPrograms {
		for _, retries := range []string{"0", "2"} {
			t.Run(s.client+"/"+retries, func(t *testing.T) {
				t.Parallel()
				c := sdk(s.client)
				_, err := installed(t, root, c.pkg)
				require.NoError(t, err)
				temp := t.TempDir()
				p := place{root: root, pkg: c.pkg, home: filepath.Join(temp, "home"), dir: filepath.Join(temp, "work")}
				up := &upstream{format: c.format, task: c.task(p), say: silent, sent: func(string) []byte { return nil }}
				provider := httptest.NewServer(up)
				defer provider.Close()
				g, err := gateway.New(gateway.Config{
					Access: gateway.Access{KeyHeaderOnly: true}, Upstreams: []gateway.Upstream{{URL: provider.URL}},
					Clients: []gateway.Client{{Name: "team", KeyFile: keys, ClientLimits: gateway.ClientLimits{RequestsPerMinute: 1}}},
				}, gateway.Options{})
				require.NoError(t, err)
				defer g.Close()
				seen := asked{next: g, key: key}
				server := httptest.NewServer(&seen)
				defer server.Close()
				command := unaddressed(c, p, s.variable+"="+server.URL+s.path, "RETRIES="+retries)
				if s.ignores {
					p.url = server.URL
					command = c.command(p)
				}
				require.NoError(t, p.set(command))
				out, err := execute(t.Context(), p, command)
				require.NoError(t, err)
				seen.mu.Lock()
				defer seen.mu.Unlock()
				t.Logf("%s, %s retries: %s", c.title, retries, seen.text())
				if retries != "0" && s.waits {
					require.Equal(t, endedDone, end(out), out.text)
					require.Len(t, seen.at, 3, seen.text())
					return
				}
				require.Equal(t, endedError, end(out), out.text)
				require.NotZero(t, out.code)
				require.Contains(t, out.text, s.limited)
				require.Contains(t, letters(out.text), letters(`the client "team" has used what requests_per_minute = 1 allows; try again in`))
			})
		}
	}
}

// asked notes the requests of a program, and gives them the key of the client.
type asked struct {
	next http.Handler
	key  string

	mu    sync.Mutex
	at    []time.Time
	codes []int
	after []string // the headers retry-after
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Set("X-Toolmend-Key", a.key)
	at, code := time.Now(), &status{ResponseWriter: w, code: http.StatusOK}
	a.next.ServeHTTP(code, r)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at, a.codes, a.after = append(a.at, at), append(a.codes, code.code), append(a.after, w.Header().Get("Retry-After"))
}

// text returns the requests, each with its second, status and retry-after.
func (a *asked) text() string {
	var b bytes.Buffer
	for i, at := range a.at {
		fmt.Fprintf(&b, "%.1fs %d %s; ", at.Sub(a.at[0]).Seconds(), a.codes[i], a.after[i])
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// status notes the status of a response.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int)        { s.code = code; s.ResponseWriter.WriteHeader(code) }
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }
