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
// by the rules of any other call, in at most 3 model steps. The State holds the
// conversation and the usage, on failure too; it is never nil. The errors are
// those of Agent.Run, and ErrNoAnswer. It panics if T is not a struct that
// NewTool takes.
//
// A text that the model writes instead of calling the tool is not asked for
// again: package answer does that, for answers that are text.
func Extract[T any](ctx context.Context, call middleware.ModelCall, msgs ...middleware.Message) (T, *State, error) {
	s := NewState(msgs...)
	if s.done() { // the conversation ends with an answer, to another question
		s.Messages = append(s.Messages, middleware.User("Give the answer by calling the tool '"+extractTool+"'."))
	}
	tool := NewTool(extractTool, "Give the answer in this form.", func(_ context.Context, v T) (Result, error) {
		return Result{Text: "Received.", Value: v}, nil
	})
	agent, err := New(call, Options{
		Tools:    []Tool{tool},
		Request:  &middleware.Request{ToolChoice: middleware.ToolChoice{Name: extractTool}},
		StopWhen: ToolSucceeded(extractTool),
		MaxSteps: extractSteps,
	})
	if err == nil {
		err = agent.Run(ctx, s)
	}
	var zero T
	if err != nil {
		return zero, s, err
	}
	for _, r := range s.Results {
		if v, ok := r.Value.(T); ok {
			return v, s, nil
		}
	}
	return zero, s, ErrNoAnswer
}
