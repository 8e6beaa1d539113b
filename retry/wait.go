package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/middleware"
)

// longestAsked is the longest Retry-After that is accepted in a step without
// other limits.
const longestAsked = 10 * time.Minute

// waits computes the waits of one step.
type waits struct {
	o     Options
	start time.Time
	// backoff is not safe for concurrent use, so each step has its own. It is
	// made after the first failure, because most steps have none.
	backoff *backoff.ExponentialBackOff
}

// wait sleeps before the next attempt, or returns why there is none.
//
// The loop does not use backoff.Retry: that function (v4.3.0, retry.go)
// returns the context's error without the last failure, and it ignores
// Retry-After.
func (w *waits) wait(ctx context.Context, last error) error {
	d, asked := w.next(), time.Duration(0)
	if e, ok := errors.AsType[*middleware.ModelError](last); ok {
		asked = e.RetryAfter
	}
	deadline, bounded := ctx.Deadline()
	if w.o.MaxElapsed == 0 && !bounded && asked > max(longestAsked, w.o.MaxDelay) {
		return fmt.Errorf("%w: the provider asks for a wait of %s", ErrElapsed, asked)
	}
	d = max(d, asked)
	now := time.Now()
	if w.o.MaxElapsed > 0 && d > w.o.MaxElapsed-now.Sub(w.start) {
		return fmt.Errorf("%w: a wait of %s would cross MaxElapsed", ErrElapsed, d)
	}
	if bounded && d >= deadline.Sub(now) && ctx.Err() == nil {
		return fmt.Errorf("retry: a wait of %s would cross the deadline: %w", d, context.DeadlineExceeded)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return run.ContextError(ctx)
	case <-timer.C:
		return nil
	}
}

// next returns how long to wait if the provider does not say.
func (w *waits) next() time.Duration {
	if w.backoff == nil {
		w.backoff = backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(w.o.MinDelay),
			backoff.WithMaxInterval(w.o.MaxDelay),
			backoff.WithMaxElapsedTime(0), // measured from the first attempt, by wait
		)
	}
	d := w.backoff.NextBackOff()
	if d < 0 { // the jitter of an interval of centuries overflows
		return w.o.MaxDelay
	}
	return d
}
