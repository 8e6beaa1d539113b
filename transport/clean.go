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

// CleanHistory says what happens to tool calls in the history of a request
// whose arguments are no JSON object, such as those of a call that was cut off
// and that the client put into the next request. Many servers refuse each
// request with such a call, so the conversation cannot go on.
//
// Cleaning replaces the arguments as package batch does in a re-ask; nothing
// else in the request changes. A note in the report counts the calls.
type CleanHistory uint8

// The values of CleanHistory.
const (
	// CleanOnRefusal cleans the history after the provider refused the request
	// for that reason (middleware.ErrInvalidHistory), and sends it once more.
	// That is one more of Options.MaxModelCalls.
	CleanOnRefusal CleanHistory = iota
	// CleanAlways cleans the history before the request is sent.
	CleanAlways
	// CleanNever sends the history as it is.
	CleanNever
)

// attemptCleaned makes one model call, whose history is cleaned as
// Options.CleanHistory says. Below the chain nothing multiplies it.
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
	return fmt.Sprintf("transport: %d tool calls in the history of the request had arguments that are no JSON object: they were replaced", n)
}

// clean returns req with arguments in its history that are JSON objects, and
// how many calls had others. req is not changed.
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
