package argsvalidate

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/internal/run"
)

// isolated is run.Isolated for a user's function. A function that timed out is
// not called again in the same validation: otherwise a message of a thousand
// calls would wait a thousand times.
func isolated[T any](ctx context.Context, j *validation, name string, f func(context.Context) (T, error)) (T, error) {
	if j.timedOut[name] && ctx.Err() == nil {
		var zero T
		return zero, fmt.Errorf("not called again after a timeout: %w", context.DeadlineExceeded)
	}
	v, err := run.Isolated(ctx, j.v.o.RuleTimeout, f)
	if timeout := (*run.Timeout)(nil); errors.As(err, &timeout) {
		if j.timedOut == nil {
			j.timedOut = map[string]bool{}
		}
		j.timedOut[name] = true
	}
	return v, err
}
