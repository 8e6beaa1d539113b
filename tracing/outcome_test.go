package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

type ownFault struct{ name string }

func (ownFault) Error() string       { return "own" }
func (f ownFault) ErrorType() string { return f.name }

type plainFault struct{}

func (*plainFault) Error() string { return "plain" }

func TestErrorType(t *testing.T) {
	t.Parallel()
	status := &middleware.ModelError{StatusCode: 429, Code: "rate_limit_exceeded"}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"status", status, "429"},
		{"wrapped status", fmt.Errorf("a: %w", errors.Join(io.EOF, status)), "429"},
		{"code without a status", &middleware.ModelError{Code: "overloaded_error"}, "overloaded_error"},
		{"a sentence is not a code", &middleware.ModelError{Code: "you asked too often"}, "*middleware.ModelError"},
		{"nor is a long one", &middleware.ModelError{Code: strings.Repeat("x", 65)}, "*middleware.ModelError"},
		{"nor a status out of range", &middleware.ModelError{StatusCode: 70000}, "*middleware.ModelError"},
		{"refused tool call", &middleware.ModelError{StatusCode: 400, Err: middleware.ErrInvalidToolCall}, "invalid_tool_call"},
		{"cancelled", fmt.Errorf("post: %w", context.Canceled), "context_canceled"},
		{"cancelled beside the last fault", errors.Join(context.Canceled, status), "context_canceled"},
		{"deadline", context.DeadlineExceeded, "timeout"},
		{"network timeout", &net.OpError{Op: "dial", Err: timeoutFault{}}, "timeout"},
		{"network", &net.OpError{Op: "dial", Err: io.EOF}, "*net.OpError"},
		{"no response", middleware.ErrNoResponse, "no_response"},
		{"named by itself", fmt.Errorf("x: %w", ownFault{"rule"}), "rule"},
		{"named badly", ownFault{"two words"}, "tracing_test.ownFault"},
		{"type below wrappers", fmt.Errorf("a: %w", fmt.Errorf("b: %w, %w", &plainFault{}, io.EOF)), "*tracing_test.plainFault"},
		{"text only", errors.New("x"), "_OTHER"},
		{"wrapped text", fmt.Errorf("x: %w", io.EOF), "_OTHER"},
		{"panics", badError{}, "_OTHER"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := listen(t)
			model := script(turn{err: tt.err})
			_, _ = middleware.Chain(tracing.New(l.options()), tracing.NewAttempt(l.options()))(model)(t.Context(), request())
			for _, name := range []string{"model_step", "chat"} {
				require.Equal(t, tt.want, attrs(l.one(name).Attributes)["error.type"])
			}
		})
	}
}

type timeoutFault struct{}

func (timeoutFault) Error() string { return "i/o" }
func (timeoutFault) Timeout() bool { return true }

func TestNeitherResponseNorErrorIsAFailure(t *testing.T) {
	t.Parallel()
	l := listen(t)
	_, err := stack(l.options(), script(turn{}))(t.Context(), request())
	require.ErrorIs(t, err, middleware.ErrNoResponse)
	require.Equal(t, "no_response", attrs(l.one("model_step").Attributes)["error.type"])
	require.Equal(t, "no_response", attrs(l.named("chat")[0].Attributes)["error.type"])
}
