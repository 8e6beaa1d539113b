package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The versions that TestMCP uses. The suite is that of both eras of the protocol,
// and needs a newer Node than many systems have.
const (
	conformance = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
	newNode     = "22.23.3"
)

// mcpServer is a server of a registry, and calls that a model gets wrong. FILE is a
// file, DIR a git repository with it, and URL a page.
type mcpServer struct {
	name    string
	pkg     string // npm, or PyPI if it begins with "pip "
	command []string
	reached string // what an error of the tool itself says: it has no browser or no account here
	cases   []mcpCase
}

// mcpCase is a call with a fault. key is the property that an error must name.
type mcpCase struct{ fault, tool, args, key string }

var mcpServers = []mcpServer{
	{"filesystem", "@modelcontextprotocol/server-filesystem", []string{"node", "NPM/@modelcontextprotocol/server-filesystem/dist/index.js", "DIR"}, "", []mcpCase{
		{"valid", "read_text_file", `{"path":"FILE","head":1}`, ""},
		{"array as a string", "read_multiple_files", `{"paths":"[\"FILE\"]"}`, ""},
		{"number as text", "read_text_file", `{"path":"FILE","head":"1"}`, ""},
		{"letter case", "read_text_file", `{"Path":"FILE"}`, ""},
		{"misnamed", "read_text_file", `{"file":"FILE"}`, "path"},
	}},
	{"memory", "@modelcontextprotocol/server-memory", []string{"node", "NPM/@modelcontextprotocol/server-memory/dist/index.js"}, "", []mcpCase{
		{"valid", "open_nodes", `{"names":["a"]}`, ""},
		{"array as a string", "create_entities", `{"entities":"[{\"name\":\"a\",\"entityType\":\"t\",\"observations\":[]}]"}`, ""},
		{"letter case", "create_entities", `{"entities":[{"name":"b","entity_type":"t","observations":[]}]}`, ""},
		{"misnamed", "open_nodes", `{"nodes":["a"]}`, "names"},
	}},
	{"everything", "@modelcontextprotocol/server-everything", []string{"node", "NPM/@modelcontextprotocol/server-everything/dist/index.js", "stdio"}, "", []mcpCase{
		{"valid", "get-sum", `{"a":1,"b":2}`, ""},
		{"number as text", "get-sum", `{"a":"1","b":"2.5"}`, ""},
		{"letter case", "get-structured-content", `{"location":"new york"}`, ""},
		{"misnamed", "echo", `{"text":"hi"}`, "message"},
	}},
	{"git", "pip mcp-server-git", []string{"PY/mcp-server-git"}, "", []mcpCase{
		{"valid", "git_log", `{"repo_path":"DIR","max_count":1}`, ""},
		{"array as a string", "git_add", `{"repo_path":"DIR","files":"[\"FILE\"]"}`, ""},
		{"number as text", "git_log", `{"repo_path":"DIR","max_count":"1"}`, ""},
		{"letter case", "git_status", `{"repoPath":"DIR"}`, ""},
		{"misnamed", "git_show", `{"repo_path":"DIR","commit":"HEAD"}`, "revision"},
	}},
	{"fetch", "pip mcp-server-fetch", []string{"PY/mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"}, "", []mcpCase{
		{"valid", "fetch", `{"url":"URL"}`, ""},
		{"number as text", "fetch", `{"url":"URL","max_length":"100"}`, ""},
		{"letter case", "fetch", `{"URL":"URL"}`, ""},
		{"misnamed", "fetch", `{"uri":"URL"}`, "url"},
	}},
	{"time", "pip mcp-server-time", []string{"PY/mcp-server-time", "--local-timezone", "Etc/UTC"}, "", []mcpCase{
		{"valid", "get_current_time", `{"timezone":"Etc/UTC"}`, ""},
		{"letter case", "get_current_time", `{"timeZone":"Etc/UTC"}`, ""},
		{"misnamed", "get_current_time", `{"tz":"Etc/UTC"}`, "timezone"},
	}},
	{"sqlite", "pip mcp-server-sqlite", []string{"OLDPY/mcp-server-sqlite", "--db-path", "DIR/x.db"}, "", []mcpCase{
		{"valid", "read_query", `{"query":"SELECT 1"}`, ""},
		{"letter case", "read_query", `{"Query":"SELECT 1"}`, ""},
		{"misnamed", "read_query", `{"sql":"SELECT 1"}`, "query"},
	}},
	{"playwright", "@playwright/mcp", []string{"node", "NPM/@playwright/mcp/cli.js", "--headless", "--isolated", "--browser", "chromium"}, `(?i)executable|is not installed|browsertype|no open`, []mcpCase{
		{"valid", "browser_resize", `{"width":800,"height":600}`, ""},
		{"number as text", "browser_resize", `{"width":"800","height":"600"}`, ""},
		{"array as a string", "browser_fill_form", `{"fields":"[{\"element\":\"e\",\"target\":\"t\",\"name\":\"n\",\"type\":\"textbox\",\"value\":\"v\"}]"}`, ""},
		{"letter case", "browser_navigate", `{"Url":"URL"}`, ""},
		{"misnamed", "browser_navigate", `{"href":"URL"}`, "url"},
	}},
	{"notion", "@notionhq/notion-mcp-server", []string{"node", "NPM/@notionhq/notion-mcp-server/bin/cli.mjs"}, `"status":"?error|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|fetch failed|401|unauthorized`, []mcpCase{
		{"valid", "API-get-user", `{"user_id":"00000000-0000-0000-0000-000000000000"}`, ""},
		{"number as text", "API-post-search", `{"query":"a","page_size":"5"}`, ""},
		{"object as a string", "API-post-search", `{"filter":"{\"value\":\"page\",\"property\":\"object\"}"}`, ""},
		{"letter case", "API-get-user", `{"userId":"00000000-0000-0000-0000-000000000000"}`, ""},
		{"misnamed", "API-get-user", `{"user":"00000000-0000-0000-0000-000000000000"}`, "user_id"},
	}},
}

