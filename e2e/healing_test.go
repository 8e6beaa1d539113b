package e2e

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/internal/strict"
)

// TestHealedHistories: a user interrupts LangChain in a tool, and goes on with the
// checkpoint, which has a call without its result. Each of the two later requests is
// refused as it came, sent once more with a result, and answered. Directly, and without
// the rule, the conversation ends with the refusal.
func TestHealedHistories(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	interrupted := scenario{say: func(t task, n int, _ bool) answer {
		if n == 0 {
			return answer{text: opening, calls: []strict.Call{t.read(0)}}
		}
		return answer{text: done}
	}}
	others := front{name: "other rules", open: serve(gateway.Settings{Heal: []string{"orphan-results", "reasoning"}})}
	for _, c := range sdks {
		if c.pkg != langChain {
			continue
		}
		_, err := installed(t, root, c.pkg)
		require.NoError(t, err)
		usual := c.command
		c.command = func(p place) command {
			with := usual(p)
			with.env = append(with.env, "INTERRUPTED=1")
			return with
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range []front{fronts[0], others, fronts[slices.IndexFunc(fronts, func(f front) bool { return f.name == "enforce" })]} {
				r, err := run(t.Context(), root, t.TempDir(), c, interrupted, f)
				require.NoError(t, err)
				t.Logf("%s: %s; refused %q", f.name, r.cell(), r.refused)
				if f.name == "enforce" {
					require.True(t, r.done(), r.output.text)
					require.Equal(t, 3, r.attempts, "the client makes no further request")
					require.Equal(t, 3, r.calls)
					require.Len(t, r.refused, 2, "each request is sent as it came first")
					require.Equal(t, len(r.refused), r.changed, "no other request is changed")
					require.Zero(t, r.breaks)
				} else {
					require.False(t, r.done(), r.output.text)
					require.Len(t, r.refused, 1)
					require.Zero(t, r.changed)
				}
			}
		})
	}
}
