package temporalagent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
)

var (
	// ErrTooLarge: a value of the run is larger than 1 MB in the history. With a
	// BlobStore, set WorkerOptions.Blobs and Options.Blobs.
	ErrTooLarge = errors.New("temporalagent: a value is too large for the history")
	// ErrAgent: the worker has no agent with the name in Options.Agent.
	ErrAgent = errors.New("temporalagent: the worker has no such agent")
	// ErrLost: the step was given up, because its workers were lost again and again
	// or it took longer than its StartToCloseTimeout.
	ErrLost = errors.New("temporalagent: the step did not end")
)

// sentinels are the errors that errors.Is finds on both sides, by the name that is
// stored. A name stays for ever.
var sentinels = []struct {
	name string
	err  error
}{
	{"ErrTooLarge", ErrTooLarge},
	{"ErrAgent", ErrAgent},
	{"ErrLost", ErrLost},
	{"ErrMaxSteps", agentloop.ErrMaxSteps},
	{"ErrFailures", agentloop.ErrFailures},
	{"ErrNoMessages", agentloop.ErrNoMessages},
	{"ErrVersion", agentloop.ErrVersion},
	{"ErrValidator", agentloop.ErrValidator},
	{"ErrState", agentloop.ErrState},
	{"ErrPending", agentloop.ErrPending},
	{"ErrUnknownCall", agentloop.ErrUnknownCall},
	{"ErrDecided", agentloop.ErrDecided},
	{"ErrExhausted", argsvalidate.ErrExhausted},
	{"ErrRepeated", argsvalidate.ErrRepeated},
	{"ErrInvalid", argsvalidate.ErrInvalid},
	{"ErrRule", argsvalidate.ErrRule},
	{"ErrExceeded", budget.ErrExceeded},
	{"ErrInvalidToolCall", middleware.ErrInvalidToolCall},
	{"ErrInvalidHistory", middleware.ErrInvalidHistory},
	{"ErrNoResponse", middleware.ErrNoResponse},
}

// failure is an error in the history. Its Error, Is and As answer as the error that
// it was made from, as far as this package knows it.
type failure struct {
	Text  string      `json:"text"`
	Kinds []string    `json:"is,omitzero"`
	Model *modelError `json:"model,omitzero"`
}

// modelError is a middleware.ModelError.
type modelError struct {
	StatusCode int           `json:"status,omitzero"`
	Code       string        `json:"code,omitzero"`
	RetryAfter time.Duration `json:"retry_after,omitzero"`
}

// maxErrorText is how much of an error's text is stored.
const maxErrorText = 8 << 10

func failureOf(err error) *failure {
	var f *failure
	if errors.As(err, &f) && f.Text == err.Error() {
		return f
	}
	f = &failure{Text: err.Error()}
	if len(f.Text) > maxErrorText {
		f.Text = f.Text[:maxErrorText] + "…"
	}
	// A message of Temporal that is not UTF-8 cannot be sent, and its workflow
	// would hang.
	f.Text = strings.ToValidUTF8(f.Text, "\uFFFD")
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			f.Kinds = append(f.Kinds, s.name)
		}
	}
	var m *middleware.ModelError
	if errors.As(err, &m) {
		f.Model = &modelError{m.StatusCode, m.Code, m.RetryAfter}
	}
	return f
}

func (f *failure) Error() string { return f.Text }

// Unwrap returns the sentinels and the provider's error.
func (f *failure) Unwrap() []error {
	var errs []error
	for _, s := range sentinels {
		if slices.Contains(f.Kinds, s.name) {
			errs = append(errs, s.err)
		}
	}
	if f.Model != nil {
		errs = append(errs, &middleware.ModelError{StatusCode: f.Model.StatusCode, Code: f.Model.Code, RetryAfter: f.Model.RetryAfter, Err: errors.New(f.Text)})
	}
	return errs
}

// errorType is the type of the ApplicationError that represents err, as the
// user interface of Temporal shows it.
func (f *failure) errorType() string {
	if len(f.Kinds) > 0 {
		return "toolmend." + f.Kinds[0]
	}
	if f.Model != nil {
		return "toolmend.ModelError"
	}
	return "toolmend.Error"
}

// final returns an error that is not retried, with details.
func final(err error, details ...any) error {
	f := failureOf(err)
	return temporal.NewApplicationErrorWithOptions(f.Text, f.errorType(), temporal.ApplicationErrorOptions{NonRetryable: true, Details: append([]any{*f}, details...)})
}

// tooLarge returns the error of a value that does not fit into the history.
func tooLarge(what string, size int) error {
	return fmt.Errorf("%w: %s has %d bytes, the limit is %d; WorkerOptions.Blobs keeps long contents outside of the history", ErrTooLarge, what, size, maxValue)
}
