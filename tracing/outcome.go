package tracing

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/toolmend/toolmend/middleware"
)

// errPanicked is the error of a call that did not return: it panicked
// or ended its goroutine.
var errPanicked = errors.New("tracing: model call did not return")

// errToolPanicked is the same for a tool.
var errToolPanicked = errors.New("tracing: tool did not return")

// outcome is what the end of a call means for its report.
type outcome struct {
	err       error
	kind      string // error.type; "" where err is nil
	code      string // the provider's own
	cancelled bool   // by the caller: no failure
}

// outcomeOf classifies what a call returned. A call that returned nothing at all
// has failed.
func outcomeOf(ctx context.Context, resp *middleware.Response, err error, returned bool) outcome {
	switch {
	case !returned:
		err = errPanicked
	case err == nil && resp == nil:
		err = middleware.ErrNoResponse
	case err == nil:
		return outcome{}
	}
	o := outcome{err: err, kind: other}
	guard("error", func() { // the methods of err may panic
		o.cancelled = ctx.Err() == context.Canceled && errors.Is(err, context.Canceled)
		o.kind = errorType(err, middleware.ReportOf(nil, err).Status)
		var m *middleware.ModelError
		if errors.As(err, &m) && word.MatchString(m.Code) {
			o.code = m.Code
		}
	})
	return o
}

// failed reports whether the span gets the status Error.
func (o outcome) failed() bool { return o.err != nil && !o.cancelled }

// text is the error's own text where content is recorded, else its type.
func (o outcome) text(c content) string {
	s := o.kind
	if c.on {
		guard("error", func() { s = c.value(o.err.Error()) })
	}
	return s
}

// errorType returns error.type: few values, none of them content. Cancellation
// goes first, because what is joined to it is only the last thing that
// happened before. ErrorType is the method that opentelemetry-go asks for
// (semconv.ErrorType).
func errorType(err error, status middleware.Status) string {
	var model *middleware.ModelError
	var named interface{ ErrorType() string }
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errPanicked):
		return typePanic
	case errors.Is(err, context.Canceled):
		return typeCanceled
	case errors.As(err, &named) && named.ErrorType() == typeRule: // also where the rule timed out
		return typeRule
	case errors.Is(err, context.DeadlineExceeded):
		return typeTimeout
	case errors.As(err, &named):
		if name := named.ErrorType(); word.MatchString(name) {
			return name
		}
		return typeName(err)
	case errors.Is(err, middleware.ErrInvalidToolCall):
		return typeInvalid
	case errors.As(err, &model) && model.StatusCode >= 100 && model.StatusCode <= 999:
		return strconv.Itoa(model.StatusCode)
	case errors.As(err, &model) && word.MatchString(model.Code):
		return model.Code
	case errors.As(err, &timeout) && timeout.Timeout():
		return typeTimeout
	case errors.Is(err, middleware.ErrNoResponse):
		return typeNoResponse
	case status == middleware.Invalid:
		return typeInvalid
	}
	return typeName(err)
}

// typeName returns the Go type of the first error in the chain whose type says
// something.
func typeName(err error) string {
	for err != nil {
		name := fmt.Sprintf("%T", err)
		switch name {
		case "*errors.errorString", "*fmt.errorString":
			return other
		case "*fmt.wrapError", "*fmt.wrapErrors", "*errors.joinError", "*middleware.stepError":
		default:
			return bounded(name, maxLabel)
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			err = e.Unwrap()[0] // these types hold at least one
		}
	}
	return other
}

// word matches a code and not a sentence. Providers put prose into codes, and prose quotes.
var word = regexp.MustCompile(`^[\w.-]{1,64}$`)
