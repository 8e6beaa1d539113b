package agentloop

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/middleware"
)

// Tool is a tool that can run: made by NewTool, or by hand from a raw schema.
type Tool struct {
	Def          middleware.Tool
	Func         ToolFunc
	Approval     bool          // each call waits for State.Approve
	Serial       bool          // never beside other tools
	ReturnDirect bool          // its result is the answer and ends the run; an error never is
	Timeout      time.Duration // 0: none besides the context's
	Title        string        // for people, while it runs; "": its name
}

// ToolFunc runs a tool. The call's arguments are valid. An error is told to the
// model by its text, followed by the text of the Result, unless it is made by
// Abort or Suspend, or the context is done.
type ToolFunc func(ctx context.Context, call middleware.ToolCall) (Result, error)

// ToolMiddleware wraps every tool of an Agent: retry, limits, caching, tracing.
// It is called once for each tool, when the Agent is made, and once for each
// tool of a new slice of Options.Source.
type ToolMiddleware func(next ToolFunc) ToolFunc

// ChainTools returns one ToolMiddleware: ChainTools(a, b)(f) behaves as
// a(b(f)), by the rules of middleware.Chain.
func ChainTools(mws ...ToolMiddleware) ToolMiddleware {
	layers := slices.DeleteFunc(slices.Clone(mws), func(mw ToolMiddleware) bool { return mw == nil })
	return func(f ToolFunc) ToolFunc {
		for _, mw := range slices.Backward(layers) {
			f = mw(f)
		}
		return f
	}
}

// Result is what a tool gives back. Text that is not UTF-8 is made so.
type Result struct {
	Text    string `json:"text"`
	Value   any    `json:"-"` // for the program: never sent, never stored
	IsError bool   `json:"is_error,omitzero"`
	// Err is why the tool failed, for the program: never sent, never stored. It is
	// context.DeadlineExceeded where the tool timed out, and a
	// *middleware.PanicError where it panicked.
	Err error `json:"-"`
}

// Text returns a result of text alone.
func Text(text string) Result { return Result{Text: text} }

// NeedsApproval returns t so that each call waits for a decision.
func (t Tool) NeedsApproval() Tool {
	t.Approval = true
	return t
}

// title is what people are shown.
func (t Tool) title() string {
	if t.Title != "" {
		return t.Title
	}
	return t.Def.Name
}

// CallInfo says which call a tool is serving.
type CallInfo struct {
	Call        middleware.ToolCall
	Title       string // of the tool, for people
	Description string // of the tool, for the model
	// Key is the same whenever this call runs: run, turn and call, never the
	// attempt. A call that was running when the process was killed runs again
	// under the same key; a call whose result was saved does not. Use it for
	// idempotency.
	Key string
}

type callKey struct{}

// CallFrom returns the call that the context of a tool belongs to.
func CallFrom(ctx context.Context) (CallInfo, bool) {
	info, ok := ctx.Value(callKey{}).(CallInfo)
	return info, ok
}

// NewTool makes a tool from a function over a struct; the JSON Schema comes
// from A, its field names and its tags (json, jsonschema,
// jsonschema_description). fn is called with arguments that satisfy the schema
// and decode; 5.0 decodes into an int, as the schema says it is one.
//
// It panics if A is not a struct, or holds what has no JSON form that decodes
// again, and says which field.
func NewTool[A any](name, description string, fn func(ctx context.Context, args A) (Result, error)) Tool {
	parameters, err := typeschema.For(reflect.TypeFor[A]())
	if err != nil {
		panic(fmt.Sprintf("agentloop: NewTool(%q): %v", name, err))
	}
	def := middleware.Tool{Name: name, Description: description, Parameters: parameters}
	return ParsedTool(def, func(arguments string) (A, error) {
		var args A
		return args, typeschema.Decode(arguments, &args)
	}, fn)
}

// ParsedTool makes a tool whose arguments a function of yours reads, such as
// one that turns two dates into a range, and refuses what the schema cannot
// express: its error makes the call invalid, and the model is sent its text, or
// its issues with their places (see middleware.Tool.Decode). parse is called
// when the call is validated and again when it runs, so it must not have side
// effects. def.Parameters may be nil: then only parse validates.
func ParsedTool[A any](def middleware.Tool, parse func(arguments string) (A, error), fn func(ctx context.Context, args A) (Result, error)) Tool {
	if parse == nil || fn == nil {
		panic(fmt.Sprintf("agentloop: tool %q: parse and the function must not be nil", def.Name))
	}
	def.Decode = func(arguments string) error {
		_, err := parse(arguments)
		return err
	}
	run := func(ctx context.Context, call middleware.ToolCall) (Result, error) {
		args, err := parse(call.Arguments)
		if err != nil {
			return Result{}, err
		}
		return fn(ctx, args)
	}
	return Tool{Def: def, Func: run}
}

// RawTool makes a tool from a raw JSON Schema, such as one that came over the
// wire or from Parameters.
func RawTool(name, description string, parameters json.RawMessage, fn ToolFunc) Tool {
	return Tool{Def: middleware.Tool{Name: name, Description: description, Parameters: parameters}, Func: fn}
}