// mcpTools is what TestMCP needs besides the servers.
type mcpTools struct{ root, toolmend, everything, node string }

// prepare installs the servers and builds the programs.
func prepare(t *testing.T) mcpTools {
	t.Helper()
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make mcp` installs the servers and runs them")
	}
	root = filepath.Join(root, "mcp")
	npm := []string{"install", "--prefix", filepath.Join(root, "npm"), "--ignore-scripts", "--no-audit", "--no-fund", "--no-save",
		conformance, "@modelcontextprotocol/sdk", "mcp-proxy", nodePackage() + "@" + newNode}
	pips := []string{"mcp"}
	for _, s := range mcpServers {
		switch name, isPip := strings.CutPrefix(s.pkg, "pip "); {
		case s.name == "sqlite": // it needs the first version of the SDK
		case isPip:
			pips = append(pips, name)
		default:
			npm = append(npm, name)
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "npm"), 0o755))
	for _, args := range [][]string{
		append([]string{"npm"}, npm...),
		{"python3", "-m", "venv", filepath.Join(root, "py")}, append([]string{filepath.Join(root, "py", "bin", "pip"), "install", "-q"}, pips...),
		{"python3", "-m", "venv", filepath.Join(root, "oldpy")}, {filepath.Join(root, "oldpy", "bin", "pip"), "install", "-q", "mcp-server-sqlite", "mcp<2"},
		{"go", "build", "-C", "../../cmd/toolmend", "-o", filepath.Join(root, "toolmend"), "."},
		{"go", "build", "-C", "../../mcp", "-o", filepath.Join(root, "everything"), "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"},
	} {
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, "%s\n%s", strings.Join(args, " "), out)
	}
	return mcpTools{root, filepath.Join(root, "toolmend"), filepath.Join(root, "everything"), filepath.Join(root, "npm", "node_modules", nodePackage(), "bin", "node")}
}

// nodePackage is the npm package that holds Node for this machine.
func nodePackage() string {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return "node-" + runtime.GOOS + "-" + arch
}

type mcpAnswer struct {
	Error bool   `json:"error"`
	Text  string `json:"text"`
}

// TestMCP calls real servers with the mistakes of models, directly and behind the
// proxy, by the SDKs for Python and TypeScript. No call may do worse behind it.
func TestMCP(t *testing.T) {
	m := prepare(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body><p>hello</p></body></html>"))
	}))
	defer page.Close()
	var rows strings.Builder
	rows.WriteString("| server | fault | tool | directly | behind the proxy |\n|---|---|---|---|---|\n")
	for _, s := range mcpServers {
		t.Run(s.name, func(t *testing.T) { rows.WriteString(m.compare(t, s, page.URL)) })
	}
	fmt.Print(rows.String())
}

// compare returns the rows of a server.
func (m mcpTools) compare(t *testing.T, s mcpServer, url string) string {
	var cells [2][][]string // by front and client: a cell for each case
	for front := range 2 {
		for _, sdk := range []string{"python", "node"} {
			cells[front] = append(cells[front], m.cells(t, s, sdk, front == 1, url))
		}
	}
	var rows strings.Builder
	for i, c := range s.cases {
		direct, behind := cells[0][0][i], cells[1][0][i]
		require.Equal(t, direct, cells[0][1][i], "%s: the SDKs differ", c.fault)
		require.Equal(t, behind, cells[1][1][i], "%s: the SDKs differ", c.fault)
		if c.key == "" {
			require.Contains(t, []string{"runs", "reaches the tool"}, behind, c.fault)
		} else {
			require.Equal(t, "error that names `"+c.key+"`", behind, c.fault)
		}
		fmt.Fprintf(&rows, "| %s | %s | `%s` | %s | %s |\n", s.name, c.fault, c.tool, direct, behind)
	}
	return rows.String()
}

// cells runs the cases of a server by a client.
func (m mcpTools) cells(t *testing.T, s mcpServer, sdk string, behind bool, url string) []string {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("hello\n"), 0o644))
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "first"}} {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	fill := strings.NewReplacer("NPM", filepath.Join(m.root, "npm", "node_modules"), "OLDPY", filepath.Join(m.root, "oldpy", "bin"), "PY", filepath.Join(m.root, "py", "bin"),
		"FILE", file, "DIR", dir, `"URL":`, `"URL":`, `"URL"`, `"`+url+`"`)
	type oneCall struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	task := struct {
		Command string    `json:"command"`
		Args    []string  `json:"args"`
		Calls   []oneCall `json:"calls"`
	}{}
	command := []string{}
	for _, a := range s.command {
		command = append(command, fill.Replace(a))
	}
	if command[0] == "node" {
		command[0] = m.node
	}
	if behind {
		command = append([]string{m.toolmend, "mcp", "--"}, command...)
	}
	task.Command, task.Args = command[0], command[1:]
	for _, c := range s.cases {
		task.Calls = append(task.Calls, oneCall{c.tool, json.RawMessage(fill.Replace(c.args))})
	}
	text, err := json.Marshal(task)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, filepath.Join(m.root, "py", "bin", "python"), "python/mcpcalls.py", string(text))
	if sdk == "node" {
		run = exec.CommandContext(ctx, m.node, "node/mcpcalls.mjs", string(text))
	}
	var errs bytes.Buffer
	run.Env = append(os.Environ(), "NODE_MODULES="+filepath.Join(m.root, "npm", "node_modules"), "NOTION_TOKEN=ntn_x", "MEMORY_FILE_PATH="+filepath.Join(dir, "memory.jsonl"))
	run.Stderr = &errs
	out, err := run.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(s.cases), "%s by %s: %v\n%s\n%s", s.name, sdk, err, out, errs.String())
	if version := regexp.MustCompile(`version \S+`).FindString(errs.String()); version != "" {
		t.Logf("%s %s behind=%v: %s", s.name, sdk, behind, version)
	}
	var cells []string
	for i, line := range lines {
		var a mcpAnswer
		require.NoError(t, json.Unmarshal([]byte(line), &a))
		t.Logf("%s %s behind=%v %s: %.200q", s.name, sdk, behind, s.cases[i].fault, a.Text)
		reached := s.reached != "" && regexp.MustCompile(s.reached).MatchString(a.Text)
		switch key := s.cases[i].key; {
		case reached:
			cells = append(cells, "reaches the tool")
		case !a.Error:
			cells = append(cells, "runs")
		case key != "" && strings.Contains(a.Text, key):
			cells = append(cells, "error that names `"+key+"`")
		default:
			cells = append(cells, "error")
		}
	}
	return cells
}

// TestMCPConformance runs the official suite against the reference server of the
// Go SDK, directly and behind the proxy, over HTTP in both eras and over stdio. The
// results must be the same.
func TestMCPConformance(t *testing.T) {
	m := prepare(t)
	for _, c := range []struct {
		name   string
		server []string // that listens on ADDRESS
		suite  []string
		stdio  bool
	}{
		{"HTTP, 2025-11-25", []string{"-http", "ADDRESS", "-stateless=false"}, []string{"--spec-version", "2025-11-25"}, false},
		{"HTTP, 2026-07-28", []string{"-http", "ADDRESS"}, []string{"--requirements", "2026-07-28"}, false},
		{"stdio behind a bridge, 2025-11-25", nil, []string{"--spec-version", "2025-11-25"}, true},
	} {
		var summaries [2]string
		for behind := range 2 {
			address := freeAddress(t)
			switch {
			case !c.stdio:
				for i, a := range c.server {
					c.server[i] = strings.ReplaceAll(a, "ADDRESS", address)
				}
				m.start(t, address, append([]string{m.everything}, c.server...)...)
				if behind == 1 {
					front := freeAddress(t)
					m.start(t, front, m.toolmend, "mcp", "--upstream", "http://"+address+"/", "--listen", front)
					address = front
				}
				for i, a := range c.server {
					if strings.HasPrefix(a, "127.0.0.1:") {
						c.server[i] = "ADDRESS"
					}
				}
			default:
				_, port, err := net.SplitHostPort(address)
				require.NoError(t, err)
				bridge := []string{m.node, filepath.Join(m.root, "npm", "node_modules", "mcp-proxy", "dist", "bin", "mcp-proxy.mjs"), "--host", "127.0.0.1", "--port", port, "--"}
				if behind == 1 {
					bridge = append(bridge, m.toolmend, "mcp", "--")
				}
				m.start(t, address, append(bridge, m.everything)...)
			}
			path := map[bool]string{true: "/mcp", false: "/"}[c.stdio]
			suite := exec.CommandContext(t.Context(), m.node, append([]string{filepath.Join(m.root, "npm", "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
				"server", "--url", "http://" + address + path}, c.suite...)...)
			suite.Dir = t.TempDir()
			out, _ := suite.CombinedOutput() // it fails where a check does
			_, summary, found := strings.Cut(string(out), "=== SUMMARY ===")
			require.True(t, found, string(out))
			summaries[behind] = summary
		}
		require.Equal(t, summaries[0], summaries[1], c.name)
		total := summaries[0][strings.Index(summaries[0], "Total:"):]
		fmt.Printf("conformance, %s: the same directly and behind the proxy: %s\n", c.name, strings.SplitN(strings.TrimSpace(total), "\n", 2)[0])
	}
}

// start runs a server until the end of the test, and waits for its address.
func (m mcpTools) start(t *testing.T, address string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 30*time.Second, 50*time.Millisecond, strings.Join(args, " "))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
