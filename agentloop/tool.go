package agentloop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/middleware"
)

// Tool is a tool with its function. NewTool, ParsedTool and RawTool make one.
type Tool struct {
	Def          middleware.Tool
	Func         ToolFunc
	Approval     bool          // each call waits for State.Approve
	Serial       bool          // never runs concurrently with other tools
	ReturnDirect bool          // its result is the answer and ends the run, unless it is an error
	Timeout      time.Duration // 0 means no limit except the context's
	Title        string        // for people, while it runs; "" means its name
	// AtMostOnce means that a call never starts twice. If it started and its
	// process was lost, or the context ended, the model is told that the outcome is
	// not known. In memory that needs Options.Checkpoint.
	AtMostOnce bool
	// Pure means that the tool is quick, has no effect, and may run again unnoticed.
	// An engine such as Temporal then runs it without a step of its own.
	Pure bool
}

// ToolFunc runs a tool. The arguments of the call are valid. If it returns
// an error, the model gets the text of the error, followed by the text of
// the Result. That does not hold for the errors of Abort and Suspend, and
// after the context has ended.
type ToolFunc func(ctx context.Context, call middleware.ToolCall) (Result, error)

// ToolMiddleware wraps the tools of an Agent, for retries, limits, caching
// or tracing. It is called once for each tool when the Agent is made, and
// once for each tool of a new slice of Options.Source.
type ToolMiddleware func(next ToolFunc) ToolFunc

// ChainTools returns one ToolMiddleware: ChainTools(a, b)(f) behaves as
// a(b(f)). The rules are those of middleware.Chain.
func ChainTools(mws ...ToolMiddleware) ToolMiddleware {
	layers := slices.DeleteFunc(slices.Clone(mws), func(mw ToolMiddleware) bool { return mw == nil })
	return func(f ToolFunc) ToolFunc {
		for _, mw := range slices.Backward(layers) {
			f = mw(f)
		}
		return f
	}
}

// Result is the result of a tool. Bytes of Text that are not UTF-8 are
// replaced by U+FFFD.
type Result struct {
	Text    string `json:"text"`
	Value   any    `json:"-"` // for the program: it is not sent to the model and not stored
	IsError bool   `json:"is_error,omitzero"`
	// Err is the error with which the tool failed. It is for the program: it is
	// not sent to the model and not stored. It wraps context.DeadlineExceeded
	// if the tool timed out, and is a *middleware.PanicError if it panicked.
	Err error `json:"-"`
}

// Text returns a result that has only a text.
func Text(text string) Result { return Result{Text: text} }

// NeedsApproval returns a copy of t whose calls wait for a decision.
func (t Tool) NeedsApproval() Tool {
	t.Approval = true
	return t
}

// Destructive returns a copy of t whose effects cannot be undone: see
// middleware.Tool.Destructive.
func (t Tool) Destructive() Tool {
	t.Def.Destructive = true
	return t
}

// title is what people are shown.
func (t Tool) title() string {
	if t.Title != "" {
		return t.Title
	}
	return t.Def.Name
}

// schemaHash returns a hash of the tool's schema, "" if it has none.
func (t Tool) schemaHash() string {
	if len(t.Def.Parameters) == 0 {
		return ""
	}
	sum := sha256.Sum256(t.Def.Parameters)
	return hex.EncodeToString(sum[:8])
}

// CallInfo describes the call that a tool is running for.
type CallInfo struct {
	Call        middleware.ToolCall
	Title       string // of the tool, for people
	Description string // of the tool, for the model
	// Key is the idempotency key of the call, made of the run, the turn and the
	// call's id. It is the same for every attempt. If the process ends while a
	// call runs, the call runs again with the same key.
	Key string
	// The marks of the tool, from when the call was validated.
	Serial, AtMostOnce, Pure bool
	// Schema is a hash of the tool's schema with which the call was validated.
	Schema string
}

type callKey struct{}

// CallFrom returns the call that a tool is running for, from the context of
// the tool.
func CallFrom(ctx context.Context) (CallInfo, bool) {
	info, ok := ctx.Value(callKey{}).(CallInfo)
	return info, ok
}

// NewTool makes a tool from a function whose parameter is the struct A. The
// JSON Schema comes from the fields of A and their tags (json, jsonschema,
// jsonschema_description). fn gets arguments that satisfy the schema and
// decode into A. A number such as 5.0 decodes into an int, because JSON
// Schema counts it as an integer.
//
// NewTool panics with the name of the field if A has a field whose JSON form
// does not decode again. It also panics if A is not a struct.
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

// ParsedTool makes a tool whose arguments are read by parse. Use it for
// types that encoding/json cannot read, and for conditions that a schema
// cannot express, such as two dates that form a range. An error of parse
// makes the call invalid. The model gets the text of the error, or its
// issues with their places (see middleware.Tool.Decode). parse is called
// when the call is validated and again when it runs, so it must not have
// side effects. If def.Parameters is nil, only parse validates the
// arguments.
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

// RawTool makes a tool from a JSON Schema, such as one that a server sent or
// that Parameters returned.
func RawTool(name, description string, parameters json.RawMessage, fn ToolFunc) Tool {
	return Tool{Def: middleware.Tool{Name: name, Description: description, Parameters: parameters}, Func: fn}
}
