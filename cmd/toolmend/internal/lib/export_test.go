package lib

import (
	"context"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// End ends the session.
func (s *Session) End() { s.cancel() }

// AddStack opens a stack whose call is a function of the test.
func (s *Session) AddStack(name string, call middleware.ModelCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stacks.put(name, &openStack{call: call, validator: argsvalidate.NewValidator(argsvalidate.Options{})})
}

// Ask asks the host of the step in ctx.
func Ask(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	return askHost(ctx, req)
}
