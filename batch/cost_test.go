package batch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
)

// The work on the calls of one message is linear: 40,000 calls took 8 s.
func TestWorkIsLinear(t *testing.T) {
	prefix := strings.Repeat("x", 200) // comparing is what takes time, not memory
	message := func(n int, id string) middleware.Message {
		m := middleware.Message{Role: middleware.RoleAssistant}
		for i := range n {
			m.ToolCalls = append(m.ToolCalls, middleware.ToolCall{ID: fmt.Sprintf("%s%s%04d", prefix, id, i), Name: fmt.Sprintf("%stool%04d", prefix, i), Arguments: "{}"})
		}
		return m
	}
	broken := func(m middleware.Message) []middleware.Verdict {
		verdicts := make([]middleware.Verdict, len(m.ToolCalls))
		for i, c := range m.ToolCalls {
			verdicts[i] = middleware.Verdict{Call: c, Issues: []middleware.Issue{{Code: "unknown_tool"}}}
		}
		return verdicts
	}
	held := func(m middleware.Message) []middleware.Verdict {
		verdicts := broken(m)
		for i := range verdicts[1:] {
			verdicts[i].Issues = nil
		}
		return verdicts
	}
	const n = 10_000
	kept, other := message(n, "a"), message(n, "b")
	for name, work := range map[string]func(){
		"FixIDs":                   func() { history.FixIDs([]middleware.Message{other}, kept) },
		"Splice by id":             func() { batch.Splice(kept, kept, broken(kept)) },
		"Splice by name":           func() { batch.Splice(kept, other, broken(kept)) },
		"Splice of repeated calls": func() { batch.Splice(kept, other, held(kept)) },
	} {
		t.Run(name, func(t *testing.T) {
			sets := func() {
				for _, m := range []middleware.Message{kept, other} {
					set := map[middleware.ToolCall]bool{}
					for _, c := range m.ToolCalls {
						set[c] = true
					}
				}
			}
			require.Less(t, best(work), 40*best(sets), "what two sets of the calls take")
		})
	}
}

func best(f func()) time.Duration {
	least := time.Hour
	for range 4 {
		start := time.Now()
		f()
		least = min(least, time.Since(start))
	}
	return least
}

// A verdict with too_many_calls ends the turn: neither its call nor the calls
// behind it are echoed.
func TestTurnEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	m := middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "t", Arguments: "{}"}, middleware.ToolCall{ID: "b", Name: "t", Arguments: "{}"},
		middleware.ToolCall{ID: "c", Name: "t", Arguments: "{}"})
	verdicts := []middleware.Verdict{{Call: m.ToolCalls[0]}, {Call: m.ToolCalls[1], Issues: []middleware.Issue{{Code: "too_many_calls"}}},
		{Call: m.ToolCalls[2], Issues: []middleware.Issue{{Code: "undecided"}}}}
	for _, policy := range []batch.Policy{batch.ReissueAll, batch.KeepValid} {
		turn := batch.Turn(m, nil, verdicts, policy, func(v middleware.Verdict) string { return "said of " + v.Issues[0].Code })
		require.Len(t, turn, 2)
		require.Len(t, turn[0].ToolCalls, 1)
		require.Equal(t, "a", turn[1].ToolCallID)
		require.Equal(t, "This call was not executed, because its message holds too many tool calls.\n\nsaid of too_many_calls", turn[1].Text())
	}
}
