package middleware

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic of a function of the program, such as a rule or a tool:
// an error that logs and traces read. Its text has the type of the value only,
// because the value may hold what the model wrote.
type PanicError struct {
	Value any    // what the function panicked with
	Stack []byte // of the goroutine, as debug.Stack gives it
}

// NewPanicError returns a PanicError with the stack of the caller, which calls
// it in the deferred function that recovered value.
func NewPanicError(value any) *PanicError { return &PanicError{Value: value, Stack: debug.Stack()} }

// Error returns "panic: " and the type of the value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %T", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
