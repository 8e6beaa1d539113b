package agentloop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// Over random tool sets, scripts of how the tools behave, decisions of people,
// and a model that makes every fault of recorded traffic behind each strict
// provider, with and without argsvalidate in the chain. A context that ends
// anywhere is one of the scripts. TestMain sees what leaks.
func TestInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { newWorld(t).live() })
}

var schemas = map[string]string{
	"get_weather": `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14},
		"unit":{"enum":["celsius","fahrenheit"]}},"required":["city"],"additionalProperties":false}`,
	"book_flight": `{"type":"object","properties":{"passengers":{"type":"array","minItems":1,"items":{"type":"object",
		"properties":{"name":{"type":"string","minLength":1},"age":{"type":"integer"}},"required":["name"]}},
		"tags":{"type":"array","items":{"type":"string"}}},"required":["passengers"]}`,
	"search":   `{"type":"object","properties":{"query":{"type":"string"},"limit":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["query","limit"]}`,
	"ls":       `{"type":"object","properties":{}}`,
	"anything": "",
}

// world is one agent, its model, its tools and the people around it.
type world struct {
	t      *rapid.T
	o      agentloop.Options
	call   middleware.ModelCall
	script []string // what tools do, in the order in which they are called

	mu    sync.Mutex
	n     int // tool calls so far
	asked int // model calls so far
	usage middleware.Usage
	done  map[string]bool // the idempotency keys of recorded results
}

var behaviours = []string{"ok", "ok", "ok", "error", "panic", "slow", "suspend", "value", "latin", "cancel", "abort"}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, done: map[string]bool{}, script: rapid.SliceOfN(rapid.SampledFrom(behaviours), 1, 12).Draw(t, "script")}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"get_weather", "book_flight", "search", "ls", "anything"}), 1, 5, rapid.ID).Draw(t, "tools")
	for _, name := range names {
		tool := agentloop.RawTool(name, "", json.RawMessage(schemas[name]), w.tool(name))
		tool.Approval = rapid.Bool().Draw(t, "approval of "+name)
		tool.Serial = rapid.Bool().Draw(t, "serial "+name)
		tool.ReturnDirect = rapid.IntRange(0, 9).Draw(t, "direct "+name) == 0
		w.o.Tools = append(w.o.Tools, tool)
	}
	w.o.Parallel = rapid.IntRange(1, 3).Draw(t, "parallel")
	w.o.MaxSteps = rapid.IntRange(1, 6).Draw(t, "steps")
	w.o.MaxFailures = rapid.IntRange(1, 3).Draw(t, "failures")
	w.o.Checkpoint = func(_ context.Context, s *agentloop.State) error { w.sound(s); return nil }
	provider := rapid.SampledFrom([]middlewaretest.Provider{middlewaretest.OpenAI, middlewaretest.Anthropic, middlewaretest.Gemini}).Draw(t, "provider")
	model := middlewaretest.NewFaulty(rapid.Uint64().Draw(t, "seed"), middlewaretest.FaultOptions{})
	strict := middlewaretest.Strict(provider, model.Call)
	w.call = func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		require.NoError(t, ctx.Err(), "no model call under a context that is done")
		resp, err := strict(ctx, req)
		require.NotErrorIs(t, err, middlewaretest.ErrRefused)
		if w.asked++; resp != nil {
			w.usage = w.usage.Add(resp.Usage)
		}
		return resp, err
	}
	w.o.Validator = argsvalidate.NewValidator(argsvalidate.Options{})
	if rapid.Bool().Draw(t, "argsvalidate") {
		exhausted := rapid.SampledFrom([]middleware.OnExhausted{middleware.Pass, middleware.Raise, middleware.DropInvalid}).Draw(t, "exhausted")
		w.o.Validator = argsvalidate.NewValidator(argsvalidate.Options{MaxAttempts: rapid.IntRange(1, 3).Draw(t, "attempts"), OnExhausted: exhausted})
		w.call = w.o.Validator.Middleware()(w.call)
	}
	return w
}

// live runs the agent until it has an answer or is hopeless, through storage
// and decisions.
func (w *world) live() {
	agent, err := agentloop.New(w.call, w.o)
	require.NoError(w.t, err)
	s := goState()
	for range 8 {
		ctx, cancel := context.WithCancel(w.t.Context())
		before := w.asked
		err := agent.Run(context.WithValue(ctx, cancelKey{}, cancel), s)
		cancel()
		require.LessOrEqual(w.t, w.asked-before, 3*w.o.MaxSteps, "the run ends within its limits")
		require.Equal(w.t, w.usage, s.Usage, "no usage is lost")
		w.sound(s)
		if err == nil {
			break
		}
		w.known(ctx, err)
		b, err := json.Marshal(s)
		require.NoError(w.t, err)
		s = &agentloop.State{}
		require.NoError(w.t, json.Unmarshal(b, s))
		w.decide(s)
	}
	for _, r := range s.Results {
		w.valid(r.Call)
	}
}

// cancelKey finds what ends the context of a run: a tool that the run has left
// behind must not end the next one.
type cancelKey struct{}

