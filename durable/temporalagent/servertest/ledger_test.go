package servertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/durable/temporalagent"
	"github.com/toolmend/toolmend/middleware"
)

// begin starts a run.
func begin(ctx context.Context, t *testing.T, c client.Client, p plan) *temporalagent.Handle {
	t.Helper()
	h, err := temporalagent.Start(ctx, c, options(p), p.message())
	require.NoError(t, err)
	return h
}

func options(p plan) temporalagent.Options {
	return temporalagent.Options{ID: p.Name, TaskQueue: taskQueue, Agent: agentName}
}

// wait waits for the end of a run, also while the server is down.
func wait(ctx context.Context, h *temporalagent.Handle) (*agentloop.State, error) {
	for {
		s, err := h.Wait(ctx)
		var gone *serviceerror.Unavailable
		if ctx.Err() != nil || !errors.As(err, &gone) {
			return s, err
		}
	}
}

// undisturbed runs the plans in this process, without an engine, and returns
// their final messages by name.
func undisturbed(t *testing.T, plans []plan) map[string]string {
	t.Helper()
	agent, err := newAgent(newWorld(t).url)
	require.NoError(t, err)
	messages := make([]string, len(plans))
	var all sync.WaitGroup
	for i, p := range plans {
		all.Go(func() {
			s := agentloop.NewState(p.message())
			if err := agent.Run(t.Context(), s); err != nil {
				t.Error(err)
			}
			messages[i] = text(s.Messages)
		})
	}
	all.Wait()
	byName := map[string]string{}
	for i, p := range plans {
		byName[p.Name] = messages[i]
	}
	return byName
}

func text(messages []middleware.Message) string {
	b, err := json.MarshalIndent(messages, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// verdict is what the ledger and the histories say about all runs, in counts of
// effects.
type verdict struct {
	lost       []string // never finished
	repeated   []string // began again after the step was recorded
	unrecorded int      // finished, not yet recorded, and made again
	cut        int      // in flight when the worker was killed
	hidden     int      // the first half of a validation retry, made again
}

func (v verdict) String() string {
	return fmt.Sprintf("effects lost: %d, recorded steps repeated: %d; made again, as the step had not been recorded: %d finished, %d in flight, %d in a step whose second call was in flight",
		len(v.lost), len(v.repeated), v.unrecorded, v.cut, v.hidden)
}

// requireEffects fails the test if an effect of the plans was lost, or if a step
// that the histories have as recorded was made again.
func requireEffects(ctx context.Context, t *testing.T, c client.Client, w *world, plans []plan) verdict {
	t.Helper()
	recorded := map[string]time.Time{}
	for _, p := range plans {
		completions(ctx, t, c, p.Name, recorded)
	}
	v := verdictOf(w.entries(), recorded, plans)
	t.Log(v)
	require.Empty(t, v.lost, "effects lost")
	require.Empty(t, v.repeated, "recorded steps repeated")
	return v
}

// verdictOf compares a ledger with the effects of the plans. recorded has the
// times at which activities were recorded as completed.
func verdictOf(ledger []entry, recorded map[string]time.Time, plans []plan) verdict {
	var v verdict
	ends, done := map[string]int{}, map[string]time.Time{} // by effect
	for _, e := range ledger {
		switch e.What {
		case began:
			at, over := done[e.Key]
			if own, ok := recorded[e.Activity]; ok && e.At.After(own) || over && e.At.After(at) {
				v.repeated = append(v.repeated, e.Key)
			}
		case cut:
			v.cut++
		case finished:
			if ends[e.Key]++; ends[e.Key] > 1 {
				if strings.HasSuffix(e.Key, " invalid") {
					v.hidden++
				} else {
					v.unrecorded++
				}
			}
			if at, ok := recorded[e.Activity]; ok {
				done[e.Key] = at
			}
		}
	}
	for _, p := range plans {
		for _, key := range p.effects() {
			if ends[key] == 0 {
				v.lost = append(v.lost, key)
			}
		}
	}
	return v
}

// TestVerdict compares ledgers that have one fault each.
func TestVerdict(t *testing.T) {
	p := plan{Name: "p", Turns: 1}
	key := p.modelKey(1, "valid")
	at := func(second int, what, activity string) entry {
		return entry{At: time.Unix(int64(second), 0), What: what, Key: key, Agent: p.Name, Activity: activity}
	}
	recorded := map[string]time.Time{"a": time.Unix(2, 0)}
	for name, test := range map[string]struct {
		ledger []entry
		want   verdict
	}{
		"undisturbed":             {[]entry{at(0, began, "a"), at(1, finished, "a")}, verdict{}},
		"lost":                    {[]entry{at(0, began, "a"), at(1, cut, "a")}, verdict{lost: []string{key}, cut: 1}},
		"in flight, made again":   {[]entry{at(0, began, "a"), at(0, cut, "a"), at(1, began, "a"), at(1, finished, "a")}, verdict{cut: 1}},
		"not recorded":            {[]entry{at(0, began, "a"), at(0, finished, "a"), at(1, began, "a"), at(1, finished, "a")}, verdict{unrecorded: 1}},
		"repeated":                {[]entry{at(0, began, "a"), at(1, finished, "a"), at(3, began, "a")}, verdict{repeated: []string{key}}},
		"repeated by another one": {[]entry{at(0, began, "a"), at(1, finished, "a"), at(3, began, "b")}, verdict{repeated: []string{key}}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, verdictOf(test.ledger, recorded, []plan{p}))
		})
	}
}

// completions adds when each activity of a workflow was recorded as completed.
func completions(ctx context.Context, t *testing.T, c client.Client, id string, into map[string]time.Time) {
	t.Helper()
	for _, run := range runs(ctx, t, c, id) {
		ids := map[int64]string{}
		for _, e := range history(ctx, t, c, id, run) {
			if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
				ids[e.EventId] = a.ActivityId
			}
			if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
				into[activityName(id, run, ids[a.ScheduledEventId])] = e.EventTime.AsTime()
			}
		}
	}
}

// runs returns the runs of a workflow, which may have continued as new.
func runs(ctx context.Context, t *testing.T, c client.Client, id string) []string {
	t.Helper()
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	require.NoError(t, err)
	all := []string{d.WorkflowExecutionInfo.GetFirstRunId()}
	for {
		events := history(ctx, t, c, id, all[len(all)-1])
		next := events[len(events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		if next == "" {
			return all
		}
		all = append(all, next)
	}
}

func history(ctx context.Context, t *testing.T, c client.Client, id, run string) []*historypb.HistoryEvent {
	t.Helper()
	var all []*historypb.HistoryEvent
	for events := c.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}
