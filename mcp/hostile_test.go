package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/hostile"
	"github.com/toolmend/toolmend/mcp"
)

// BenchmarkHostile prints the last part of the table of docs/measured/hostile-input.md.
func BenchmarkHostile(b *testing.B) {
	hostile.Table(b, os.Stdout, hostile.ListAttacks(), func(_ hostile.Group, s hostile.Sample) hostile.Run { return listing(b, s) })
	hostile.GrowthTable(b, os.Stdout, []hostile.Growing{{Name: "MCP lists", Make: func(n int) hostile.Run { return listing(b, hostile.ListGrowth(n)) }}})
}

// Every list is read without a panic, at a size at which that is quick.
func TestEveryListIsRead(t *testing.T) {
	t.Parallel()
	for _, a := range hostile.ListAttacks() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			require.NotNil(t, listing(t, a.Make(5000))(t.Context()))
		})
	}
}

// listing returns what Connect does with a list. The server's side of the
// connection is in the same process, and is measured with it.
func listing(tb testing.TB, s hostile.Sample) hostile.Run {
	return func(ctx context.Context) any {
		_, transport := newRaw(tb, func(string, json.RawMessage) (string, error) { return s.Text, nil })
		server, err := mcp.Connect(ctx, transport, mcp.Options{})
		if err != nil {
			return err
		}
		defer func() { _ = server.Close() }()
		return server.Table()
	}
}