// tool follows the script.
func (w *world) tool(name string) agentloop.ToolFunc {
	return func(ctx context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		w.valid(c)
		info, ok := agentloop.CallFrom(ctx)
		if !ok || c.Name != name || info.Call != c {
			w.t.Errorf("the wrong call reached %s: %+v", name, c)
		}
		w.mu.Lock()
		if w.done[info.Key] && ctx.Err() == nil { // a run that ended does not wait for its tools
			w.t.Errorf("%s runs again although its result is recorded", info.Key)
		}
		do := w.script[w.n%len(w.script)]
		w.n++
		w.mu.Unlock()
		switch do {
		case "error":
			return agentloop.Result{}, errBoom
		case "panic":
			panic("a tool of a user")
		case "slow":
			for range 100 { // so that others overtake it
				runtime.Gosched()
			}
		case "suspend":
			return agentloop.Result{}, agentloop.Suspend("later")
		case "latin":
			return agentloop.Text("caf\xe9 " + c.ID), nil
		case "cancel":
			ctx.Value(cancelKey{}).(context.CancelFunc)()
			return agentloop.Result{}, ctx.Err()
		case "abort":
			return agentloop.Result{}, agentloop.Abort(errBoom)
		}
		return agentloop.Result{Text: "ran " + c.ID, Value: c.ID}, nil
	}
}

// valid is the oracle: jsonschema/v5 as it is, past everything of ours.
func (w *world) valid(c middleware.ToolCall) {
	d := json.NewDecoder(strings.NewReader(c.Arguments))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		w.t.Errorf("%s saw what is not JSON: %q", c.Name, c.Arguments)
		return
	}
	if schema := oracle[c.Name]; schema != nil {
		if err := schema.Validate(v); err != nil {
			w.t.Errorf("%s saw invalid arguments: %s: %v", c.Name, c.Arguments, err)
		}
	}
}

var oracle = func() map[string]*jsonschema.Schema {
	m := map[string]*jsonschema.Schema{}
	for name, schema := range schemas {
		if schema != "" {
			m[name] = jsonschema.MustCompileString(name+".json", schema)
		}
	}
	return m
}()

// sound holds a state to its rules: results stand in call order, what ran
// stands in the history, only valid calls wait.
func (w *world) sound(s *agentloop.State) {
	n := 0
	for i, m := range s.Messages {
		for j, c := range m.ToolCalls {
			if len(s.Turn()) > 0 && i == len(s.Messages)-1 {
				if s.Turn()[j].Call != c && !s.Turn()[j].Edited {
					w.t.Errorf("in hand is another call than in the history: %+v, %+v", s.Turn()[j].Call, c)
				}
				continue
			}
			if i+1+j >= len(s.Messages) || s.Messages[i+1+j].ToolCallID != c.ID {
				require.Equal(w.t, len(s.Messages)-1, i, "results follow their calls, in order")
				continue
			}
			if n < len(s.Results) && s.Results[n].Call.ID == c.ID {
				require.Equal(w.t, c, s.Results[n].Call, "what ran stands in the history")
				require.Equal(w.t, s.Results[n].Text, s.Messages[i+1+j].Text())
				n++
			}
		}
	}
	require.Equal(w.t, len(s.Results), n, "every result stands in the history, in call order")
	for _, p := range s.Pending() {
		w.valid(p.Call)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range s.Results {
		w.done[fmt.Sprintf("%s/%d/%s", s.RunID, r.Turn, r.Call.ID)] = true
	}
	for _, c := range s.Turn() {
		if c.Status == agentloop.CallDone {
			w.done[fmt.Sprintf("%s/%d/%s", s.RunID, len(s.Steps), c.Call.ID)] = true
		}
	}
}

func (w *world) known(ctx context.Context, err error) {
	var refusal *middleware.ModelError
	wanted := []error{agentloop.ErrPending, agentloop.ErrMaxSteps, agentloop.ErrFailures, errBoom, middleware.ErrNoResponse}
	switch {
	case slices.ContainsFunc(wanted, func(e error) bool { return errors.Is(err, e) }):
	case errors.As(err, &refusal):
	case ctx.Err() != nil:
		require.ErrorIs(w.t, err, ctx.Err())
	default:
		require.NoError(w.t, err)
	}
}

// decide plays the person: some calls, in any order.
func (w *world) decide(s *agentloop.State) {
	for _, p := range rapid.Permutation(s.Pending()).Draw(w.t, "order") {
		var err error
		switch rapid.IntRange(0, 5).Draw(w.t, "decision") {
		case 0:
			err = s.Reject(p.Call.ID, "no")
		case 1:
			err = s.Edit(p.Call.ID, rapid.SampledFrom([]string{`{"city":"Rome"}`, `{"query":"x","limit":null}`, `{"passengers":[{"name":"Ann"}]}`, `{"city":null}`, "nonsense", ""}).Draw(w.t, "edit"))
		case 2:
			err = s.Resolve(p.Call.ID, agentloop.Text(fmt.Sprintf("%s by hand", p.Call.ID)))
		case 3, 4:
			err = s.Approve(p.Call.ID)
		}
		require.NoError(w.t, err)
	}
}
