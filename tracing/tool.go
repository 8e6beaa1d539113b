package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolmend/toolmend/middleware"
)

// Names of the GenAI conventions for tools and agents, beside those of the
// model calls.
const (
	executeTool   = "execute_tool" // operation, and the name of the span
	toolType      = "gen_ai.tool.type"
	toolFunction  = "function"
	toolWords     = "gen_ai.tool.description"
	toolArguments = "gen_ai.tool.call.arguments" // content
	toolResult    = "gen_ai.tool.call.result"    // content

	typeTool = "tool_error" // error.type of a result that says it is an error
)

// ToolOutcome is the result of a tool call, for its span.
type ToolOutcome struct {
	Text    string // the result, recorded as content
	IsError bool   // the model gets the result as an error
	Err     error  // the failure; nil if there is none, or if the error does not count as one
}

// ToolFunc runs one tool call.
type ToolFunc[R any] = func(ctx context.Context, call middleware.ToolCall) (R, error)

// NewTool returns a middleware for functions that run tool calls. It makes one
// span of kind INTERNAL for each call, "execute_tool {tool}", by the GenAI
// conventions, and runs next under it. R is the function's result. outcome reads
// it and is called only if the span or the metric is recorded. If outcome is nil, no
// result is recorded, and an error is a failure.
//
// The middleware returns the results of next unchanged, and a panic of next
// continues. Options have the same meaning as in New. Arguments, results and error
// texts are recorded only with Options.Content. The metric is
// gen_ai.execute_tool.duration. The only log record is about a panic, which is an
// exception event of the span too. It contains the panic value and the stack. The
// middleware is safe for concurrent use.
//
// Position: around tools that the request declares. The span and the metric take
// their name from the call, and a model can invent tool names.
func NewTool[R any](o Options, outcome func(R, error) ToolOutcome) func(next ToolFunc[R]) ToolFunc[R] {
	r := newRecorder(o)
	if outcome == nil {
		outcome = func(_ R, err error) ToolOutcome { return ToolOutcome{Err: err} }
	}
	return func(next ToolFunc[R]) ToolFunc[R] {
		return func(ctx context.Context, call middleware.ToolCall) (result R, err error) {
			c := r.beginTool(ctx, call)
			returned := false
			defer func() {
				var panicked any
				if !returned {
					panicked = recover() // nil also where next ended its goroutine
				}
				c.endTool(call.Name, returned, panicked, func() ToolOutcome { return outcome(result, err) })
				if panicked != nil {
					panic(panicked)
				}
			}()
			result, err = next(c.ctx, call)
			returned = true
			return result, err
		}
	}
}

// DescribeTool records the description of the tool on the span that NewTool has made,
// from the context of the tool. Package tooltrace does so for agentloop.
func DescribeTool(ctx context.Context, description string) {
	guard("span", func() {
		trace.SpanFromContext(ctx).SetAttributes(attribute.String(toolWords, bounded(description, maxDescription)))
	})
}

const maxDescription = 1 << 10 // bytes

// beginTool starts the span of one tool call.
func (r *recorder) beginTool(ctx context.Context, call middleware.ToolCall) running {
	name := bounded(call.Name, maxLabel)
	c := r.begin(ctx, executeTool+" "+name, internalSpan,
		attribute.String(operationName, executeTool),
		attribute.String(toolName, name))
	if c.recording {
		guard("span", func() {
			kvs := appendSet(make([]attribute.KeyValue, 0, 3), toolCallID, call.ID)
			if call.Kind == middleware.KindFunction {
				kvs = append(kvs, attribute.String(toolType, toolFunction))
			}
			if c.content.on {
				kvs = append(kvs, attribute.String(toolArguments, c.content.value(call.Arguments)))
			}
			c.span.SetAttributes(kvs...)
		})
	}
	return c
}

// endTool reports how a tool call ended.
func (c *running) endTool(name string, returned bool, panicked any, read func() ToolOutcome) {
	var end outcome
	took := time.Since(c.begun)
	if panicked != nil {
		c.tellPanic(name, middleware.NewPanicError(panicked))
	}
	if c.recording || c.meters.tools.Enabled(c.ctx) {
		guard("tool outcome", func() { end = c.toolOutcome(returned, read) })
		guard("metrics", func() {
			agent, _ := c.ctx.Value(agentKey{}).(string)
			c.meters.record(c.ctx, c.meters.tools, took, end.kind, appendSet(appendSet(nil, toolName, name), agentName, agent))
		})
	}
	c.finish(end)
}

// toolOutcome records the result of a tool, and returns what it means for the span.
func (c *running) toolOutcome(returned bool, read func() ToolOutcome) outcome {
	if !returned {
		return outcome{err: errToolPanicked, kind: typePanic}
	}
	t := read()
	if c.content.on && t.Err == nil {
		guard("span", func() { c.span.SetAttributes(attribute.String(toolResult, c.content.value(t.Text))) })
	}
	if t.Err == nil && t.IsError {
		return outcome{err: errors.New(t.Text), kind: typeTool}
	}
	return outcomeOf(c.ctx, &middleware.Response{}, t.Err, true)
}

type agentKey struct{} // of the name of the agent in a context

const (
	invokeAgent = "invoke_agent" // operation, and the name of the span
	agentName   = "gen_ai.agent.name"
)

// NewAgent returns a function that runs an agent under one span of kind INTERNAL,
// "invoke_agent {name}", by the GenAI conventions. The spans of the agent's steps
// and tools are its children. The metric is gen_ai.invoke_agent.duration. name may be empty. paused reports whether an error
// means that the run waits, for example for a person, and has not failed. If
// paused is nil, every error is a failure. The function returns the error of run
// unchanged, and a panic continues. It is safe for concurrent use.
//
//	traced := tracing.NewAgent(o, "support", nil)
//	err := traced(ctx, func(ctx context.Context) error { return agent.Run(ctx, s) })
func NewAgent(o Options, name string, paused func(error) bool) func(ctx context.Context, run func(context.Context) error) error {
	r := newRecorder(o)
	kvs := appendSet([]attribute.KeyValue{attribute.String(operationName, invokeAgent)}, agentName, name)
	span := invokeAgent
	if name != "" {
		span += " " + name
	}
	return func(ctx context.Context, run func(context.Context) error) (err error) {
		c := r.begin(context.WithValue(ctx, agentKey{}, name), span, internalSpan, kvs...)
		returned := false
		defer func() { // also where run panics
			took, o := time.Since(c.begun), c.agentOutcome(err, returned, paused)
			guard("metrics", func() { c.meters.record(c.ctx, c.meters.agents, took, o.kind, kvs) })
			c.finish(o)
		}()
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
