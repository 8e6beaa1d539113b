package durabletest_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/agentloop/durabletest"
)

// inMemory is the loop in memory, with a store that Options.Checkpoint writes.
func inMemory(t *testing.T, c *durabletest.Case) (*agentloop.State, error) {
	store, err := json.Marshal(agentloop.NewState(c.Messages...))
	check(t, err)
	for range 100 {
		s := new(agentloop.State)
		check(t, json.Unmarshal(store, s))
		var p *durabletest.Process
		p, err = c.Process(t.Context(), func(o *agentloop.Options) {
			o.Checkpoint = func(_ context.Context, s *agentloop.State) (err error) {
				if !p.Killed() {
					store, err = json.Marshal(s)
				}
				return err
			}
		})
		check(t, err)
		for err = agentloop.ErrPending; errors.Is(err, agentloop.ErrPending) && !p.Killed(); {
			check(t, c.Decide(s.Pending(), s))
			err = p.Agent.Run(p.Context, s)
		}
		if !p.Killed() {
			return s, err
		}
	}
	t.Fatal("the run does not end")
	return nil, nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A test calls durabletest.Run with its engine. Here the test is run by hand.
func Example() {
	_ = flag.Set("test.v", "false")
	all := func(string, string) (bool, error) { return true, nil }
	passed := testing.RunTests(all, []testing.InternalTest{{Name: "TestEngine", F: func(t *testing.T) { durabletest.Run(t, inMemory) }}})
	fmt.Println("passed:", passed)
	// Output:
	// passed: true
}
