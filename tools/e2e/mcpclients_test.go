package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/strict"
)

// agentCases are calls of the filesystem server.
var agentCases = []mcpCase{
	{"valid", "read_text_file", `{"path":"FILE","head":1}`, ""},
	{"array as a string", "read_multiple_files", `{"paths":"[\"FILE\"]"}`, ""},
	{"number as text", "read_text_file", `{"path":"FILE","head":"1"}`, ""},
	{"letter case", "read_text_file", `{"Path":"FILE"}`, ""},
	{"misnamed", "read_text_file", `{"file":"FILE"}`, "path"},
}

// mcpModel is a model that makes a call of a tool in each answer, and then ends.
type mcpModel struct {
	format strict.Format
	calls  []strict.Call

	mu      sync.Mutex
	asked   int
	results []string // of the calls, in JSON
}

// ServeHTTP answers a model call that offers tools with the next call, and any other
// with a word.
func (s *mcpModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req struct {
		Tools           []json.RawMessage
		Messages, Input json.RawMessage
	}
	if !s.format.Serves(r.URL.Path) || json.Unmarshal(body, &req) != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := strict.Answer{N: s.asked, Text: "done"}
	if len(req.Tools) > 0 {
		// The agents may begin before they have connected to the server. Such a call is made again.
		early := func(result string) bool {
			return strings.Contains(result, "No such tool available") || strings.Contains(result, "unsupported call")
		}
		s.results = slices.DeleteFunc(slices.Concat(resultsIn(req.Messages), resultsIn(req.Input)), early)
		if n := len(s.results); n < len(s.calls) {
			a.Calls = s.calls[n : n+1]
		}
	}
	s.asked++
	w.Header().Set("Content-Type", "text/event-stream")
	for _, f := range s.format.Frames(a) {
		// Codex names the server of a tool in a member of its own.
		_, _ = io.WriteString(w, strings.ReplaceAll(f.Text, `"name":"mcp__files/`, `"namespace":"mcp__files","name":"`))
	}
}

// resultsIn returns the results of tools in a history, in its order.
func resultsIn(history json.RawMessage) (out []string) {
	var v any
	_ = json.Unmarshal(history, &v)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			switch v["type"] {
			case "tool_result":
				out = append(out, text(v["content"]))
			case "function_call_output":
				out = append(out, text(v["output"]))
			default:
				walk(v["content"])
			}
		}
	}
	walk(v)
	return out
}

// TestMCPClients lets coding agents make calls with the mistakes of models, with the
// filesystem server directly and behind the proxy. No call may do worse behind it.
func TestMCPClients(t *testing.T) {
	m := prepare(t)
	fmt.Print("| client | fault | tool | directly | behind the proxy |\n|---|---|---|---|---|\n")
	for _, c := range agents[:2] { // Claude Code and Codex
		direct, behind := m.agentCells(t, c, false), m.agentCells(t, c, true)
		for i, k := range agentCases {
			fmt.Printf("| %s | %s | `%s` | %s | %s |\n", c.title, k.fault, k.tool, direct[i], behind[i])
			want := "runs"
			if k.key != "" {
				want = "error that names `" + k.key + "`"
			}
			require.Equal(t, want, behind[i], "%s, %s", c.title, k.fault)
		}
	}
}

// agentCells runs the cases by a coding agent.
func (m mcpTools) agentCells(t *testing.T, c client, behind bool) []string {
	temp, root := t.TempDir(), os.Getenv("AGENTS")
	_, err := installed(t, root, c.pkg)
	require.NoError(t, err)
	p := place{root: root, pkg: c.pkg, home: filepath.Join(temp, "home"), dir: filepath.Join(temp, "work")}
	s := &mcpModel{format: c.format}
	for _, k := range agentCases {
		tool := "mcp__files__" + k.tool
		if c.name == "codex" {
			tool = "mcp__files/" + k.tool
		}
		s.calls = append(s.calls, strict.Call{Name: tool, Arguments: strings.ReplaceAll(k.args, "FILE", filepath.Join(p.dir, file))})
	}
	provider := httptest.NewServer(s)
	defer provider.Close()
	p.url = provider.URL
	server := []string{m.node, filepath.Join(m.root, "npm", "node_modules", "@modelcontextprotocol", "server-filesystem", "dist", "index.js"), p.dir}
	if behind {
		server = append([]string{m.toolmend, "mcp", "--"}, server...)
	}
	command := c.command(p)
	if c.name == "codex" {
		command.files[filepath.Join(".codex", "config.toml")] += fmt.Sprintf("[mcp_servers.files]\ncommand = %s\nargs = %s\n", text(server[0]), text(server[1:]))
	} else {
		config := text(map[string]any{"mcpServers": map[string]any{"files": map[string]any{"command": server[0], "args": server[1:]}}})
		command.args = append(command.args, "--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__files")
	}
	require.NoError(t, p.set(command))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := execute(ctx, p, command)
	require.NoError(t, err)
	require.Len(t, s.results, len(agentCases), "%s: %s", c.title, out.text)
	var cells []string
	for i, result := range s.results {
		t.Logf("%s behind=%v %s: %.300s", c.title, behind, agentCases[i].fault, result)
		switch key := agentCases[i].key; {
		case strings.Contains(result, secret):
			cells = append(cells, "runs")
		case key != "" && strings.Contains(result, key):
			cells = append(cells, "error that names `"+key+"`")
		default:
			cells = append(cells, "error")
		}
	}
	return cells
}
