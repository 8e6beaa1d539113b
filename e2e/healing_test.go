package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/internal/strict"
)

// TestHealedHistories: LangChain sends histories that providers refuse, in ways that its
// users do. Its second and third turn are refused as they came, sent once more with the
// change of a rule, and answered. Directly, and without the rule, the conversation ends with
// the refusal.
//
// In a conversation that is interrupted, a tool is; the checkpoint has a call without its
// result. In one that is trimmed, the history begins with a result. In one that is continued, the
// provider's account is another one, which cannot verify the reasoning.
func TestHealedHistories(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	_, err := installed(t, root, langChain)
	require.NoError(t, err)
	enforce := fronts[slices.IndexFunc(fronts, func(f front) bool { return f.name == "enforce" })]
	for _, h := range []struct {
		conversation string
		rule         heal.Rule
		formats      []string
		first        int // model calls of the first turn
	}{
		{"interrupted", heal.OrphanCalls, []string{"langchain", "langchain-responses", "langchain-messages"}, 1},
		{"trimmed", heal.OrphanResults, []string{"langchain", "langchain-responses", "langchain-messages"}, 2},
		{"continued", heal.Reasoning, []string{"langchain-responses", "langchain-messages"}, 2},
	} {
		s := scenario{say: func(t task, n int, _ bool) answer {
			if n == 0 {
				return answer{text: opening, calls: []strict.Call{t.read(0)}}
			}
			return answer{text: done, last: n == 1 && h.rule == heal.Reasoning}
		}}
		var others []string
		for _, r := range heal.Default() {
			if r != h.rule {
				others = append(others, r.String())
			}
		}
		without := front{name: "without the rule", open: serve(gateway.Settings{Heal: others})}
		for _, c := range sdks {
			if !slices.Contains(h.formats, c.name) {
				continue
			}
			usual := c.command
			c.command = func(p place) command {
				with := usual(p)
				with.env = append(with.env, "CONVERSATION="+h.conversation)
				return with
			}
			t.Run(fmt.Sprint(h.conversation, " ", c.name), func(t *testing.T) {
				t.Parallel()
				for _, f := range []front{fronts[0], without, enforce} {
					r, err := run(t.Context(), root, t.TempDir(), c, s, f)
					require.NoError(t, err)
					t.Logf("%s: %s; refused %q", f.name, r.cell(), r.refused)
					if f.name != enforce.name {
						require.False(t, r.done(), r.output.text)
						require.Len(t, r.refused, 1)
						require.Zero(t, r.changed)
						continue
					}
					require.True(t, r.done(), r.output.text)
					require.Equal(t, h.first+2, r.attempts, "the client makes no further request")
					require.Equal(t, h.first+2, r.calls)
					require.Len(t, r.refused, 2, "each request is sent as it came first")
					require.Equal(t, len(r.refused), r.changed, "no other request is changed")
				}
			})
		}
	}
}
