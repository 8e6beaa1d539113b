package agentloop

import (
	"context"
	"errors"

	"github.com/toolmend/toolmend/middleware"
)

// ErrNoAnswer is what Extract returns for a model that did not call its tool.
var ErrNoAnswer = errors.New("agentloop: the model gave no structured answer")

const (
	extractTool  = "answer"
	extractSteps = 3
)

// Extract makes a tool from the struct T, has the model call it, and returns
// its first valid arguments: a structured answer, validated and asked for again
// by the rules of any other call. The State holds the conversation and the
// usage, on failure too. It panics if T is not a struct that NewTool takes.
func Extract[T any](ctx context.Context, call middleware.ModelCall, msgs ...middleware.Message) (T, *State, error) {
	s := NewState(msgs...)
	tool := NewTool(extractTool, "Give the answer in this form.", func(_ context.Context, v T) (Result, error) {
		return Result{Text: "Received.", Value: v}, nil
	})
	agent, err := New(call, Options{
		Tools:    []Tool{tool},
		Request:  &middleware.Request{OnlyTool: extractTool, ToolChoice: middleware.ToolRequired},
		StopWhen: ToolSucceeded(extractTool),
		MaxSteps: extractSteps,
	})
	var zero T
	if err != nil {
		return zero, s, err
	}
	if err := agent.Run(ctx, s); err != nil {
		return zero, s, err
	}
	if v, ok := Value[T](s); ok {
		return v, s, nil
	}
	return zero, s, ErrNoAnswer
}
