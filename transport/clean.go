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
	if s.cleansAtOnce() {
		cleaned, n := clean(req)
		resp, err := s.attempt(ctx, cleaned)
		if n == 0 {
			return resp, err
		}
		tally.Note(cleanNote(n))
		tally.Add(resp, err)
		return tally.Finish(resp, err)
	}
	resp, err := s.attempt(ctx, req)
	if s.t.options.CleanHistory == CleanNever || !errors.Is(err, middleware.ErrInvalidHistory) || s.brokeLive() {
		return resp, err
	}
	cleaned, n := clean(req)
	if n == 0 {
		return resp, err
	}
	s.mu.Lock()
	s.cleans = true
	s.mu.Unlock()
	tally.Add(resp, err)
	tally.Note(cleanNote(n))
	again, failure := s.attempt(ctx, cleaned)
	if errors.Is(failure, ErrModelCalls) {
		return tally.Finish(nil, err)
	}
	tally.Add(again, failure)
	return tally.Finish(again, failure)
}

// cleansAtOnce reports whether a history is cleaned before it is sent: always,
// or because the provider refused it in this step.
func (s *step) cleansAtOnce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cleans || s.t.options.CleanHistory == CleanAlways
}

func cleanNote(n int) string {
	return fmt.Sprintf("transport: %d tool calls in the history of the request had arguments that are not a JSON object; they were replaced", n)
}

// clean returns req with JSON objects as arguments in its history, and the
// number of calls that it changed. It does not modify req.
func clean(req *middleware.Request) (*middleware.Request, int) {
	total := 0
	out := *req
	for i, m := range req.Messages {
		echo, n := cleanMessage(m)
		if n == 0 {
			continue
		}
		if total == 0 {
			out.Messages = slices.Clone(req.Messages)
		}
		total += n
		out.Messages[i] = echo
	}
	return &out, total
}

func cleanMessage(m middleware.Message) (middleware.Message, int) {
	broken := 0
	for _, c := range m.ToolCalls {
		if !isClean(c) {
			broken++
		}
	}
	if broken == 0 {
		return m, 0
	}
	calls := slices.Clone(m.ToolCalls)
	echo := batch.Echo(m, nil)
	for i, c := range calls {
		if !isClean(c) {
			calls[i].Arguments = echo.ToolCalls[i].Arguments
		}
	}
	m.ToolCalls = calls
	return m, broken
}

func isClean(c middleware.ToolCall) bool {
	return c.Kind != middleware.KindFunction || strings.HasPrefix(strings.TrimLeft(c.Arguments, " \t\r\n"), "{") && json.Valid([]byte(c.Arguments))
}
