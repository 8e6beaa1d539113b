package agentloop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Source gives tools that may change while a program runs. It is asked when a
// run starts and before each further model step; what it gave is what that
// step's calls are judged and run by. It is used by every run of an Agent, at
// the same time.
//
// It returns the same slice as before to say that nothing has changed. After
// another one Options.ToolMiddleware is applied anew: a cache is empty then.
// A tool that New would refuse is left out: one without a name or a function,
// or whose name is taken by one of Options.Tools or by an earlier one. An error
// ends the run.
type Source func(ctx context.Context) ([]Tool, error)

// given is what a Source gave last, and the agent that has those tools.
type given struct {
	mu    sync.Mutex
	tools []Tool
	agent *Agent
}

// sourced returns the agent with the tools that its source has now. Once the
// context has ended nobody is asked: the next step says so.
func (a *Agent) sourced(ctx context.Context) (*Agent, error) {
	if a.o.Source == nil || ctx.Err() != nil {
		return a, nil
	}
	tools, err := a.o.Source(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ended(ctx)
	case err != nil:
		return nil, fmt.Errorf("agentloop: Options.Source: %w", err)
	}
	a.given.mu.Lock()
	defer a.given.mu.Unlock()
	if a.given.agent == nil || !same(a.given.tools, tools) {
		now := *a
		now.tools, now.defs = maps.Clone(a.tools), slices.Clip(a.defs)
		for _, t := range tools {
			_ = now.add(t) // a stranger's tool must not end the run
		}
		a.given.tools, a.given.agent = tools, &now
	}
	return a.given.agent, nil
}

// same reports whether a and b are one slice.
func same(a, b []Tool) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
