package agentloop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// It is saved before tools run and after each step.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	var seen []string
	o := tools(weather())
	o.Checkpoint = func(_ context.Context, s *agentloop.State) error {
		status := "-"
		if len(s.Turn()) > 0 {
			status = string(s.Turn()[0].Status)
		}
		seen = append(seen, fmt.Sprintf("%d messages, %s", len(s.Messages), status))
		return nil
	}
	_, err := run(t, o, calls("weather", oslo), calls("weather", bad), text("done"))
	require.NoError(t, err)
	require.Equal(t, []string{"2 messages, ready", "2 messages, ready", "3 messages, -", "5 messages, -", "6 messages, -"}, seen)
}

// Its error ends the run at once, and it is not asked again; before tools run,
// they do not.
func TestCheckpointError(t *testing.T) {
	t.Parallel()
	for at, ran := range []int{0, 0, 1} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			tool, n := counted()
			o := tools(tool)
			saves := 0
			o.Checkpoint = func(context.Context, *agentloop.State) error {
				if saves++; saves == at+1 {
					return errBoom
				}
				return nil
			}
			s, err := run(t, o, calls("weather", oslo))
			require.ErrorIs(t, err, errBoom)
			require.ErrorContains(t, err, "agentloop: checkpoint: boom")
			require.Equal(t, at+1, saves)
			require.Equal(t, ran, *n)
			require.NoError(t, newAgent(t, modelOf(t, text("done")), o).Run(t.Context(), s))
			require.Equal(t, 1, *n)
		})
	}
}

// Where it fails between two results, no further call begins, and what has run
// is in the state.
func TestCheckpointErrorInATurn(t *testing.T) {
	t.Parallel()
	var ran []string
	o := tools(guarded(&ran))
	o.Tools[0].Approval, o.Tools[0].Serial = false, true
	saves := 0
	o.Checkpoint = func(context.Context, *agentloop.State) error {
		if saves++; saves == 3 {
			return errBoom
		}
		return nil
	}
	s, err := run(t, o, calls("weather", oslo, "weather", `{"city":"Rome"}`))
	require.ErrorContains(t, err, "agentloop: checkpoint: boom")
	require.Equal(t, 3, saves)
	require.Equal(t, []string{oslo}, ran)
	require.NoError(t, newAgent(t, scripted(0), o).Run(t.Context(), stored(t, s)))
	require.Equal(t, []string{oslo, `{"city":"Rome"}`}, ran)
}

// A run that ends with an error is saved too.
func TestCheckpointAfterError(t *testing.T) {
	t.Parallel()
	saves := 0
	o := tools(fails("t", agentloop.Abort(errBoom)))
	o.Checkpoint = func(context.Context, *agentloop.State) error { saves++; return nil }
	_, err := run(t, o, calls("t", "{}"))
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, 3, saves)
}

// After a process was killed, only those calls run again that were running: the
// results of the others were saved while a call of the same turn still ran.
func TestCheckpointAfterEachResult(t *testing.T) {
	t.Parallel()
	ran := map[string]int{} // by call; its tools run one at a time
	siblings, blocked := make(chan struct{}), make(chan struct{})
	var saved []string
	tool := func(name string, serial bool, wait <-chan struct{}) agentloop.Tool {
		tool := rawTool(name, func(_ context.Context, c middleware.ToolCall) (agentloop.Result, error) {
			if wait != nil {
				<-wait
			}
			return agentloop.Text(c.ID + " ran"), nil
		})
		tool.Serial = serial
		return tool
	}
	o := tools(tool("quick", false, nil), tool("blocks", false, blocked), tool("alone", true, nil))
	o.ToolMiddleware = func(next agentloop.ToolFunc) agentloop.ToolFunc {
		return func(ctx context.Context, c middleware.ToolCall) (agentloop.Result, error) {
			if c.Name != "blocks" {
				<-siblings // the blocked call has begun
			} else {
				close(siblings)
			}
			return next(ctx, c)
		}
	}
	o.Checkpoint = func(_ context.Context, s *agentloop.State) error {
		b, err := json.Marshal(s)
		saved = append(saved, string(b))
		done := 0
		for _, c := range s.Turn() {
			if c.Status == agentloop.CallDone {
				done++
			}
		}
		if done == 3 { // all but the blocked one and the one that must run alone
			close(blocked)
		}
		return err
	}
	turn := calls("quick", "{}", "blocks", "{}", "quick", "{}", "quick", "{}", "alone", "{}")
	s, err := run(t, o, turn, text("done"))
	require.NoError(t, err)
	want := []string{"call_1 ran", "call_2 ran", "call_3 ran", "call_4 ran", "call_5 ran"}
	require.Equal(t, want, replies(s))

	again := tools(tool("quick", false, nil), tool("blocks", false, nil), tool("alone", true, nil))
	again.ToolMiddleware = func(next agentloop.ToolFunc) agentloop.ToolFunc {
		return func(ctx context.Context, c middleware.ToolCall) (agentloop.Result, error) {
			ran[c.ID]++
			return next(ctx, c)
		}
	}
	again.Parallel = 1
	runs := map[string]int{}
	for _, text := range saved {
		clear(ran)
		var back agentloop.State
		require.NoError(t, json.Unmarshal([]byte(text), &back))
		require.NoError(t, newAgent(t, scripted(0), again).Run(t.Context(), &back))
		require.Equal(t, want, replies(&back))
		runs[fmt.Sprint(ran)]++
	}
	require.Contains(t, runs, "map[call_2:1 call_5:1]", "the siblings' results were saved while call_2 ran")
	require.Contains(t, runs, "map[call_5:1]", "before a call begins, the results before it are saved")
}

// A failed save is told beside another error: the caller that waits for a decision must
// know that the results of this turn are not saved.
func TestCheckpointErrorBesideAnother(t *testing.T) {
	t.Parallel()
	var ran []string
	o := tools(says("a", "done"), guarded(&ran))
	saves := 0
	o.Checkpoint = func(context.Context, *agentloop.State) error {
		if saves++; saves == 3 {
			return errBoom
		}
		return nil
	}
	s, err := run(t, o, calls("a", "{}", "weather", oslo))
	require.ErrorIs(t, err, agentloop.ErrPending)
	require.ErrorContains(t, err, "agentloop: checkpoint: boom")
	require.Len(t, s.Pending(), 1)
}

// A failed turn that ends the run while a saved message is taken up is saved,
// like one that the model has just made.
func TestCheckpointOfAFailureInResume(t *testing.T) {
	t.Parallel()
	var saved []*agentloop.State
	o := tools(weather())
	o.MaxFailures = 1
	o.Checkpoint = func(_ context.Context, s *agentloop.State) error {
		saved = append(saved, stored(t, s))
		return nil
	}
	s := agentloop.NewState(middleware.User("go"), middleware.Assistant("", call("1", "weather", bad)))
	require.ErrorIs(t, newAgent(t, modelOf(t), o).Run(t.Context(), s), agentloop.ErrFailures)
	require.Len(t, saved, 1)
	require.Len(t, saved[0].Messages, 3, "with the reply to the invalid call")
	require.Equal(t, 1, saved[0].Failures)

	s = agentloop.NewState(middleware.User("go"))
	s.Version = 99
	require.ErrorIs(t, newAgent(t, modelOf(t), o).Run(t.Context(), s), agentloop.ErrVersion)
	require.Len(t, saved, 1, "a state that cannot be read is left alone")
}
