package run

import (
	"fmt"

	"github.com/toolmend/toolmend/middleware"
)

// Sink returns a sink that turns a panic of a request's sink into an error of
// the package owner, which ends the step like any other error of a sink. The
// error names the type of what was thrown, not its content.
func Sink(owner string, sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s: the request's sink panicked: %T", owner, p)
			}
		}()
		return sink(e)
	}
}
