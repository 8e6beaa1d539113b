package agentloop

import (
	"context"
	"errors"

	"github.com/toolmend/toolmend/middleware"
)

// ErrNoAnswer is the error of Extract if the model did not call the tool.
var ErrNoAnswer = errors.New("agentloop: the model gave no structured answer")

const (
	extractTool  = "answer"
	extractSteps = 3
)

// Extract returns a structured answer. It makes a tool from the struct T,
// and returns the first valid arguments with which the model calls the tool.
// Calls are validated and re-asked as in any other run, in at most 3 model
// steps. The State holds the conversation and the usage. It is never nil.
// The errors are those of Agent.Run, and ErrNoAnswer. Extract panics if
// NewTool cannot make a tool from T.
//
// If the model writes a text instead of a call, Extract does not re-ask. Use
// package answer for answers that are text.
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
