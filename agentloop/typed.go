package agentloop

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/middleware"
)

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
// express: its error makes the call invalid, and the text is told to the
// model. parse is called when the call is judged and again when it runs, so it
// has no side effects. def.Parameters may be nil: then parse alone judges.
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
