// Package agentloop runs tools and asks the model again until it is done.
//
//	agent, err := agentloop.New(call, agentloop.Options{Tools: tools})
//	s := agentloop.NewState(middleware.User("How is the weather in Oslo?"))
//	err = agent.Run(ctx, s)
//	fmt.Println(s.Answer())
//
// A run is a [State]: the conversation, the calls in hand and the usage. A State
// can be saved as JSON at every step, so a run can stop for a person's decision
// and go on in another process days later. A tool is a Go function over a struct
// ([NewTool]). It is called only with arguments that satisfy its schema and
// decode.
//
// # What happens in a run
//
// One step is a model call, or the tools of the turn that it opened. Invalid calls
// are not run: the model receives error responses for its turn instead. Tools run
// concurrently, and results are in call order. A tool that fails, panics, times
// out or does not exist gives the model an error result. Cancellation ends the run
// and is never sent to the model.
//
// # How attempts multiply
//
// Three layers may ask the model again, and each one counts for itself.
// Options.MaxFailures bounds the turns in a row whose calls are invalid (3).
// Within a turn, argsvalidate.Options.MaxAttempts bounds the answers (3); for
// each answer, retry.Options.MaxAttempts bounds the model calls (4). So one turn
// of the conversation costs at most 3 × 4 = 12 model calls, and a model that
// never manages a valid call costs 3 × 3 × 4 = 36 before Run returns
// ErrFailures. A model that sends the same invalid call again and again costs 4
// answers: the steps of a run know what failed in the steps before, and a run
// ends after the fourth answer in a row that brings nothing new. A provider's
// Retry-After may add a wait before each of them.
// Options.MaxSteps bounds the turns of a run. Package budget bounds model calls
// and tokens across all layers, if budget.New is in the chain that the agent
// calls. A deadline of the context bounds the time.
//
// The loop itself is deterministic: it has no clock, no random number and, but
// for the tools of a turn, no goroutine. What it does to the world is a model
// call, a batch of tools and a checkpoint.
package agentloop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// Options configure an Agent. The zero value runs until the model answers, at
// most 25 steps.
type Options struct {
	Tools []Tool
	// Source gives further tools, which may come and go, such as those of an MCP
	// server. Nil: there are none.
	Source Source
	// Request is the template for each model call: model, leading system
	// messages, temperature. Its tools are sent along; nothing runs them here.
	Request  *middleware.Request
	StopWhen StopCondition // called after every step; nil: never. An answer without tool calls ends every run
	MaxSteps int           // model steps of one Run; 0 means 25
	// MaxFailures is how many turns in a row may hold invalid calls, or a text
	// that a layer such as textcall could not read; 0 means 3. Tools that fail do
	// not count.
	MaxFailures    int
	Parallel       int // tools of one run at once; 0 means 8
	ToolMiddleware ToolMiddleware
	// Validator validates every call before it runs, unless the step has
	// validated those very bytes: after an approval or an edit, and when a state
	// goes on in another process. Build the chain from the same one, by
	// Validator.Middleware, so that its rules hold for a person's edits too; Run
	// returns ErrValidator for a chain with others only. It is required as soon as
	// a tool needs approval. Nil: the default rules, and no edit is accepted.
	Validator *argsvalidate.Validator
	// Checkpoint saves s: before tools run, after each result while other calls
	// of the turn run or have yet to begin, and after each step, also one that
	// failed or was cut off by the end of the context (then under a context
	// that has not ended). It must not change s. A process that goes on from
	// the last save runs only those calls again that were running then. An
	// error ends the run: no further call begins, those that run are waited
	// for, and s has their results. It stands beside another error of the step.
	Checkpoint func(ctx context.Context, s *State) error
}

const (
	defaultMaxSteps    = 25
	defaultMaxFailures = 3
	defaultParallel    = 8
	maxNameLength      = 64
)

// Agent runs conversations. It is safe for concurrent use; each run has its
// own State.
type Agent struct {
	o     Options
	call  middleware.ModelCall
	tools map[string]Tool
	defs  []middleware.Tool
	given *given // by Options.Source, last

	validated bool // Options.Validator was set
}

