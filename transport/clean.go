package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// CleanHistory selects what happens to tool calls in the history of a request
// whose arguments are not a JSON object. Such a call remains in a conversation
// if the model was cut off and the client kept the call. Many servers reject
// every request with such a call, so the conversation cannot go on.
//
// Cleaning replaces the arguments as package batch does in a re-ask; the rest
// of the request stays unchanged. A note in the report counts the calls.
type CleanHistory uint8

// The values of CleanHistory.
const (
	// CleanOnRefusal cleans the history after the provider refused the request
	// for that reason (middleware.ErrInvalidHistory), and sends it once more.
	// That counts as one more of Options.MaxModelCalls.
	CleanOnRefusal CleanHistory = iota
	// CleanAlways cleans the history before the request is sent.
	CleanAlways
	// CleanNever sends the history unchanged.
	CleanNever
)

// attemptCleaned makes one model call with its history cleaned as
// Options.CleanHistory says. It runs inside the chain, so that no middleware
// repeats the additional call.
func (s *step) attemptCleaned(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	var tally middleware.Tally
	var refused error
	atOnce := s.cleansAtOnce()
	if !atOnce {
		resp, err := s.attempt(ctx, req)
		if s.t.options.CleanHistory == CleanNever || !errors.Is(err, middleware.ErrInvalidHistory) || s.brokeLive() {
			return resp, err
		}
		tally.Add(resp, err)
		refused = err
	}
	cleaned, n := clean(req)
	switch {
	case n == 0 && atOnce:
		return s.attempt(ctx, req)
	case n == 0:
		return nil, refused
	}
	s.mu.Lock()
	s.cleans = true
	s.mu.Unlock()
	tally.Note(fmt.Sprintf("transport: %d tool calls in the history of the request had arguments that are not a JSON object; they were replaced", n))
	resp, err := s.attempt(ctx, cleaned)
	if refused != nil && errors.Is(err, ErrModelCalls) {
		return tally.Finish(nil, refused)
	}
	tally.Add(resp, err)
	return tally.Finish(resp, err)
}

// cleansAtOnce reports whether a history is cleaned before it is sent: always,
// or because the provider refused it in this step.
func (s *step) cleansAtOnce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cleans || s.t.options.CleanHistory == CleanAlways
}

// clean returns req with JSON objects as arguments in its history, and the
// number of calls that it changed. It does not modify req.
func clean(req *middleware.Request) (*middleware.Request, int) {
	total := 0
	out := *req
	for i, m := range req.Messages {
		if !slices.ContainsFunc(m.ToolCalls, isBroken) {
			continue
		}
		if total == 0 {
			out.Messages = slices.Clone(req.Messages)
		}
		echo, calls := batch.Echo(m, nil), slices.Clone(m.ToolCalls)
		for j, c := range calls {
			if isBroken(c) {
				calls[j].Arguments = echo.ToolCalls[j].Arguments
				total++
			}
		}
		out.Messages[i].ToolCalls = calls
	}
	return &out, total
}

func isBroken(c middleware.ToolCall) bool {
	object := strings.HasPrefix(strings.TrimLeft(c.Arguments, " \t\r\n"), "{") && json.Valid([]byte(c.Arguments))
	return c.Kind == middleware.KindFunction && !object
}
