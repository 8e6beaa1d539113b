// Package tracing reports model steps to OpenTelemetry and to slog. It never
// changes a request, a response or an error.
//
//	call := middleware.Chain(
//		tracing.New(tracing.Options{}),        // one span for the step
//		argsvalidate.New(argsvalidate.Options{}),
//		retry.New(retry.Options{}),
//		tracing.NewAttempt(tracing.Options{}), // one span for each model call
//	)(model)
//
// Without an OpenTelemetry SDK in the program, and with a Logger, New only writes
// the log:
//
//	tracing.New(tracing.Options{Logger: slog.Default()})
//
// # The step
//
// New makes one span of kind INTERNAL, "model_step {model}". Its attributes have
// names of this module:
//
//   - the number of attempts, and the number of the returned attempt, from 1;
//   - the status: valid, invalid or unchecked, absent without a call;
//   - the finish reason;
//   - the numbers of invalid calls and of notes;
//   - the usage, summed over the attempts. It is not in gen_ai.usage.*, so a
//     backend that sums those attributes over spans counts nothing twice.
//
// The span has an event for each failed attempt, each issue, each change of a
// call and each reply to the model, and with Options.Content for each note. The
// time of an event is the end of its attempt. A span has at most 128 events;
// toolmend.events.dropped counts the others.
//
// A panic of a rule or of another function of the program is an exception event
// and a log record. Both contain the panic value and the stack, even without
// Options.Content.
//
// # The attempt
//
// NewAttempt makes one span of kind CLIENT, "chat {model}", by the GenAI
// conventions. The model call runs under it, so the spans of an HTTP client are
// its children.
//
// # Errors
//
// A span has the status Error if the call failed. An invalid response that was
// passed on is not a failure; the attribute toolmend.status is then invalid. A
// cancellation by the caller is not a failure either: error.type is
// context_canceled and the status stays unset. An expired deadline is a failure.
//
// error.type is one of context_canceled, timeout, invalid_tool_call, no_response,
// panic, an HTTP status such as 429, the provider's own code, the result of the
// error's method ErrorType() string, the name of the error's Go type, or _OTHER.
//
// # Metrics
//
// NewAttempt records for each model call, by the GenAI conventions v0.1.0:
//
//   - gen_ai.client.inference.duration, in seconds;
//   - gen_ai.client.inference.usage.input_tokens and output_tokens, counters, and their
//     parts cache_read.input_tokens, cache_write.input_tokens and
//     reasoning.output_tokens. The modality is unknown;
//   - gen_ai.client.inference.operation.input_tokens and output_tokens, which show how
//     the tokens of a call are distributed;
//   - gen_ai.client.inference.time_to_first_chunk of a streamed answer, in seconds. It is
//     the time until the first text or reasoning, so an answer of calls only has none.
//
// For a step without NewAttempt, New records all but the last from the step's report,
// so no model call is counted twice. NewTool records gen_ai.execute_tool.duration, and
// NewAgent gen_ai.invoke_agent.duration.
//
// New counts toolmend.steps, toolmend.attempts, toolmend.invalid_calls and
// toolmend.exhausted_steps. The last one counts the steps whose report ends with
// invalid calls, whether the response was passed on or the step failed. The
// attributes of an invalid call are its tool and the code of its first issue. The
// model can invent tool names, so a tool that the request does not declare is
// _OTHER. Request.Model is recorded unchanged: if clients choose it, check it
// before.
//
// # Content
//
// Without Options.Content, no message, argument, value, note or error text is
// recorded, only names, codes, JSON Pointers and counts. Pointers contain the
// keys of the arguments, which the model may have invented.
//
// With Options.Content each value goes through Options.Redact and is cut at
// 8 KiB. At most 256 KiB of one message list are recorded, the newest messages
// first; toolmend.input.dropped and toolmend.output.dropped count the other
// parts. The bytes of media and content that only the provider can read are never
// recorded.
//
// # Isolation
//
// If a provider, processor, exporter, log handler or Redact panics, a part of the
// report is lost. The step goes on, and otel.Handle gets an error with the type of
// the panic value, without its text. A panic of the model call continues after
// the span has ended.
package tracing

import (
	"fmt"
	"log/slog"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolmend/toolmend/middleware"
)

// Options configure New, NewAttempt and NewTool. The zero value uses the global
// providers, writes no log and records no content.
type Options struct {
	TracerProvider trace.TracerProvider // nil means the global one
	MeterProvider  metric.MeterProvider // nil means the global one
	// Logger gets one record for each step. Its level is Error if the step
	// failed, Warn if the response is invalid or more than one attempt failed,
	// and Info otherwise, also if the caller cancelled. Before it come records
	// of level Warn, one for each invalid call and each re-ask, at most 128.
	// NewAttempt writes one record of level Debug for each model call. nil
	// means that no log is written.
	Logger   *slog.Logger
	Provider string // gen_ai.provider.name, such as "openai"; "" means "_OTHER"
	// Attributes are added to each span and each metric, such as the name of the
	// server that a stack belongs to. Use few values: each is a time series.
	Attributes []attribute.KeyValue
	Content    bool // record messages, arguments and error texts
	// Redact changes each content value before it is cut; nil changes nothing.
	// It must be safe for concurrent use. If it panics, the value is replaced
	// by "[redaction failed]".
	Redact func(string) string
}

// Validate returns the first invalid field as an error, or nil. Use it for
// options read from a file or a flag: New, NewAttempt and NewTool panic with the
// same error.
func (o Options) Validate() error {
	if !utf8.ValidString(o.Provider) { // exporters drop a whole batch for one such attribute
		return fmt.Errorf("tracing: Options.Provider: must be UTF-8, got %q", o.Provider)
	}
	for _, a := range o.Attributes {
		if text := a.Value.Emit(); !a.Valid() || !utf8.ValidString(string(a.Key)+text) {
			return fmt.Errorf("tracing: Options.Attributes: must have a key and be UTF-8, got %q=%q", a.Key, text)
		}
	}
	return nil
}

// New returns a middleware that reports each step: one span that covers all
// attempts, the metrics and the log. It returns the response and the error of the
// step unchanged. It is safe for concurrent use.
//
// Position: outermost. It does not report middlewares outside of it. Inside a
// middleware that re-asks or retries, it would report each attempt as a step.
func New(o Options) middleware.Middleware {
	return newRecorder(o).step
}

// NewAttempt returns a middleware that reports each model call: one span, its
// duration and its tokens. It returns the response and the error of the call
// unchanged. It is safe for concurrent use.
//
// Position: innermost, once in a chain. Further out it measures several model
// calls as one. Outside of a step of New its span has no toolmend.attempt.
func NewAttempt(o Options) middleware.Middleware {
	return newRecorder(o).attempt
}
