package agentloop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// A run that is interrupted at every possible point, once or at each of them,
// and goes on from its JSON, ends with the same messages as one that was not.
// No tool runs twice whose result was recorded; none runs twice at all where
// the interruption was a checkpoint's or the model's.
func TestResume(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPlan(t)
		whole := &journey{plan: p}
		want := whole.travel(t, -1)
		require.NotEmpty(t, whole.points)
		for at := range whole.points {
			j := &journey{plan: p}
			got := j.travel(t, at)
			require.Equal(t, want, got, "interrupted at %s", whole.points[at])
			j.once(t, whole.points[at])
		}
		every := &journey{plan: p, every: true}
		require.Equal(t, want, every.travel(t, -1), "interrupted everywhere")
	})
}

// plan is what model and tools do: both follow from the conversation alone, so
// that the same questions have the same answers.
type plan struct {
	turns  [][]middleware.ToolCall
	layers middleware.Middleware
	valid  *argsvalidate.Validator
}

func newPlan(t *rapid.T) *plan {
	p := &plan{layers: middleware.Chain(), valid: argsvalidate.NewValidator(argsvalidate.Options{MaxAttempts: 1})}
	arguments := rapid.SampledFrom([]string{oslo, `{"city":"Rome","days":3}`, `{"city":"Bonn","days":null}`, bad, "nonsense", ""})
	for range rapid.IntRange(1, 3).Draw(t, "turns") {
		var turn []middleware.ToolCall
		for range rapid.IntRange(1, 3).Draw(t, "calls") {
			id := rapid.SampledFrom([]string{"x", "y", "z", ""}).Draw(t, "id") // broken and repeated ids too
			turn = append(turn, call(id, rapid.SampledFrom([]string{"good", "bad", "asks"}).Draw(t, "tool"), arguments.Draw(t, "arguments")))
		}
		p.turns = append(p.turns, turn)
	}
	if rapid.Bool().Draw(t, "argsvalidate") {
		p.layers = p.valid.Middleware()
	}
	return p
}

// journey is one run, with what interrupts it. Points are numbered in the
// order in which they are first reached.
type journey struct {
	*plan
	every bool

	mu     sync.Mutex
	at     int
	points []string
	fired  map[string]bool
	cancel context.CancelFunc
	ran    map[string]int
}

// interrupts reports whether this is the point to interrupt at, which happens
// once.
func (j *journey) interrupts(point string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.points)
	j.points = append(j.points, point)
	if n != j.at && (!j.every || j.fired[point]) {
		return false
	}
	j.fired[point] = true
	return true
}

func (j *journey) travel(t *rapid.T, at int) []middleware.Message {
	j.at, j.fired, j.ran = at, map[string]bool{}, map[string]int{}
	agent, err := agentloop.New(j.layers(j.model), agentloop.Options{Tools: j.tools(), Validator: j.valid, Parallel: 1, Checkpoint: j.checkpoint})
	require.NoError(t, err)
	s := goState()
	s.RunID = "run"
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		j.cancel = cancel
		err = agent.Run(ctx, s)
		cancel()
		if err == nil {
			return s.Messages
		}
		b, jsonErr := json.Marshal(s)
		require.NoError(t, jsonErr)
		s = &agentloop.State{}
		require.NoError(t, json.Unmarshal(b, s))
		for _, p := range s.Pending() {
			require.NoError(t, s.Approve(p.Call.ID))
		}
	}
	require.NoError(t, err)
	return nil
}

func (j *journey) model(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	n := 0 // assistant messages so far: which turn this is
	for _, m := range req.Messages {
		if m.Role == middleware.RoleAssistant {
			n++
		}
	}
	if j.interrupts(fmt.Sprintf("model %d before", n)) {
		j.cancel()
		return nil, context.Cause(ctx)
	}
	resp := &middleware.Response{Message: middleware.Assistant("done"), Usage: middleware.Usage{InputTokens: 1}}
	if n < len(j.turns) {
		resp.Message = middleware.Assistant("", j.turns[n]...)
	}
	if j.interrupts(fmt.Sprintf("model %d after", n)) {
		j.cancel()
	}
	return resp, nil
}

func (j *journey) tools() []agentloop.Tool {
	tool := func(name string, result error) agentloop.Tool {
		return agentloop.NewTool(name, "", func(ctx context.Context, in trip) (agentloop.Result, error) {
			info, _ := agentloop.CallFrom(ctx)
			if j.interrupts("tool " + info.Key + " before") {
				j.cancel()
				return agentloop.Result{}, ctx.Err()
			}
			j.mu.Lock()
			j.ran[info.Key]++
			j.mu.Unlock()
			return agentloop.Text(name + " of " + in.City), result
		})
	}
	return []agentloop.Tool{tool("good", nil), tool("bad", errBoom), tool("asks", nil).NeedsApproval()}
}

func (j *journey) checkpoint(_ context.Context, s *agentloop.State) error {
	if j.interrupts(fmt.Sprintf("checkpoint of %d messages, %d waiting", len(s.Messages), len(s.Pending()))) {
		return errBoom
	}
	return nil
}

// once: no tool ran twice.
func (j *journey) once(t *rapid.T, point string) {
	for key, n := range j.ran {
		require.Equal(t, 1, n, "%s ran %d times, interrupted at %s", key, n, point)
	}
}