// Validate returns what is wrong with the bounds of o, nil if nothing is: for
// options read from a file or a flag. New returns it, and checks the tools, too.
func (o Options) Validate() error {
	for _, n := range []struct {
		field string
		value int
	}{{"MaxSteps", o.MaxSteps}, {"MaxFailures", o.MaxFailures}, {"Parallel", o.Parallel}} {
		if n.value < 0 {
			return fmt.Errorf("agentloop: Options.%s: must not be negative, got %d", n.field, n.value)
		}
	}
	return nil
}

// New returns an agent that asks call. It fails with the error of o.Validate,
// and on tools that cannot be told apart or run: a name that is missing, longer
// than 64 bytes or taken, one without a function, one that needs approval where
// Options.Validator is nil.
func New(call middleware.ModelCall, o Options) (*Agent, error) {
	if call == nil {
		return nil, errors.New("agentloop: the model call is nil")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	a := &Agent{o: o.withDefaults(), call: call, tools: map[string]Tool{}, given: &given{}, validated: o.Validator != nil}
	for _, t := range o.Tools {
		if err := a.add(t); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (o Options) withDefaults() Options {
	o.MaxSteps = cmp.Or(o.MaxSteps, defaultMaxSteps)
	o.MaxFailures = cmp.Or(o.MaxFailures, defaultMaxFailures)
	o.Parallel = cmp.Or(o.Parallel, defaultParallel)
	if o.Validator == nil {
		o.Validator = argsvalidate.NewValidator(argsvalidate.Options{})
	}
	if o.Request == nil {
		o.Request = &middleware.Request{}
	}
	o.Request = o.Request.Clone() // the caller's may change
	return o
}

// add checks a tool, wraps it and takes it in.
func (a *Agent) add(t Tool) error {
	name := t.Def.Name
	switch _, taken := a.tools[name]; {
	case name == "":
		return errors.New("agentloop: a tool has no name")
	case len(name) > maxNameLength:
		return fmt.Errorf("agentloop: the name of tool %.64q… is longer than %d bytes", name, maxNameLength)
	case taken:
		return fmt.Errorf("agentloop: two tools are named %s", name)
	case slices.ContainsFunc(a.o.Request.Tools, func(r middleware.Tool) bool { return r.Name == name }):
		return fmt.Errorf("agentloop: tool %q is in Options.Tools and in Options.Request", name)
	case t.Func == nil && t.Def.Kind != middleware.KindHosted:
		return fmt.Errorf("agentloop: tool %s has no function", name)
	case t.Approval && !a.validated:
		return fmt.Errorf("agentloop: tool %q needs approval: Options.Validator must be set, to the one that the chain is built from", name)
	case t.Timeout < 0:
		return fmt.Errorf("agentloop: tool %s: Timeout must not be negative, got %v", name, t.Timeout)
	}
	if t.Func != nil && a.o.ToolMiddleware != nil {
		if t.Func = a.o.ToolMiddleware(t.Func); t.Func == nil {
			return fmt.Errorf("agentloop: Options.ToolMiddleware made tool %q nil", name)
		}
	}
	a.tools[name] = t
	a.defs = append(a.defs, t.Def)
	return nil
}

// names returns the names of the agent's tools, sorted.
func (a *Agent) names() []string { return slices.Sorted(maps.Keys(a.tools)) }

// Source returns tools that may change while a program runs. A run calls it when
// it starts and before each further model step. The calls of that step are
// validated and run with the tools that it returned. It must be safe for
// concurrent use.
//
// Source returns the same slice as before if nothing has changed. For another
// slice Options.ToolMiddleware is applied again, so a cache is empty then. A tool
// that New would refuse is left out: a tool without a function, one whose name is
// missing, too long, or taken by one of Options.Tools or by an earlier one, and
// one that needs approval where Options.Validator is nil. An error ends the run.
type Source func(ctx context.Context) ([]Tool, error)

// given is what a Source returned last, and the agent that has those tools.
type given struct {
	mu    sync.Mutex
	tools []Tool
	agent *Agent
}

// sourced returns the agent with the tools that its source has now. If the context
// has ended the source is not called: the next step returns the error.
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
			_ = now.add(t) // a tool that cannot run must not end the run
		}
		a.given.tools, a.given.agent = tools, &now
	}
	return a.given.agent, nil
}

// same reports whether a and b are one slice.
func same(a, b []Tool) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
