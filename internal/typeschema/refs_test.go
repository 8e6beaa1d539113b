package typeschema

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inCycles finds the nodes that are among those that a path from them reaches.
func TestInCycles(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		nodes := 1 + random.IntN(8)
		next := map[string][]string{}
		for node := range nodes {
			next[fmt.Sprint(node)] = nil
			for range random.IntN(3) {
				next[fmt.Sprint(node)] = append(next[fmt.Sprint(node)], fmt.Sprint(random.IntN(nodes)))
			}
		}
		cycles := inCycles(next)
		for node := range next {
			require.Equal(t, reached(next, node)[node], cycles[node], "%s of %v", node, next)
		}
	}
}

// reached returns the nodes that a path from start reaches.
func reached(next map[string][]string, start string) map[string]bool {
	found := map[string]bool{}
	for todo := next[start]; len(todo) > 0; todo = todo[1:] {
		if node := todo[0]; !found[node] {
			found[node] = true
			todo = append(todo[:len(todo):len(todo)], next[node]...)
		}
	}
	return found
}

// A chain of definitions takes linear time: to follow it from each of its nodes
// would take minutes.
func TestInCyclesIsLinear(t *testing.T) {
	t.Parallel()
	const n = 100_000
	next := map[string][]string{}
	for node := range n {
		next[fmt.Sprint(node)] = []string{fmt.Sprint(node + 1)}
	}
	start := time.Now()
	require.Empty(t, inCycles(next))
	require.Less(t, time.Since(start), 20*time.Second)
	next[fmt.Sprint(n-1)] = []string{"0"}
	require.Len(t, inCycles(next), n)
}
