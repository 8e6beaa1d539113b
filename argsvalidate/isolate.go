package argsvalidate

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/internal/run"
)

// isolated is run.Isolated for a user's function. One that timed out is not
// called again in the same judgement, so that a message of a thousand calls does
// not wait a thousand times.
func isolated[T any](ctx context.Context, j *judgement, name string, f func(context.Context) (T, error)) (T, error) {
	if j.late[name] && ctx.Err() == nil {
		var zero T
		return zero, fmt.Errorf("not called again after a timeout: %w", context.DeadlineExceeded)
	}
	v, err := run.Isolated(ctx, j.v.o.RuleTimeout, f)
	if late := (*run.Timeout)(nil); errors.As(err, &late) {
		if j.late == nil {
			j.late = map[string]bool{}
		}
		j.late[name] = true
	}
	return v, err
}
