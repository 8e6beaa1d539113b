package retry

import (
	"context"
	"errors"

	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/middleware"
)

// retryStep is one request on its way through New or Fallback.
type retryStep struct {
	tally    middleware.Tally
	req      *middleware.Request
	again    func(error) bool
	attempts int
	repeats  bool  // the step is New's, which repeats one call
	last     error // the last failure that the context did not cause; nil if there is none
	sunk     error // the error that the request's sink returned
}

func newRetryStep(req *middleware.Request, again func(error) bool, repeats bool) *retryStep {
	s := &retryStep{req: req, again: again, repeats: repeats}
	if req.Sink != nil {
		// An error of the sink may look like a lost connection to the model.
		// It must not be retried as one.
		watched := *req
		watched.Sink = func(e middleware.Event) error {
			err := req.Sink(e)
			if err != nil {
				s.sunk = err
			}
			return err
		}
		s.req = &watched
	}
	return s
}

// ask makes one attempt. If done is false, s.last is a failure that may be
// retried. If done is true, resp and err are the outcome of the step.
func (s *retryStep) ask(ctx context.Context, next middleware.ModelCall) (resp *middleware.Response, done bool, err error) {
	if ctx.Err() != nil {
		return nil, true, s.fail(run.ContextError(ctx))
	}
	resp, err = s.tally.Call(ctx, func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		s.attempts++
		return next(ctx, req)
	}, s.req)
	switch ended := ctx.Err(); {
	case err == nil:
		return resp, true, nil
	case s.sunk != nil && errors.Is(err, s.sunk):
		return nil, true, err
	case s.sunk != nil:
		s.last = err
		return nil, true, s.fail(s.sunk)
	case ended != nil && errors.Is(err, ended): // keep the failure before the context ended: it says more
		if s.last == nil {
			s.last = err
		}
		return nil, true, s.fail(run.ContextError(ctx))
	case s.last != nil && errors.Is(err, middleware.ErrNotSent): // a limit allows no further call: the last failure says more
		return nil, true, s.fail(err)
	case !s.mayRepeat(err):
		return nil, true, err
	}
	s.last = err
	if ctx.Err() != nil {
		return nil, true, s.fail(run.ContextError(ctx))
	}
	return nil, false, nil
}

// mayRepeat calls the user's function, which may panic.
func (s *retryStep) mayRepeat(err error) (yes bool) {
	defer func() {
		if recover() != nil {
			s.tally.Note("retry: the function that selects the errors to retry panicked, so the error was not retried")
		}
	}()
	return s.again(err)
}

// end finishes a step without a further attempt.
func (s *retryStep) end(reason error) (*middleware.Response, error) {
	return s.tally.Finish(nil, s.fail(reason))
}

func (s *retryStep) fail(reason error) error {
	return &Error{Attempts: s.attempts, Reason: reason, Last: s.last, repeated: s.repeats}
}
