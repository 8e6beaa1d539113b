package answer

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/middleware"
)

// For returns New with the JSON Schema of the struct T, made from its fields and
// their tags (json, jsonschema, jsonschema_description) as agentloop.NewTool
// makes one. An answer that it accepts decodes into a T: Value returns it. For
// panics if T is not a struct or holds what has no JSON form, if o.Schema is
// set, and if o.Validate fails.
func For[T any](o Options) middleware.Middleware {
	if o.Schema != nil {
		panic("answer: For: Options.Schema is set, but the schema comes from the type")
	}
	made, err := typeschema.For(reflect.TypeFor[T]())
	if err != nil {
		panic(fmt.Sprintf("answer: For: %v", err))
	}
	o.Schema = made
	decodes := Typed(func(context.Context, T) ([]middleware.Issue, error) { return nil, nil })
	check := o.Check
	o.Check = func(ctx context.Context, text string) ([]middleware.Issue, error) {
		issues, err := decodes(ctx, text)
		if check == nil || len(issues) > 0 || err != nil {
			return issues, err
		}
		return check(ctx, text)
	}
	return New(o)
}

// Typed returns a function for Options.Check: check with the answer decoded
// into a T, as Value decodes it. A text that does not decode is an issue of code
// decode.
func Typed[T any](check func(ctx context.Context, v T) ([]middleware.Issue, error)) func(ctx context.Context, text string) ([]middleware.Issue, error) {
	return func(ctx context.Context, text string) ([]middleware.Issue, error) {
		var v T
		if err := typeschema.Decode(text, &v); err != nil {
			var at *typeschema.Error
			if !errors.As(err, &at) {
				return []middleware.Issue{{Code: codeDecode, Message: err.Error()}}, nil
			}
			return at.Issues(), nil
		}
		return check(ctx, v)
	}
}

// Value decodes the text of an answer into a T. Whole numbers are read as JSON
// Schema reads them: 5.0 is an int. The error wraps ErrInvalid: the response is
// nil, its status is middleware.Invalid, it holds tool calls, or its text does
// not decode, as that of a refusal.
func Value[T any](resp *middleware.Response) (T, error) {
	var v, zero T
	switch {
	case resp == nil:
		return zero, fmt.Errorf("%w: there is no response", ErrInvalid)
	case len(resp.Message.ToolCalls) > 0:
		return zero, fmt.Errorf("%w: the message holds tool calls", ErrInvalid)
	case resp.Report.Status == middleware.Invalid:
		return zero, fmt.Errorf("%w: it was passed on after the last attempt", ErrInvalid)
	}
	if err := typeschema.Decode(resp.Message.Text(), &v); err != nil {
		return zero, fmt.Errorf("%w: its text does not decode", ErrInvalid)
	}
	return v, nil
}
