package view

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// viewed is the page of a recording.
type viewed struct {
	base   string
	client *http.Client // has the cookie
	out    string
	stop   context.CancelFunc
	code   chan int
}

// startView starts `toolmend view`. It stops with the test.
func startView(t *testing.T, stdin string, args ...string) *viewed {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	v := &viewed{client: &http.Client{}, stop: stop, code: make(chan int, 1)}
	stdout, stderr := clitest.NewLines(), clitest.NewLines()
	go func() {
		v.code <- run(ctx, append([]string{"view"}, args...), strings.NewReader(stdin), stdout, stderr)
		close(v.code)
	}()
	t.Cleanup(func() {
		stop()
		<-v.code
	})
	v.out = stdout.Await(t, "Ctrl-C", 1)
	at := regexp.MustCompile(`http://[0-9.:]+/tools\?token=[a-z2-7]{26}`).FindString(v.out)
	require.NotEmpty(t, at, v.out)
	v.base, _, _ = strings.Cut(at, "/tools?")
	v.client.Jar, _ = cookiejar.New(nil)
	require.Contains(t, clitest.Get(t, v.client, at), "<!doctype html>")
	return v
}

// json reads the JSON twin of a path.
func (v *viewed) json(t *testing.T, path string) (all map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(clitest.Get(t, v.client, v.base+path)), &all))
	return all
}

// The page of a log shows the turns that check reads, and counts them all.
func TestView(t *testing.T) {
	t.Parallel()
	const turn = `{"id":"t%d","model":"m","tool_calls":[{"id":"c","name":"add","arguments":%q}],"tools":[{"name":"add","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}` + "\n"
	var text strings.Builder
	for i, arguments := range []string{`{"n":1}`, `{"n":"2"}`, `{"m":1}`, `{"n":3}`, `{"n":[]}`} {
		fmt.Fprintf(&text, turn, i, arguments)
	}
	log := filepath.Join(t.TempDir(), "calls.jsonl")
	require.NoError(t, os.WriteFile(log, []byte(text.String()), 0o600))
	checked := exec(t, t.TempDir(), "", "check", "-json", log)
	lines := strings.Split(strings.TrimSpace(checked.Out), "\n")
	var want struct {
		Calls, Mended int
		AsSent        struct{ Invalid int } `json:"as_sent"`
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &want))
	require.Equal(t, 3, want.AsSent.Invalid)

	v := startView(t, "", log)
	require.Contains(t, v.out, "toolmend shows calls.jsonl at")
	total := v.json(t, "/tools?format=json")["total"].(map[string]any)
	require.EqualValues(t, want.Calls, total["calls"])
	require.EqualValues(t, want.AsSent.Invalid, total["invalid"])
	require.EqualValues(t, want.Mended, total["mended"])
	list := v.json(t, "/?format=json")["steps"].([]any)
	require.Len(t, list, 5)
	for _, s := range list {
		step := v.json(t, fmt.Sprintf("/steps/%v?format=json", s.(map[string]any)["number"]))
		require.NotEmpty(t, step["attempts"])
	}
	require.NotContains(t, clitest.Get(t, v.client, v.base+"/"), "live.js", "nothing more comes")
	require.Contains(t, clitest.Get(t, &http.Client{}, v.base+"/"), "Open the page by the address with the token")

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.base+"/", nil)
	require.NoError(t, err)
	r.Host = "evil.example"
	resp, err := v.client.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMisdirectedRequest, resp.StatusCode)
	require.Contains(t, clitest.Get(t, v.client, v.base+"/tools"), "<h2>Hints</h2>", "what would help")
	v.stop()
	require.Equal(t, cli.ExitOK, <-v.code)
}

// What the gateway records is one step with its attempts.
func TestViewOfARecord(t *testing.T) {
	t.Parallel()
	line := `{"id":"7-1/%d","time":"2026-11-22T10:00:00Z","source":"up","model":"m","format":"openai-chat","path":"/v1/chat/completions","mode":"enforce","attempt":%[1]d,"attempts":2,"final":%t,"status":"valid","finish_reason":"tool_calls","duration_ms":5,"usage":{},"tool_calls":[{"id":"c","name":"add","arguments":%q}],"tools":[{"name":"add","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}` + "\n"
	v := startView(t, fmt.Sprintf(line, 1, false, `{"m":1}`)+fmt.Sprintf(line, 2, true, `{"n":1}`), "-")
	require.Contains(t, v.out, "standard input")
	list := v.json(t, "/?format=json")["steps"].([]any)
	require.Len(t, list, 1)
	require.Equal(t, "re-asked", list[0].(map[string]any)["outcome"])
	require.EqualValues(t, 2, list[0].(map[string]any)["attempts"])
}

// The page of a tool says what would help with it, or why nothing would.
func TestViewHints(t *testing.T) {
	t.Parallel()
	line := `{"model":"m","tool_calls":[{"id":"c","name":%q,"arguments":%q}],"tools":[` +
		`{"name":"cancel","parameters":{"type":"object","properties":{"reason":{"type":"string","enum":["no longer needed","ordered by mistake"]}},"required":["reason"]}},` +
		`{"name":"list","parameters":{"type":"object","properties":{"limit":{"type":"integer","default":10}},"required":["limit"]}}]}` + "\n"
	v := startView(t, fmt.Sprintf(line, "cancel", `{"reason":"change of plan"}`)+fmt.Sprintf(line, "list", `{}`)+fmt.Sprintf(line, "cancel", `{"reason":"no longer needed"}`), "-")
	cancel := clitest.Get(t, v.client, v.base+"/tools?tool=cancel")
	require.Contains(t, cancel, "What would help with cancel")
	require.Contains(t, cancel, "several allowed values are possible")
	require.Contains(t, cancel, "change of plan", "the value that was sent")
	require.NotContains(t, cancel, "fill_defaults")
	list := clitest.Get(t, v.client, v.base+"/tools?tool=list")
	require.Contains(t, list, "turn on fill_defaults for tool list")
	require.NotContains(t, list, "several allowed values")
	require.Contains(t, clitest.Get(t, v.client, v.base+"/steps/1"), "several allowed values are possible")
	require.NotContains(t, clitest.Get(t, v.client, v.base+"/steps/3"), "What would help")
}

func TestViewErrors(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	one := filepath.Join(t.TempDir(), "one.jsonl")
	require.NoError(t, os.WriteFile(one, []byte(`{"model":"m","tool_calls":[{"name":"add","arguments":"{}"}],"tools":[{"name":"add"}]}`), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no file":      {nil, `no FILE; "-" reads standard input`},
		"missing":      {[]string{"missing.jsonl"}, "toolmend view: open missing.jsonl"},
		"public":       {[]string{"-listen", "0.0.0.0:80", empty}, "must be an address that only this machine reaches"},
		"no port":      {[]string{"-listen", "127.0.0.1", empty}, "must be an address that only this machine reaches"},
		"unknown flag": {[]string{"-strip", "all", empty}, "strip"},
		"empty":        {[]string{empty}, "no tool call was found"},
		"no match":     {[]string{"-tool", "nosuchtool", one}, "no tool call was found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := exec(t, t.TempDir(), "", append([]string{"view"}, c.args...)...)
			require.Equal(t, cli.ExitFailed, got.Code)
			require.Contains(t, got.ErrOut, c.want)
		})
	}
}
