package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClients runs the clients in every scenario through every front, and writes their
// rows of the table, unless -run left scenarios out. AGENTS is the folder that the clients
// are installed into; CLIENTS are the names of the clients, with commas between (all of
// them if it is empty); AGENTS_OUTPUT=1 shows what they write; AGENTS_OFFLINE=1 installs
// nothing.
func TestClients(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	deadline := time.Now().Add(runLimit)
	require.NotEmpty(t, chosen(), "CLIENTS names no client")
	var mu sync.Mutex
	rows := make(map[string][]string)
	t.Run("run", func(t *testing.T) {
		for _, c := range chosen() {
			v, err := installed(t, root, c.pkg)
			if err != nil {
				t.Logf("%s: %v", c.name, err)
				rows[c.name] = slices.Repeat([]string{failure(err)}, len(tables))
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				results := make(map[string]result)
				for _, s := range all() {
					t.Run(s.name, func(t *testing.T) {
						if time.Now().After(deadline) {
							t.Skipf("the run has taken %s", runLimit)
						}
						for _, r := range runAll(t, root, c, s) {
							results[key(c, s, r.front)] = r
						}
					})
				}
				mu.Lock()
				defer mu.Unlock()
				for _, of := range tables {
					rows[c.name] = append(rows[c.name], row(c, v, of.scenarios, results))
				}
			})
		}
	})
	path := filepath.Join("..", "..", "docs", "measured", "clients.md")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	before, old, after, err := tableIn(string(b))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(before+page(old, rows)+after), 0o644))
}

// worseIsKnown are the cells in which a client may do worse behind the gateway than without it,
// each with the reason. docs/clients.md names them.
var worseIsKnown = map[string]string{
	"kilo/broken": "Kilo sometimes gives up after a stream that breaks off, directly too",
}

// Each known exception is a cell of the table.
func TestWorseIsKnown(t *testing.T) {
	t.Parallel()
	for cell, why := range worseIsKnown {
		c, s, _ := strings.Cut(cell, "/")
		require.True(t, slices.ContainsFunc(clients(), func(of client) bool { return of.name == c }), cell)
		require.True(t, slices.ContainsFunc(all(), func(of scenario) bool { return of.name == s }), cell)
		require.NotEmpty(t, why)
	}
}

// A run is worse than the same run directly if the user gets less, or the provider more.
func TestWorse(t *testing.T) {
	t.Parallel()
	ok := result{ended: endedDone, attempts: 2, calls: 2}
	failed := result{ended: endedError, attempts: 1, calls: 1}
	for name, c := range map[string]struct {
		direct result
		change func(r *result)
		worse  bool
	}{
		"the same":                        {ok, func(*result) {}, false},
		"a re-ask":                        {ok, func(r *result) { r.calls++ }, false},
		"an error":                        {ok, func(r *result) { r.ended = endedError }, true},
		"no answer":                       {ok, func(r *result) { r.ended = endedOther }, true},
		"it hangs":                        {failed, func(r *result) { r.ended = endedHung }, true},
		"another request":                 {ok, func(r *result) { r.attempts++ }, true},
		"another request, and the answer": {failed, func(r *result) { r.ended, r.attempts = endedDone, 2 }, false},
		"a refused history":               {ok, func(r *result) { r.refused = []string{"a"} }, true},
		"a turn that was changed":         {ok, func(r *result) { r.breaks++ }, true},
		"a byte that was changed":         {failed, func(r *result) { r.changed++ }, true},
		"both fail":                       {failed, func(*result) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.direct
			c.change(&r)
			require.Equal(t, c.worse, len(r.worse(c.direct)) > 0)
		})
	}
}

// runLimit is the time after which no scenario is begun.
const runLimit = 42 * time.Minute

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
		t.Logf("%s: %s; %d breaks, longest silence %s, exit code %d", f.name, r.cell(), r.breaks, r.silence, r.output.code)
		results = append(results, r)
		var problems []string
		if i > 0 && worseIsKnown[c.name+"/"+s.name] == "" {
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

// installed brings the newest version of a package, once a run, and returns it. Where that
// fails, as it does offline, what is there already is used.
func installed(t *testing.T, root string, p pkg) (string, error) {
	once, _ := installs.LoadOrStore(p, sync.OnceValue(func() error {
		if os.Getenv("AGENTS_OFFLINE") != "" {
			return nil
		}
		return install(context.Background(), root, p)
	}))
	installErr := once.(func() error)()
	v, err := version(t.Context(), root, p)
	if err != nil {
		return "", errors.Join(err, installErr)
	}
	if installErr != nil {
		t.Log(installErr)
	}
	return v, nil
}

var installs sync.Map // by package: installs it once

// TestCodexWebSockets: with its own provider Codex begins with a WebSocket. The
// gateway refuses that, since its calls could not be validated, and Codex falls
// back to HTTP.
func TestCodexWebSockets(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	c := agents[slices.IndexFunc(agents, func(c client) bool { return c.name == "codex" })]
	_, err := installed(t, root, c.pkg)
	require.NoError(t, err)
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
