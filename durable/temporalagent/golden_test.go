package temporalagent

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// The histories in testdata were recorded with a real server, each by the version
// of this package that had its features first. They are never recorded again: a
// running agent has such a history, and a new version must continue it. What a
// version adds is recorded in a further file:
//
//	go test -run TestReplay -record NAME -address HOST:PORT
var (
	record  = flag.String("record", "", "record testdata/`NAME`.json with the server at -address")
	address = flag.String("address", "127.0.0.1:7233", "the server to record with")
)

// Every history that a version of this package has written is replayed.
func TestReplay(t *testing.T) {
	t.Parallel()
	if *record != "" {
		recordHistory(t, *record)
	}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			require.NoError(t, replay(t, readFile(t, file)))
		})
	}
}

// A replay notices steps that have changed.
func TestReplayOfOtherSteps(t *testing.T) {
	t.Parallel()
	history := strings.ReplaceAll(readFile(t, "testdata/1-tools.json"), toolActivity, "other")
	require.ErrorContains(t, replay(t, history), "TMPRL1100")
}

// replay replays a history on a worker whose agents have no tools: whatever a
// deployment changes, a replay does not depend on it. It calls nothing of the
// agent, so it repeats no span and no metric.
func replay(t *testing.T, history string) error {
	touched := func(what string) { t.Errorf("a replay has called %s", what) }
	a, err := agentloop.New(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		touched("the model")
		return nil, nil
	}, agentloop.Options{
		Source:   func(context.Context) ([]agentloop.Tool, error) { touched("the source"); return nil, nil },
		StopWhen: func(*agentloop.State) bool { touched("the stop condition"); return false },
	})
	require.NoError(t, err)
	p, err := New(WorkerOptions{Agents: map[string]*agentloop.Agent{"golden": a}})
	require.NoError(t, err)
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Plugins: []worker.Plugin{p}})
	require.NoError(t, err)
	var h historypb.History
	require.NoError(t, temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}.Unmarshal([]byte(history), &h))
	return r.ReplayWorkflowHistory(slog.New(slog.DiscardHandler), &h)
}

func readFile(t *testing.T, name string) string {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

// goldens are the runs that are recorded.
var goldens = map[string]func(t *testing.T, run func(msgs ...middleware.Message) *Handle){
	// Tools of each kind, an invalid call, and a tool that fails.
	"1-tools": func(t *testing.T, run func(...middleware.Message) *Handle) {
		s, err := run(middleware.User("tools")).Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "done", s.Answer())
	},
	// Decisions of each kind, and a message.
	"1-decisions": func(t *testing.T, run func(...middleware.Message) *Handle) {
		h := run(middleware.User("decisions"))
		pending(t, h, 4)
		require.NoError(t, h.Send(t.Context(), middleware.User("and again")))
		require.ErrorContains(t, h.Edit(t.Context(), "1a", `{"at":7}`), "waits again")
		require.NoError(t, h.Edit(t.Context(), "1a", `{"at":"b"}`))
		require.ErrorIs(t, h.Approve(t.Context(), "1a"), agentloop.ErrDecided)
		require.ErrorIs(t, h.Approve(t.Context(), "zz"), agentloop.ErrUnknownCall)
		require.NoError(t, h.Approve(t.Context(), "1b"))
		require.NoError(t, h.Reject(t.Context(), "1c", "no"))
		require.NoError(t, h.Resolve(t.Context(), "1d", agentloop.Text("by hand")))
		s, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "done", s.Answer())
		require.Len(t, s.Results, 4)
	},
	// An error of the model ends the run.
	"1-refused": func(t *testing.T, run func(...middleware.Message) *Handle) {
		s, err := run(middleware.User("refused")).Wait(t.Context())
		var refused *middleware.ModelError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 400, refused.StatusCode)
		require.Len(t, s.Messages, 1)
	},
	// The run is canceled while a tool runs.
	"1-canceled": func(t *testing.T, run func(...middleware.Message) *Handle) {
		h := run(middleware.User("canceled"))
		<-hanging
		require.NoError(t, h.client.CancelWorkflow(t.Context(), h.o.ID, ""))
		s, err := h.Wait(t.Context())
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, s.Messages, 2)
	},
	// Decisions in a run that has continued as new, with a server that suggests it
	// early: limit.historyCount.suggestContinueAsNew=20.
	"2-continued": func(t *testing.T, run func(...middleware.Message) *Handle) {
		h := run(middleware.User("continued"))
		require.NoError(t, h.Approve(t.Context(), pending(t, h, 1)[0].Call.ID))
		s, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "done", s.Answer())
		require.Len(t, s.Results, 4)
	},
	// A tool with a result of 100 kB, and a long conversation, in a blob store.
	"2-blobs": func(t *testing.T, run func(...middleware.Message) *Handle) {
		s, err := run(middleware.User("blobs")).Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "done", s.Answer())
		require.Len(t, s.Results[0].Text, 100_000)
	},
}

// pending returns the calls that wait, once there are n.
func pending(t *testing.T, h *Handle, n int) (calls []agentloop.Pending) {
	require.Eventually(t, func() (ok bool) {
		var err error
		calls, err = h.Pending(t.Context())
		require.NoError(t, err)
		return len(calls) == n
	}, waitFor, pollEvery)
	return calls
}

var hanging = make(chan struct{}, 1)

const (
	waitFor   = 20 * time.Second
	pollEvery = 50 * time.Millisecond
)

