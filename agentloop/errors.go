package agentloop

import "errors"

// Reasons why a run ended without an answer.
var (
	// ErrPending: calls wait for a decision. Decide on them, then call Run again.
	ErrPending = errors.New("agentloop: calls wait for a decision")
	// ErrMaxSteps: Run made Options.MaxSteps model steps.
	ErrMaxSteps = errors.New("agentloop: too many steps")
	// ErrFailures: Options.MaxFailures turns in a row failed, or four invalid
	// responses in a row, including those inside steps, only repeated earlier
	// failures. In the second case it comes with argsvalidate.ErrRepeated.
	ErrFailures = errors.New("agentloop: too many failed turns in a row")
	// ErrNoMessages: the conversation is empty.
	ErrNoMessages = errors.New("agentloop: there is no message to answer")
	// ErrVersion: a newer version of this package saved the State, or the JSON
	// is not that of a State.
	ErrVersion = errors.New("agentloop: the state is of an unknown version")
	// ErrValidator: the chain validates calls, but not with Options.Validator.
	// Its rules would not apply to a person's edits.
	ErrValidator = errors.New("agentloop: the chain has a Validator that is not Options.Validator")
	// ErrState: the State contradicts itself, because it was damaged or edited.
	// Nothing ran.
	ErrState = errors.New("agentloop: the state is damaged")
)

// Reasons why a decision was refused.
var (
	// ErrUnknownCall: no call with that id waits for a decision.
	ErrUnknownCall = errors.New("agentloop: no such call waits for a decision")
	// ErrDecided: the call already has a decision.
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

// Abort returns the error with which a tool ends the run. Run returns err. No
// result is recorded, so the call runs again if the run continues. Any other error
// of a tool is sent to the model. Abort panics if err is nil.
func Abort(err error) error {
	if err == nil {
		panic("agentloop: Abort: err must not be nil")
	}
	return &abortError{err}
}

// Suspend returns the error of a tool that cannot finish now. The run stops with
// ErrPending. State.Resolve sets the result of the call, or State.Approve runs the
// tool again. reason is for people. errors.Is finds ErrPending in the error.
func Suspend(reason string) error { return &suspendError{reason} }
