// Package tracing reports what happens in a model step to OpenTelemetry and
// to slog, and never changes it.
//
//	call := middleware.Chain(
//		tracing.New(tracing.Options{}),        // one span for the step
//		argsvalidate.New(argsvalidate.Options{}),
//		retry.New(retry.Options{}),
//		tracing.NewAttempt(tracing.Options{}), // one span for each model call
//	)(model)
//
// Without OpenTelemetry, one line is enough: with a Logger and no SDK, New
// writes the log and nothing else.
//
//	tracing.New(tracing.Options{Logger: slog.Default()})
//
// # The step
//
// New makes one INTERNAL span, "model_step {model}", of our own. It carries
// the number of attempts, the status (valid, invalid or unchecked; none without
// a call), the number of the attempt that was returned, counted from 1, the
// usage summed over the attempts, the finish reason, the numbers of invalid calls and of notes. The
// usage is under keys of our own, so that a backend which sums gen_ai.usage.*
// over spans counts nothing twice. Events tell, with the time at which the
// attempt ended, each failed attempt, each issue, each change that was made to
// a call, and what the model was told; with Options.Content each note too. A
// panic of a rule or another function of the program is an exception event and a
// log record with its value and stack, without Options.Content too. There
// are at most 128; toolmend.events.dropped counts the others.
//
// # The attempt
//
// NewAttempt makes one CLIENT span, "chat {model}", after the GenAI
// conventions. next runs under it, so the spans of an HTTP client are its
// children.
//
// # Errors
//
// A span has the status Error where the call failed. An invalid response that
// was passed on is not a failure: toolmend.status says invalid. Where the caller
// cancelled, nothing has failed either: error.type is context_canceled and the
// status stays unset; a deadline is an error. error.type is one of
// context_canceled, timeout, invalid_tool_call, no_response, panic, an HTTP
// status such as 429, the provider's own code, what an error's method
// ErrorType() string says, the name of the error's Go type, or _OTHER.
//
// # Metrics
//
// NewAttempt records gen_ai.client.operation.duration (seconds) and
// gen_ai.client.token.usage for each model call. Where none ran inside a step,
// New records the same from the step's report, so both are there with either
// and are never counted twice. New counts toolmend.steps, toolmend.attempts,
// toolmend.invalid_calls (by tool, and by the code of the call's first issue)
// and toolmend.exhausted_steps: the steps whose report ends with invalid
// calls, whether the response was passed on or the step failed. A tool that
// the request does not declare is _OTHER there, because its name is the
// model's to invent. Request.Model is taken as it is: a gateway checks it.
//
// # Content
//
// Without Options.Content no message, argument, value, note or error text is
// recorded anywhere, only names, codes, pointers (which hold the keys of the
// arguments, the model's own inventions too) and counts. With it each
// value goes through Options.Redact and is cut at 8 KiB. All that is recorded
// of one message list is 256 KiB, the newest messages first;
// toolmend.input.dropped and toolmend.output.dropped count the parts left out. The bytes of media and
// what only the provider understands are never recorded.
//
// # Isolation
//
// A provider, processor, exporter, handler or Redact that panics costs a piece
// of the report and nothing else; otel.Handle is told, with the type of what
// was panicked, not its text. A panic of next goes on unchanged after the span
// ended.
package tracing

import (
	"fmt"
	"log/slog"
	"unicode/utf8"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolmend/toolmend/middleware"
)

// Options say where reports go. The zero Options: the global providers, no
// log, no content.
type Options struct {
	TracerProvider trace.TracerProvider // nil: the global one
	MeterProvider  metric.MeterProvider // nil: the global one
	// Logger gets one record for each step, at Error where it failed, at Warn
	// where its response is invalid or more than one attempt went wrong on the
	// way, else (also where the caller cancelled) at Info; before it one at
	// Warn for each invalid call and each re-ask, at most 128. NewAttempt
	// writes one record for each model call at Debug. Nil: no log.
	Logger   *slog.Logger
	Provider string // gen_ai.provider.name, such as "openai"; "": "_OTHER"
	Content  bool   // record messages, arguments and error texts
	// Redact is applied to each content value before it is cut. It must be
	// safe for concurrent use. Where it panics, "[redaction failed]" stands
	// for the value. Nil: none.
	Redact func(string) string
}

// Validate returns what is wrong with o, nil if nothing is: for options read
// from a file or a flag. New, NewAttempt and NewTool panic with it.
func (o Options) Validate() error {
	if !utf8.ValidString(o.Provider) { // exporters drop a whole batch for one such attribute
		return fmt.Errorf("tracing: Options.Provider: must be UTF-8, got %q", o.Provider)
	}
	return nil
}

// New returns a middleware that reports each step: one span for the step,
// hidden attempts included, its metrics and its log. What next returns is
// returned as it is, the same pointers. One value serves any number of
// goroutines.
//
// Position: outermost. Layers outside of it are not in the report; inside of
// a layer that asks again it would report each attempt as a step.
func New(o Options) middleware.Middleware {
	r := newRecorder(o)
	return func(next middleware.ModelCall) middleware.ModelCall {
		return r.step(next)
	}
}

// NewAttempt returns a middleware that reports each model call: one live span,
// its duration and its tokens. What next returns is returned as it is, the
// same pointers. One value serves any number of goroutines.
//
// Position: innermost, once. Further out it measures several model calls as
// one. Outside of a step of New it works alone, and the span has no
// toolmend.attempt.
func NewAttempt(o Options) middleware.Middleware {
	r := newRecorder(o)
	return func(next middleware.ModelCall) middleware.ModelCall {
		return r.attempt(next)
	}
}
