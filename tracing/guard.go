package tracing

import (
	"fmt"

	"go.opentelemetry.io/otel"
)

// guard runs f and holds back its panic: whatever listens to us must not
// change a call. It reports whether f came to its end. It is safe while
// another panic is on its way, which goes on.
func guard(what string, f func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			complain(what, v)
		}
	}()
	f()
	return true
}

// complain tells the global error handler, which is a stranger's code too. The
// text of a panic may hold content, its type does not.
func complain(what string, v any) {
	defer func() { _ = recover() }()
	otel.Handle(fmt.Errorf("tracing: %s panicked with a %T", what, v))
}
