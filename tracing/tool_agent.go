package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/toolmend/toolmend/middleware"
)

const (
	invokeAgent = "invoke_agent" // operation, and the name of the span
	agentName   = "gen_ai.agent.name"
)

// NewAgent returns a function that runs an agent under one INTERNAL span,
// "invoke_agent {name}", after the GenAI conventions, so that the spans of its
// steps and tools are children of one. name may be empty. paused says of an
// error that it is no failure, such as that of a run which waits for a person;
// nil: every error is one. What run returns is returned as it is, and a panic
// goes on. Safe for concurrent use.
//
//	traced := tracing.NewAgent(o, "support", nil)
//	err := traced(ctx, func(ctx context.Context) error { return agent.Run(ctx, s) })
func NewAgent(o Options, name string, paused func(error) bool) func(ctx context.Context, run func(context.Context) error) error {
	r := newRecorder(o)
	kvs := appendSet([]attribute.KeyValue{attribute.String(operationName, invokeAgent), attribute.String(providerName, r.provider)}, agentName, name)
	span := invokeAgent
	if name != "" {
		span += " " + name
	}
	return func(ctx context.Context, run func(context.Context) error) (err error) {
		c := r.beginNamed(ctx, span, kvs...)
		returned := false
		defer func() { c.finish(c.agentOutcome(err, returned, paused)) }() // also where run panics
		err = run(c.ctx)
		returned = true
		return err
	}
}

func (c *running) agentOutcome(err error, returned bool, paused func(error) bool) (o outcome) {
	guard("agent outcome", func() {
		if !returned || err != nil && (paused == nil || !paused(err)) {
			o = outcomeOf(c.ctx, &middleware.Response{}, err, returned)
		}
	})
	return o
}
