package agentloop_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

func TestCacheTools(t *testing.T) {
	t.Parallel()
	calls := 0
	tool := agentloop.CacheTools(2)(func(_ context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		calls++
		switch c.Arguments {
		case "fails":
			return agentloop.Result{}, errors.New("no")
		case "is error":
			return agentloop.Result{IsError: true}, nil
		}
		return agentloop.Result{Text: c.Name + c.Arguments, Value: calls}, nil
	})
	ask := func(name, arguments string, want int) {
		t.Helper()
		r, err := tool(t.Context(), middleware.ToolCall{Name: name, Arguments: arguments})
		if err == nil && !r.IsError {
			require.Equal(t, name+arguments, r.Text)
		}
		require.Equal(t, want, calls)
	}
	ask("a", "1", 1)
	ask("a", "1", 1)
	ask("b", "1", 2) // another tool
	ask("a", "1", 2) // used last: stays
	ask("a", "2", 3) // and b goes
	ask("a", "1", 3)
	ask("b", "1", 4)
	for _, bad := range []string{"fails", "is error"} {
		before := calls
		ask("a", bad, before+1)
		ask("a", bad, before+2)
	}
	require.PanicsWithValue(t, "agentloop: CacheTools: n must be positive, got 0", func() { agentloop.CacheTools(0) })
}

func TestCacheToolsServesManyGoroutines(t *testing.T) {
	t.Parallel()
	tool := agentloop.CacheTools(3)(func(_ context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Text(c.Arguments), nil
	})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			arguments := string(rune('a' + i%5))
			r, err := tool(t.Context(), middleware.ToolCall{Arguments: arguments})
			if err != nil || r.Text != arguments {
				t.Errorf("%q, %v for %q", r.Text, err, arguments)
			}
		})
	}
	wg.Wait()
}
