// Package textcall gives tool calling to models that only write text.
//
//	call := middleware.Chain(
//		argsvalidate.New(argsvalidate.Options{}),
//		textcall.New(textcall.Options{}),
//	)(model) // a chat model without tools
//
// The function tools of a request are described in a system message, the calls
// and results in its history become text, and what the model writes is read
// back: a response has tool calls, or the final answer as text, as if the
// model had tools of its own. Two forms are known, [ReAct] and [JSONAction].
//
// A text that cannot be read goes back to the model in the same step, with what
// is wrong and the form that is wanted. After the last attempt, or when three
// texts in a row brought nothing new, the step ends as Options.OnExhausted says:
// such a text is never an answer.
//
// # How a text is read
//
// Small models do not keep to the form exactly. textcall accepts these departures,
// each of which has one meaning:
//
//   - letter case, numbers and markdown around the markers;
//   - quoted inputs, inputs of several lines, code fences or none, prose around
//     the action;
//   - a tool name in quotes or brackets, or as "one of [name]", which small models
//     copy from prompts;
//   - in JSON blocks the keys tool or name for action, tool_input or arguments for
//     action_input, and an action named Final Answer for the answer.
//
// A text with no sign of a form is the final answer. A leading <think>…</think> is
// skipped.
//
// These are faults: two actions, an action beside a final answer, an action without
// its input (or with it on the same line), a JSON block that is not JSON, a json code
// block with words in it, and an action in the form that is not Options.Format. The
// last one is detected so that an action is never returned as the answer. The exact names of the tools count; a call to a name that is not
// declared is a call nevertheless, which argsvalidate answers.
//
// In the report, an attempt whose text could not be used has one issue: of code
// unreadable, or of code tool_choice where the request demanded a tool and the
// text used none, or another one.
//
// # Arguments
//
// ToolCall.Arguments is the action's input as the model wrote it, JSON or not.
// Whether it satisfies the schema is for argsvalidate to say. There is one
// exception, because plain text is the form's own convention: for a tool with
// exactly one property, a string, text that is no JSON object becomes
// {"property": "text"}.
package textcall

import (
	"cmp"
	"context"
	"fmt"

	"github.com/toolmend/toolmend/middleware"
)

// Format is the form in which a model writes its tool calls.
type Format uint8

// The formats.
const (
	// ReAct is lines of Thought, Action, Action Input, Observation and Final
	// Answer (Yao et al., arXiv:2210.03629).
	ReAct Format = iota
	// JSONAction is a fenced JSON block with the keys action and action_input.
	// Any other text is the final answer.
	JSONAction
)

// Options are the settings. The zero value is ReAct with at most three
// attempts, and fails open.
type Options struct {
	Format      Format
	MaxAttempts int // model calls of a step, the first one included, until its text can be used; 0 means 3, 1 never asks again
	OnExhausted OnExhausted
}

// Bounds of Options.
const (
	defaultMaxAttempts = 3
	mostAttempts       = 1000
)

// withDefaults returns o with its zero fields filled in.
func (o Options) withDefaults() Options {
	o.MaxAttempts = cmp.Or(o.MaxAttempts, defaultMaxAttempts)
	return o
}

// Validate returns what is wrong with o, nil if nothing is: for options read
// from a file or a flag. New and Model panic with it.
func (o Options) Validate() error {
	if o.Format > JSONAction {
		return fmt.Errorf("textcall: Format: must be one of the constants, got %d", o.Format)
	}
	if o.MaxAttempts < 0 || o.MaxAttempts > mostAttempts {
		return fmt.Errorf("textcall: MaxAttempts: must be 0 to %d, got %d", mostAttempts, o.MaxAttempts)
	}
	if o.OnExhausted > Raise {
		return fmt.Errorf("textcall: OnExhausted: must be one of the constants, got %d", o.OnExhausted)
	}
	return nil
}