// goldenAgent answers what the first message of a conversation asks for.
func goldenAgent(t *testing.T) *agentloop.Agent {
	call := func(id, name, args string) middleware.ToolCall {
		return middleware.ToolCall{ID: id, Name: name, Arguments: args}
	}
	const at = `{"at":"a"}`
	scripts := map[string][]middleware.Message{
		"tools": {
			middleware.Assistant("", call("1a", "look", at), call("1b", "pure", at), call("1c", "alone", at), call("1d", "once", at)),
			middleware.Assistant("", call("2a", "look", "{}")),
			middleware.Assistant("", call("3a", "fail", at), call("3b", "look", at)),
			middleware.Assistant("done"),
		},
		"decisions": {
			middleware.Assistant("", call("1a", "pay", at), call("1b", "pay", at), call("1c", "pay", at), call("1d", "pay", at)),
			middleware.Assistant("done"),
		},
		"continued": {
			middleware.Assistant("", call("1a", "look", at), call("1b", "look", at)),
			middleware.Assistant("", call("2a", "look", at)),
			middleware.Assistant("", call("3a", "pay", at)),
			middleware.Assistant("done"),
		},
		"blobs": {
			middleware.Assistant("", call("1a", "long", at)),
			middleware.Assistant(strings.Repeat("I think. ", 1900), call("2a", "look", at)),
			middleware.Assistant(strings.Repeat("I think. ", 1900), call("3a", "look", at)),
			middleware.Assistant("done"),
		},
		"canceled": {middleware.Assistant("", call("1a", "hang", at))},
	}
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		script, said := scripts[req.Messages[0].Text()], 0
		for _, m := range req.Messages {
			if m.Role == middleware.RoleAssistant {
				said++
			}
		}
		if said >= len(script) {
			return nil, &middleware.ModelError{StatusCode: 400, Err: fmt.Errorf("refused")}
		}
		return &middleware.Response{Message: script[said].Clone(), Usage: middleware.Usage{InputTokens: 10, OutputTokens: 1}}, nil
	}
	tool := func(name string, mark func(*agentloop.Tool)) agentloop.Tool {
		tool := agentloop.RawTool(name, "", json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`),
			func(ctx context.Context, c middleware.ToolCall) (agentloop.Result, error) {
				switch name {
				case "fail":
					return agentloop.Result{}, fmt.Errorf("broken")
				case "long":
					return agentloop.Text(strings.Repeat("0123456789", 10_000)), nil
				case "hang":
					hanging <- struct{}{}
					<-ctx.Done()
					return agentloop.Result{}, ctx.Err()
				}
				return agentloop.Text(name + " " + c.Arguments), nil
			})
		mark(&tool)
		return tool
	}
	v := argsvalidate.NewValidator(argsvalidate.Options{MaxAttempts: 1})
	a, err := agentloop.New(v.Middleware()(model), agentloop.Options{Validator: v, Tools: []agentloop.Tool{
		tool("look", func(*agentloop.Tool) {}),
		tool("fail", func(*agentloop.Tool) {}),
		tool("hang", func(*agentloop.Tool) {}),
		tool("long", func(*agentloop.Tool) {}),
		tool("pure", func(t *agentloop.Tool) { t.Pure = true }),
		tool("alone", func(t *agentloop.Tool) { t.Serial = true }),
		tool("once", func(t *agentloop.Tool) { t.AtMostOnce = true }),
		tool("pay", func(t *agentloop.Tool) { t.Approval = true }),
	}})
	require.NoError(t, err)
	return a
}

func recordHistory(t *testing.T, name string) {
	c, err := client.Dial(client.Options{HostPort: *address, Logger: slog.New(slog.DiscardHandler), Identity: "golden"})
	require.NoError(t, err)
	defer c.Close()
	o := WorkerOptions{Agents: map[string]*agentloop.Agent{"golden": goldenAgent(t)}, Heartbeat: pollEvery, HeartbeatTimeout: waitFor}
	if strings.HasSuffix(name, "blobs") {
		o.Blobs = &memory{}
	}
	p, err := New(o)
	require.NoError(t, err)
	w := worker.New(c, name, worker.Options{Plugins: []worker.Plugin{p}, Identity: "golden"})
	require.NoError(t, w.Start())
	defer w.Stop()
	id := "golden-" + name
	goldens[name](t, func(msgs ...middleware.Message) *Handle {
		h, err := Start(t.Context(), c, Options{ID: id, TaskQueue: name, Agent: "golden", Blobs: o.Blobs}, msgs...)
		require.NoError(t, err)
		return h
	})
	first := write(t, c, id, "", name)
	if first != "" { // the run has continued as new: this is how it began
		write(t, c, id, first, name)
	}
}

// write records the history of a run, and returns the id of the run that continued
// as this one.
func write(t *testing.T, c client.Client, id, runID, name string) (first string) {
	var h historypb.History
	for events := c.GetWorkflowHistory(t.Context(), id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		h.Events = append(h.Events, e)
	}
	b, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(&h)
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	b = bytes.ReplaceAll(b, []byte(host), []byte("worker")) // in the names of sticky queues
	require.NoError(t, os.MkdirAll("testdata", 0o755))
	started := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
	if first = started.GetFirstExecutionRunId(); runID == "" && first != started.GetOriginalExecutionRunId() {
		name += "-end"
	} else {
		first = ""
	}
	require.NoError(t, os.WriteFile(filepath.Join("testdata", name+".json"), append(b, '\n'), 0o644))
	return first
}
