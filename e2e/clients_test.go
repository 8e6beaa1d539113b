package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClients runs every client in every scenario through every front. It
// writes the table, unless -run left clients or scenarios out. AGENTS is the
// folder that the clients are installed into; AGENTS_OUTPUT=1 shows what they
// write.
func TestClients(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	versions := installed(t, root)
	var mu sync.Mutex
	results := make(map[string]result)
	t.Run("run", func(t *testing.T) {
		for _, c := range clients() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				for _, s := range scenarios {
					t.Run(s.name, func(t *testing.T) {
						t.Parallel()
						for _, r := range runAll(t, root, c, s) {
							mu.Lock()
							results[key(c, s, r.front)] = r
							mu.Unlock()
						}
					})
				}
			})
		}
	})
	cells := 0
	for _, c := range clients() {
		for _, s := range scenarios {
			for _, f := range fronts {
				if s.runs(c, f) {
					cells++
				}
			}
		}
	}
	if len(results) < cells {
		t.Log("clients or scenarios were left out: the table is not written")
		return
	}
	page := filepath.Join("..", "docs", "clients.md")
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	text, err := replaceTable(string(b), table(results, versions))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
}

// runAll runs a client in a scenario through each front, and compares the
// results with that of the first.
func runAll(t *testing.T, root string, c client, s scenario) []result {
	var results []result
	for i, f := range fronts {
		if !s.runs(c, f) {
			continue
		}
		r, err := run(t.Context(), root, t.TempDir(), c, s, f)
		require.NoError(t, err)
		t.Logf("%s: %s; longest silence %s, exit code %d", f.name, r.cell(), r.silence, r.output.code)
		results = append(results, r)
		var problems []string
		if i > 0 {
			problems = r.worse(results[0])
		}
		if f.validates && s.expect != nil {
			problems = append(problems, s.expect(r)...)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", f.name, p)
		}
		if len(problems) > 0 || os.Getenv("AGENTS_OUTPUT") != "" {
			t.Logf("%s wrote:\n%s", c.name, r.output.text)
		}
	}
	return results
}

// installed brings the newest versions, and returns the version of each
// package. Where that fails, as it does offline, what is there already is used.
func installed(t *testing.T, root string) map[string]string {
	var pkgs []pkg
	seen := make(map[pkg]bool)
	for _, p := range packages() {
		if !seen[p] {
			seen[p] = true
			pkgs = append(pkgs, p)
		}
	}
	installErr := install(t.Context(), root, pkgs)
	if installErr != nil {
		t.Log(installErr)
	}
	versions := make(map[string]string)
	for _, p := range pkgs {
		v, err := version(t.Context(), root, p)
		require.NoError(t, err, "%s is not installed: %v", p.name, installErr)
		versions[p.name] = v
	}
	return versions
}

// TestCodexWebSockets: with its own provider Codex begins with a WebSocket. The
// gateway refuses that, since its calls could not be validated, and Codex falls
// back to HTTP.
func TestCodexWebSockets(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	installed(t, root)
	c := agents[slices.IndexFunc(agents, func(c client) bool { return c.name == "codex" })]
	c.command = func(p place) command {
		return command{
			args: []string{
				p.npm(".bin", "codex"), "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
				"-c", `openai_base_url="` + p.url + `/v1"`, "-c", `model="scripted"`, prompt,
			},
			env: []string{"CODEX_API_KEY=k"},
		}
	}
	misnamed := scenarios[0]
	for _, f := range fronts {
		if !f.validates || f.raises {
			continue
		}
		r, err := run(t.Context(), root, t.TempDir(), c, misnamed, f)
		require.NoError(t, err)
		t.Logf("%s: %s", f.name, r.cell())
		require.Empty(t, misnamed.expect(r), r.output.text)
		require.NotContains(t, r.output.text, "Reconnecting", "the first refusal must be enough")
		require.Contains(t, r.output.text, "failed to connect to Responses WebSocket", "it began with one")
	}
}
