package durabletest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/agentloop/durabletest"
)

// The loop in memory passes: inMemory is the engine of the example.
func TestInMemory(t *testing.T) {
	t.Parallel()
	durabletest.Run(t, inMemory)
}

// A minimal engine: it records what each effect returned, and replays the whole
// run from the record in each process.
func replayed(t *testing.T, c *durabletest.Case) (*agentloop.State, error) {
	first, err := json.Marshal(agentloop.NewState(c.Messages...))
	require.NoError(t, err)
	var record []step
	for range 100 {
		s := new(agentloop.State)
		require.NoError(t, json.Unmarshal(first, s))
		p, err := c.Process(t.Context(), nil)
		require.NoError(t, err)
		err = agentloop.Drive(s, &recorder{c: c, p: p, record: &record})
		if !p.Killed() {
			return s, err
		}
	}
	t.Fatal("the run does not end")
	return nil, nil
}

type step struct {
	state   []byte
	last    bool
	err     error
	results []ended
}

type ended struct {
	place  int
	result agentloop.Result
	err    error
}

type recorder struct {
	c      *durabletest.Case
	p      *durabletest.Process
	record *[]step
	next   int
}

// once does an effect that is not in the record, or returns the one that is.
func (r *recorder) once(do func() step) (step, error) {
	if r.next++; r.next > len(*r.record) {
		made := do()
		if r.p.Killed() {
			return step{}, context.Canceled
		}
		*r.record = append(*r.record, made)
	}
	made := (*r.record)[r.next-1]
	return made, made.err
}

func (r *recorder) on(s *agentloop.State, do func(*agentloop.State) (agentloop.Step, error)) (agentloop.Step, error) {
	before, _ := json.Marshal(s)
	made, err := r.once(func() step {
		copied := new(agentloop.State)
		_ = json.Unmarshal(before, copied)
		made, err := do(copied)
		after, _ := json.Marshal(copied)
		return step{state: after, last: made.Last, err: err}
	})
	if made.state != nil {
		if bad := json.Unmarshal(made.state, s); bad != nil {
			return agentloop.Step{}, bad
		}
	}
	return agentloop.Step{Last: made.last}, err
}

func (r *recorder) Ask(s *agentloop.State) (agentloop.Step, error) {
	return r.on(s, r.p.Agent.Effects(r.p.Context).Ask)
}

func (r *recorder) Await(s *agentloop.State) error {
	_, err := r.on(s, func(s *agentloop.State) (agentloop.Step, error) {
		if err := r.c.Decide(s.Pending(), s); err != nil {
			return agentloop.Step{}, err
		}
		return agentloop.Step{}, r.p.Agent.Effects(r.p.Context).Await(s)
	})
	return err
}

func (r *recorder) Tools(calls []agentloop.CallInfo, done func(int, agentloop.Result, error)) error {
	var abort error
	for i := range calls {
		if calls[i].AtMostOnce { // the attempt is recorded before the call
			begun := r.next < len(*r.record)
			_, _ = r.once(func() step { return step{} })
			if begun && r.next == len(*r.record) { // and its end is not
				_, _ = r.once(func() step { return step{} })
				continue
			}
		}
		made, err := r.once(func() (made step) {
			made.err = r.p.Agent.Effects(r.p.Context).Tools(calls[i:i+1], func(_ int, result agentloop.Result, err error) {
				made.results = append(made.results, ended{i, result, err})
			})
			return made
		})
		if r.p.Killed() {
			return err
		}
		abort = errors.Join(abort, err)
		for _, e := range made.results {
			done(e.place, e.result, e.err)
		}
	}
	return abort
}

func TestReplayed(t *testing.T) {
	t.Parallel()
	durabletest.Run(t, replayed)
}
