package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/durable/temporalagent"
	"github.com/toolmend/toolmend/middleware"
)

// What follows is in docs/durable.md as a diff: a program before and after it
// moves from Agent.Run to Temporal.

// region: before
func runOnce(ctx context.Context, agent *agentloop.Agent) error {
	s := agentloop.NewState(middleware.User("Book me a flight."))
	if err := agent.Run(ctx, s); err != nil {
		return err
	}
	fmt.Println(s.Answer())
	return nil
}

// endregion

// region: after
func runDurably(ctx context.Context, agent *agentloop.Agent, c client.Client, blobs temporalagent.BlobStore) error {
	plugin, err := temporalagent.New(temporalagent.WorkerOptions{Agents: map[string]*agentloop.Agent{"travel": agent}, Blobs: blobs})
	if err != nil {
		return err
	}
	if err := worker.New(c, "agents", worker.Options{Plugins: []worker.Plugin{plugin}}).Start(); err != nil {
		return err
	}
	s, err := temporalagent.Run(ctx, c, temporalagent.Options{ID: "trip-17", TaskQueue: "agents", Agent: "travel", Blobs: blobs}, middleware.User("Book me a flight."))
	if err != nil {
		return err
	}
	fmt.Println(s.Answer())
	return nil
}

// endregion

var _, _ = runOnce, runDurably

// TestMove holds the diff in the docs to both programs, and to ten lines.
func TestMove(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/durable.md")
	require.NoError(t, err)
	_, diff, ok := strings.Cut(string(doc), "```diff\n")
	require.True(t, ok)
	diff, _, ok = strings.Cut(diff, "```")
	require.True(t, ok)
	var before, after strings.Builder
	added := 0
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '-':
			before.WriteString(line[1:])
		case '+':
			after.WriteString(line[1:])
			added++
		case ' ':
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		default:
			t.Errorf("a line of no diff: %q", line)
		}
	}
	require.Equal(t, region(t, "before"), before.String())
	require.Equal(t, region(t, "after"), after.String())
	require.LessOrEqual(t, added, 10)
}

func region(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile("move_test.go")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(source), "// region: "+name+"\n")
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "\n// endregion")
	require.True(t, ok)
	return text
}
