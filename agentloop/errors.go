package agentloop

import "errors"

// Why a run ended before the model was done.
var (
	// ErrPending: calls wait for a decision. Decide, then Run again.
	ErrPending = errors.New("agentloop: calls wait for a decision")
	// ErrMaxSteps: Options.MaxSteps model calls were made.
	ErrMaxSteps = errors.New("agentloop: too many steps")
	// ErrFailures: Options.MaxFailures turns in a row held invalid calls or texts
	// that could not be read, or four invalid answers in a row, those inside steps
	// included, brought nothing that had not failed before. Then
	// argsvalidate.ErrRepeated comes with it.
	ErrFailures = errors.New("agentloop: too many failed turns in a row")
	// ErrNoMessages: the conversation is empty.
	ErrNoMessages = errors.New("agentloop: there is no message to answer")
	// ErrVersion: the State was saved by a newer version of this package, or is
	// none.
	ErrVersion = errors.New("agentloop: the state is of an unknown version")
	// ErrValidator: the chain validates calls with another Validator than
	// Options.Validator, so the rules of one of them would not hold for a
	// person's edits.
	ErrValidator = errors.New("agentloop: the chain has a Validator that is not Options.Validator")
	// ErrState: the State contradicts itself, so it cannot go on: it was damaged
	// or made by hand. Nothing ran.
	ErrState = errors.New("agentloop: the state is damaged")
)

// Why a decision was refused.
var (
	// ErrUnknownCall: no call of that id waits for a decision.
	ErrUnknownCall = errors.New("agentloop: no such call waits for a decision")
	// ErrDecided: the call has its decision.
	ErrDecided = errors.New("agentloop: the call is decided")
)

// checkpointError is what Options.Checkpoint returned.
type checkpointError struct{ err error }

func (e *checkpointError) Error() string { return "agentloop: checkpoint: " + e.err.Error() }
func (e *checkpointError) Unwrap() error { return e.err }

// abortError and suspendError are what Abort and Suspend make.
type abortError struct{ err error }

func (e *abortError) Error() string { return e.err.Error() }
func (e *abortError) Unwrap() error { return e.err }

type suspendError struct{ reason string }

func (e *suspendError) Error() string        { return "suspended: " + e.reason }
func (e *suspendError) Is(target error) bool { return target == ErrPending }

// Abort is the error of a tool that ends the run with err. No result is
// recorded, so the call runs again if the run goes on. Any other error is told
// to the model. It panics if err is nil.
func Abort(err error) error {
	if err == nil {
		panic("agentloop: Abort: err must not be nil")
	}
	return &abortError{err}
}

// Suspend is the error of a tool that cannot finish now: the run stops with
// ErrPending, and State.Resolve goes on with it (or State.Approve, which runs
// the tool again). reason is for people. The error is an ErrPending.
func Suspend(reason string) error { return &suspendError{reason} }
