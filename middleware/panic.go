package middleware

import (
	"fmt"
	"runtime/debug"
)

// PanicError reports that a function of the program, such as a rule or a tool,
// panicked. Its text contains only the type of the panic value, because the
// value may hold text that the model wrote.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // stack of the goroutine, as returned by debug.Stack
}

// NewPanicError returns a PanicError with the current stack. Call it in the
// deferred function that recovered value.
func NewPanicError(value any) *PanicError { return &PanicError{Value: value, Stack: debug.Stack()} }

// Error returns "panic: " and the type of the value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %T", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
