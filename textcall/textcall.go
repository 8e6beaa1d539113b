// Package textcall gives tool calling to models that only write text.
//
//	call := middleware.Chain(
//		argsvalidate.New(argsvalidate.Options{}),
//		textcall.New(textcall.Options{}),
//	)(model) // a chat model without tools
//
// The middleware describes the function tools of a request in a system
// message, and turns the calls and results of the history into text. It
// reads the model's text back: the response has tool calls, or the final
// answer as text. There are two forms for that text, [ReAct] and
// [JSONAction].
//
// If a text cannot be read, the model is called again in the same step. A
// user message then names the problem and shows the expected form. After
// the last attempt, or after three texts in a row that repeat earlier
// failures, Options.OnExhausted decides. A text that cannot be read is never
// returned as an answer.
//
// # How a text is read
//
// Small models deviate from the form. textcall accepts these deviations,
// each of which has only one meaning:
//
//   - other letter case, numbers and Markdown around the markers;
//   - quoted inputs, inputs of several lines, code fences or none, and prose
//     around the action;
//   - a tool name in quotes or brackets, or as "one of [name]", which small
//     models copy from prompts;
//   - JSON blocks in the spelling of Python or JavaScript, and with trailing
//     commas, as mend.Syntax reads them;
//   - in JSON blocks, the keys tool or name for action, tool_input or
//     arguments for action_input, and an action named Final Answer for the
//     answer.
//
// A text without any marker of a form is the final answer. A leading
// <think>…</think> is skipped.
//
// These texts cannot be read:
//
//   - two actions, or an action next to a final answer;
//   - an action without an input, or with the input on the same line;
//   - a JSON block with another fault, or a json code block with prose in it;
//   - an action in the form that is not Options.Format. It is detected so
//     that an action is never returned as the answer.
//
// The name of a tool must match exactly. A call to an undeclared tool is
// returned as a call, and argsvalidate rejects it.
//
// In the report, an attempt with an unusable text has one issue. Its code is
// unreadable, or tool_choice if the request demanded a tool and the text
// uses none or another one.
//
// # Arguments
//
// ToolCall.Arguments is the action's input as the model wrote it, JSON or
// not. argsvalidate validates it. There is one exception: if the tool has
// exactly one property, and that is a string, then an input that is not a
// JSON object becomes {"property": "input"}. Plain text is the convention of
// ReAct.
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

// Options configure New and Model. The zero value uses ReAct, makes at most three
// attempts, and returns an error if all of them fail.
type Options struct {
	Format      Format
	MaxAttempts int // model calls of a step, the first one included; 0 means 3, 1 turns re-asks off
	// OnExhausted selects what a step returns if the text of the last attempt
	// cannot be used. 0 returns an *Error. middleware.Pass returns the last message
	// as it was sent, with a note. If its text cannot be read, Report.Status is
	// middleware.Invalid and the sink does not get the text. If the text can be
	// read, but does not use the tool that the request demands, the call or the
	// answer in it is returned; with an answer, Report.Status is middleware.Invalid.
	OnExhausted middleware.OnExhausted
}

// Bounds of Options.
const (
	defaultMaxAttempts = 3
	mostAttempts       = 1000
)

// Validate returns the first invalid field as an error, or nil. Use it for
// options read from a file or a flag: New and Model panic with the same
// error.
func (o Options) Validate() error {
	if o.Format > JSONAction {
		return fmt.Errorf("textcall: Format: must be one of the constants, got %d", o.Format)
	}
	if o.MaxAttempts < 0 || o.MaxAttempts > mostAttempts {
		return fmt.Errorf("textcall: MaxAttempts: must be 0 to %d, got %d", mostAttempts, o.MaxAttempts)
	}
	return o.OnExhausted.Validate("textcall: OnExhausted")
}

// New returns the middleware for chat models without tool calling. It panics
// if o.Validate fails. It is safe for concurrent use.
//
// The request that is sent on has no function tools, and no calls or replies
// to calls of function tools in its history. Its Native and those of the
// rewritten messages are nil. Other tools and their calls stay. If
// ToolChoice demands a call, the system message does too, and a text without
// that call is unusable. With ToolNone no tool is described. A request
// without function tools and calls is passed on unchanged. A response with
// native tool calls is returned unchanged.
//
// The n-th call of the conversation gets the id textcall_n. The model's
// thought is the text of the message. Text after a JSON block, and text from
// an invented Observation on, is cut off, because the model cannot know the
// result. FinishReason is tool_calls, or stays length if the input may be
// cut off. Response.Native is nil if the message differs from the model's
// own. The report has every text as the model wrote it.
//
// With ReAct, "\nObservation:" is added to Request.Stop if there is room
// (OpenAI accepts four stop words). The text is cut there in any case.
//
// Text is not streamed while it may be an action. A sink gets reasoning as
// it arrives, and the answer once it is read. It gets only native calls.
//
// The error is an *Error if all attempts fail. Otherwise it is the error of the
// model call, of the sink, or of a context that ended between two attempts.
//
// Position: innermost, inside argsvalidate and retry. Middlewares inside it
// see texts instead of calls.
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

// Model returns a model call that uses a completion model, as [New] uses a
// chat model. It panics if o.Validate fails or complete is nil.
//
// complete gets the whole conversation as one prompt, and the texts to stop
// at. Its result is cut at the first of these. It must be safe for
// concurrent use. Its error is returned unchanged. Settings such as the
// temperature belong to complete, and no usage is recorded. A conversation
// with media is an error, because a prompt cannot contain them.
//
// With ReAct the prompt ends in "Thought:". So a text without any marker is a
// thought, and not the final answer as with New.
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
	onExhausted middleware.OnExhausted
}

// newConfig panics if o.Validate fails.
func newConfig(o Options) config {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	c := config{reactForm{}, cmp.Or(o.MaxAttempts, defaultMaxAttempts), o.OnExhausted}
	if o.Format == JSONAction {
		c.form = jsonForm{}
	}
	return c
}

// form is one Format: its instructions, and how it writes and reads texts.
type form interface {
	// instructions describe the tools that may be called, and how.
	instructions(t toolset) string
	// reminder shows the form again, after a text that could not be used.
	reminder(t toolset) string
	// call writes a call as the model would, after its thought, if there is one.
	call(thought string, c middleware.ToolCall) string
	// result writes the result of a tool.
	result(m middleware.Message) string
	// read reads a text of the model.
	read(text string, t toolset) reading
	// stop returns the stop word, or "" if the form needs none.
	stop() string
	// transcript returns the form of a conversation in a plain prompt.
	transcript() transcript
}

// reading is the content of a text: a call, an answer, a fault, or plain text, which is the
// answer itself.
type reading struct {
	kind    readingKind
	text    string // of a call: the text before it; of an answer: the answer; of a fault: the problem
	name    string // of a call
	input   string // of a call: ToolCall.Arguments
	certain bool   // of a call: its end is sure, so that no limit can have cut it
}

// readingKind is the kind of a reading. The zero reading is plain text, which is passed on
// unchanged.
type readingKind uint8

const (
	isPlain readingKind = iota
	isCall
	isAnswer
	isFault
)

// fault is a reading that the model gets an error reply for: "it has …".
func fault(what string) reading { return reading{kind: isFault, text: what} }