// New returns the middleware for chat models without tool calling. It panics if
// o.Validate fails. It is safe for concurrent use.
//
// The request that is sent on has no function tools, and no calls or replies of
// such in its history; its Native and those of the messages that were rewritten
// are nil. Other tools and their calls stay. A ToolChoice that demands a call is
// said in words, and an answer that does not obey it is a fault; under ToolNone
// no tool is described. A request without function tools and calls is passed on as
// it is, and so is an answer with native tool calls: they are the model's own.
//
// A call gets the id textcall_n, where it is the n-th of the conversation. The
// model's thought is the message's text. The text behind a JSON block, or from an
// invented Observation on, is cut: the model cannot know the result.
// FinishReason is tool_calls, but stays length
// where the input may be cut off. Response.Native is nil where the message is
// not the model's own. The report has every text as it was written.
//
// With ReAct, a stop word at the start of a line, "\nObservation:", joins
// Request.Stop where that has room (OpenAI takes four), and the text is cut
// there in any case.
//
// Text is not streamed while it may be an action. A sink gets reasoning as it
// arrives, the answer once it is read, and only native calls.
//
// The error is an *Error under Raise, else that of the model call, of the sink,
// or of the context that ended between two attempts.
//
// Position: innermost, inside argsvalidate and retry. Further out, the layers
// below it see texts where they look for calls.
func New(o Options) middleware.Middleware {
	c := newConfig(o)
	return func(next middleware.ModelCall) middleware.ModelCall {
		if next == nil {
			panic("textcall: New: the model call is nil")
		}
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			if !concerns(req) {
				return next(ctx, req)
			}
			return newStep(ctx, c, next, req).run(ctx)
		}
	}
}

// Model returns a model call over a completion model: [New] over a plain
// prompt. It panics if o.Validate fails or complete is nil.
//
// complete gets the whole conversation as one text, which ends where the model
// goes on, and the texts to stop at; its answer is cut at the first of these.
// It is called from any number of goroutines, and its error is returned as it
// is. Settings such as the temperature are its own affair, and no usage is
// counted. A conversation with media in it is an error: a prompt cannot hold
// them.
//
// The prompt asks for a thought first, so that a ReAct text without any marker
// is a thought, and not the final answer as with New.
func Model(o Options, complete func(ctx context.Context, prompt string, stop []string) (string, error)) middleware.ModelCall {
	c := newConfig(o)
	if complete == nil {
		panic("textcall: Model: complete: must not be nil")
	}
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		s := newStep(ctx, c, nil, req)
		s.next = completion{s.form, s.offered, complete}.call
		return s.run(ctx)
	}
}

// config is what all steps of one middleware share.
type config struct {
	form
	most        int // attempts
	onExhausted OnExhausted
}

// newConfig panics if o.Validate fails.
func newConfig(o Options) config {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	if o.Format == JSONAction {
		return config{jsonForm{}, o.MaxAttempts, o.OnExhausted}
	}
	return config{reactForm{}, o.MaxAttempts, o.OnExhausted}
}

// form is one Format: what it tells the model, and how it writes and reads.
type form interface {
	// instructions describe the tools that may be called, and how.
	instructions(t toolset) string
	// reminder shows the form, for a model that has missed it.
	reminder(t toolset) string
	// call writes a call as the model would, after what it thought, if anything.
	call(thought string, c middleware.ToolCall) string
	// result writes what a tool returned.
	result(m middleware.Message) string
	// read reads what a model wrote.
	read(text string, t toolset) reading
	// stop is where the model has to stop, "" if it does so by itself.
	stop() string
	// transcript is how a plain prompt puts the conversation.
	transcript() transcript
}

// reading is what a text says: a call, an answer or a fault, or none of these,
// and then the text itself is the answer.
type reading struct {
	kind    readingKind
	text    string // of a call: what stands before it; of an answer: the answer; of a fault: what is wrong
	name    string // of a call
	input   string // of a call: ToolCall.Arguments
	certain bool   // of a call: its end is sure, so that no limit can have cut it
}

// readingKind says what a text is. The zero reading is plain text, which passes
// as it is.
type readingKind uint8

const (
	isPlain readingKind = iota
	isCall
	isAnswer
	isFault
)

// fault is a reading that the model is told of: "it has …".
func fault(what string) reading { return reading{kind: isFault, text: what} }
