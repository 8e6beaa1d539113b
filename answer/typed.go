package answer

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/toolmend/toolmend/internal/typeschema"
	"github.com/toolmend/toolmend/middleware"
)

// For returns New with a JSON Schema made from the struct T. The schema comes
// from the fields and their tags (json, jsonschema, jsonschema_description),
// as in agentloop.NewTool. A valid answer decodes into a T: Value returns it.
// For panics if T is not a struct or has a field without a JSON form, if
// o.Schema is set, or if o.Validate fails.
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

// Typed returns a function for Options.Check that decodes the answer into a T,
// as Value does, and calls check. A text that does not decode is an issue with
// the code decode.
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

// Value decodes the text of an answer into a T. It accepts 5.0 as an integer,
// as JSON Schema does. The error wraps ErrInvalid. Value returns it if the
// response is nil, its status is middleware.Invalid, it has tool calls, or its
// text does not decode (the text of a refusal does not).
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
