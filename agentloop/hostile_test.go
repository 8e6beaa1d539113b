package agentloop_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// Whatever stands in a stored state, Run does not panic, and no tool sees
// arguments that its schema refuses.
func TestHostileStates(t *testing.T) {
	t.Parallel()
	seeds := hostileSeeds(t)
	var w *world
	var o agentloop.Options
	for name := range schemas {
		o.Tools = append(o.Tools, agentloop.RawTool(name, "", json.RawMessage(schemas[name]), func(_ context.Context, c middleware.ToolCall) (agentloop.Result, error) {
			w.valid(c)
			return agentloop.Text("ran"), nil
		}))
	}
	o.Parallel = 1
	a := newAgent(t, argsvalidate.New(argsvalidate.Options{})(scripted(0)), o)
	rapid.Check(t, func(t *rapid.T) {
		w = &world{t: t}
		var tree any
		require.NoError(t, json.Unmarshal([]byte(rapid.SampledFrom(seeds).Draw(t, "seed")), &tree))
		for range rapid.IntRange(1, 4).Draw(t, "faults") {
			tree = mutate(t, tree)
		}
		b, err := json.Marshal(tree)
		require.NoError(t, err)
		var s agentloop.State
		if json.Unmarshal(b, &s) != nil {
			return
		}
		for range 3 {
			if err := a.Run(t.Context(), &s); err == nil {
				break
			}
			for _, p := range s.Pending() {
				_ = s.Approve(p.Call.ID) // a damaged state may refuse it
			}
			_, err := json.Marshal(&s)
			require.NoError(t, err)
		}
	})
}

// hostileSeeds are states as a run leaves them: with calls that wait, that are
// approved, edited, answered, suspended and done.
func hostileSeeds(t *testing.T) []string {
	var seeds []string
	keep := func(_ context.Context, s *agentloop.State) error {
		b, err := json.Marshal(s)
		seeds = append(seeds, string(b))
		return err
	}
	weather, search := agentloop.RawTool("get_weather", "", json.RawMessage(schemas["get_weather"]), nil), agentloop.RawTool("search", "", json.RawMessage(schemas["search"]), nil)
	weather.Func = func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Text("sunny"), nil
	}
	search.Func = func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Result{}, agentloop.Suspend("later")
	}
	o := tools(weather.NeedsApproval(), search)
	o.Checkpoint = keep
	args := `{"city":"Oslo","days":"5"}`
	s, err := run(t, o, calls("get_weather", args, "search", `{"query":"x","limit":null}`, "get_weather", `{"city":"Rome"}`, "get_weather", args))
	require.ErrorIs(t, err, agentloop.ErrPending)
	require.NoError(t, s.Approve("call_1"))
	require.NoError(t, keep(t.Context(), s))
	require.NoError(t, s.Edit("call_3", `{"city":"Bonn"}`))
	require.NoError(t, keep(t.Context(), s))
	require.NoError(t, s.Edit("call_4", `{"city":5}`))
	require.NoError(t, keep(t.Context(), s))
	require.ErrorIs(t, newAgent(t, modelOf(t), o).Run(t.Context(), s), agentloop.ErrPending)
	require.NoError(t, s.Reject("call_4", "no"))
	require.ErrorIs(t, newAgent(t, modelOf(t), o).Run(t.Context(), s), agentloop.ErrPending)
	require.NoError(t, s.Resolve("call_2", agentloop.Text("by hand")))
	require.NoError(t, newAgent(t, modelOf(t, text("done")), o).Run(t.Context(), s))
	return seeds
}

// mutate returns v with one value in it replaced, removed, repeated or swapped.
func mutate(t *rapid.T, v any) any {
	values := []any{nil, true, false, -1.0, 0.0, 1.0, 7.0, 1e300, "", "x", "5", "ready", "waiting", "done", "approval", "edit", "call_1", "call_2",
		`{"city":5}`, `{"city":"Oslo"}`, "nonsense", "get_weather", "search", "anything", "assistant", "tool", []any{}, []any{nil}, map[string]any{}}
	pick := func() any { return rapid.SampledFrom(values).Draw(t, "value") }
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 || rapid.IntRange(0, 12).Draw(t, "here") == 0 {
			return pick()
		}
		names := []string{"version", "run_id", "messages", "turn", "steps", "results", "failures", "call", "raw", "changes", "status", "reason", "problem",
			"decided", "edited", "rejected", "result", "reply", "role", "parts", "tool_calls", "tool_call_id", "id", "name", "arguments", "kind", "by", "pointer", "before", "after"}
		held := names[:0:0]
		for _, name := range names {
			if _, ok := v[name]; ok {
				held = append(held, name)
			}
		}
		if len(held) == 0 {
			return pick()
		}
		name := rapid.SampledFrom(held).Draw(t, "member")
		switch rapid.IntRange(0, 5).Draw(t, "fault") {
		case 0:
			delete(v, name)
		case 1:
			v[rapid.SampledFrom(names).Draw(t, "new")] = pick()
		default:
			v[name] = mutate(t, v[name])
		}
		return v
	case []any:
		if len(v) == 0 {
			return []any{pick()}
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "item")
		switch rapid.IntRange(0, 6).Draw(t, "fault") {
		case 0:
			return append(v[:i:i], v[i+1:]...)
		case 1:
			return append(v, v[i])
		case 2:
			j := rapid.IntRange(0, len(v)-1).Draw(t, "other")
			v[i], v[j] = v[j], v[i]
		default:
			v[i] = mutate(t, v[i])
		}
		return v
	}
	return pick()
}
