// Package agentloop runs an agent: it calls the model, runs the tools that
// the model calls, and repeats both until the model answers.
//
//	agent, err := agentloop.New(call, agentloop.Options{Tools: tools})
//	s := agentloop.NewState(middleware.User("How is the weather in Oslo?"))
//	err = agent.Run(ctx, s)
//	fmt.Println(s.Answer())
//
// A run is a [State]: the conversation, the calls that wait for results, and
// the usage. A State can be saved as JSON after every step, so a run can
// stop for a person's decision and continue in another process days later. A
// tool is a Go function with a struct as its parameter ([NewTool]). It is
// called only with arguments that satisfy its schema and decode into the
// struct.
//
// # Steps
//
// A step is one model call, or the tools that the model called. If a call is
// invalid, no tool of that turn runs, and the model gets error replies.
// Tools run concurrently. Their results are in the order of the calls. If a
// tool fails, panics, times out or does not exist, the model gets an error
// result. A cancellation ends the run and is never sent to the model.
//
// # How attempts multiply
//
// Three layers may call the model again, and each has its own limit:
//
//   - Options.MaxFailures is the number of turns in a row whose calls are
//     invalid (3).
//   - argsvalidate.Options.MaxAttempts is the number of responses in one
//     step (3).
//   - retry.Options.MaxAttempts is the number of model calls for one
//     response (4).
//
// So one step takes at most 3 × 4 = 12 model calls. A model that never makes
// a valid call takes 3 × 3 × 4 = 36 model calls before Run returns
// ErrFailures. A model that repeats the same invalid call takes 4 responses,
// because the steps of a run share their failures: the run ends after the
// fourth response in a row that only repeats failures. A provider's
// Retry-After may add a wait before each model call.
//
// Options.MaxSteps limits the steps of a run. Package budget limits model
// calls and tokens across all layers, if budget.New is in the chain that the
// agent calls. A deadline of the context limits the time.
//
// # Engines
//
// The loop is deterministic: it uses no clock, no random numbers and no
// goroutines. Everything else is one of three [Effects]: ask the model, run
// tools, await decisions. Run does them in its own process. An engine that
// survives its processes records what they returned and calls [Drive]. Package
// durabletest checks an engine.
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

// Options configure New. The zero value runs at most 25 model steps, without tools.
type Options struct {
	Tools []Tool
	// Source returns further tools that may change during a run, such as those
	// of an MCP server; nil means none.
	Source Source
	// Request is the template for each model call: the model, leading system
	// messages, the temperature. The model also gets its tools, but the agent
	// cannot run them.
	Request  *middleware.Request
	StopWhen StopCondition // ends the run after a step; nil means never. An answer without tool calls always ends it
	MaxSteps int           // model steps of one Run; 0 means 25
	// MaxFailures is the number of failed turns in a row that ends the run. A
	// turn failed if it has an invalid call, or a text that a middleware such as
	// textcall could not read. A failed tool does not count. 0 means 3.
	MaxFailures    int
	Parallel       int // tools of one run that run concurrently; 0 means 8
	ToolMiddleware ToolMiddleware
	// Validator validates the calls that the model step has not validated in
	// exactly that form: after an approval or an edit, and when a state
	// continues in another process. Use the Validator whose Middleware is in the
	// chain, so that the same rules apply to a person's edits. Run returns
	// ErrValidator if the chain has only other ones. Validator is required if a
	// tool needs approval. nil means the default options, and edits are refused.
	Validator *argsvalidate.Validator
	// Checkpoint saves s. It is called before tools run, after each result of a
	// turn except the last, and after each step, also after a failed one. If the
	// context has ended, Checkpoint gets a context that has not. It must not
	// change s.
	//
	// A process that continues from the last saved state runs only those calls
	// again that were running at that time. An error of Checkpoint ends the run:
	// no further tool starts, and s gets the results of those that are running.
	// The error is joined with the error of the step, if there is one.
	Checkpoint func(ctx context.Context, s *State) error
}

const (
	defaultMaxSteps    = 25
	defaultMaxFailures = 3
	defaultParallel    = 8
	maxNameLength      = 64
)

// Agent runs conversations. It is safe for concurrent use. Each run needs a State
// of its own.
type Agent struct {
	o     Options
	call  middleware.ModelCall
	tools map[string]Tool
	defs  []middleware.Tool
	last  *sourceState // of Options.Source

	validated bool // Options.Validator was set
}

// Validate returns the first number of o that is invalid as an error, or nil. Use
// it for options read from a file or a flag. New returns the same error, and also
// checks the tools.
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

// New returns an agent that uses call as its model. It returns the error of
// o.Validate, or an error for a tool: its name is missing, longer than 64 bytes or
// that of another tool, it has no function, its Timeout is negative, or it needs
// approval and Options.Validator is nil.
func New(call middleware.ModelCall, o Options) (*Agent, error) {
	if call == nil {
		return nil, errors.New("agentloop: the model call is nil")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	a := &Agent{o: o.withDefaults(), call: call, tools: map[string]Tool{}, last: &sourceState{}, validated: o.Validator != nil}
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

// Source returns tools that may change while a program runs. A run calls it
// at its start and before each further model step. The calls of that step
// are validated and run with these tools. A Source must be safe for
// concurrent use. An error ends the run.
//
// If nothing has changed, Source must return the same slice as before. For
// another slice, Options.ToolMiddleware is applied again, so the cache of
// CacheTools is then empty. Tools that New would refuse are left out. Of two
// tools with the same name, the one in Options.Tools or the earlier one is
// used.
type Source func(ctx context.Context) ([]Tool, error)

// sourceState is what a Source returned last, and the agent that has those tools.
type sourceState struct {
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
	a.last.mu.Lock()
	defer a.last.mu.Unlock()
	if a.last.agent == nil || !same(a.last.tools, tools) {
		now := *a
		now.tools, now.defs = maps.Clone(a.tools), slices.Clip(a.defs)
		for _, t := range tools {
			_ = now.add(t) // a tool that cannot run must not end the run
		}
		a.last.tools, a.last.agent = tools, &now
	}
	return a.last.agent, nil
}

// same reports whether a and b are one slice.
func same(a, b []Tool) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
