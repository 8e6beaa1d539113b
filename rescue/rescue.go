// Package rescue reads tool calls that a model wrote as text in its own
// markup, and makes them tool calls.
//
//	call := middleware.Chain(
//		argsvalidate.New(argsvalidate.Options{}),
//		rescue.New(rescue.Options{}),
//		retry.New(retry.Options{}),
//	)(model) // a model with tools, on a server that leaves some calls in the text
//
// Open models write a call as text: <tool_call>{"name": …}</tool_call>. The
// server has to parse it. If the server fails to, the call arrives in the text
// of the answer, and an agent shows the markup to its user or stops. The
// middleware reads such a text again, with stricter rules than a server: it
// prefers to ask the model once more over a call that the model may not have
// meant. Models that have no tool calls at all need package textcall instead.
//
// # What is a call
//
// The middleware reads a text only if the request offers function tools and
// the response has no tool call. Text becomes a call if all of these are true:
//
//   - it is complete markup of one of [Markups], with one possible reading;
//   - it names an offered tool, or exactly one offered tool is meant (mend.Name);
//   - its arguments are a whole JSON object, or text that mend.Syntax reads as one;
//   - it is not in a code block, between backticks or in a quotation, and does not
//     follow a quotation mark or words such as "for example";
//   - it is not in the model's reasoning. There is one exception: the answer
//     has no text, and the call is the last thing in the reasoning;
//   - it does not occur in the request, so a web page or a file cannot inject a
//     call. Messages of the assistant do not count;
//   - its tool is not marked as destructive, unless Options.AllowDestructive
//     is set.
//
// Forms without marks count only if they are the whole text: a code block with
// JSON, and the JSON and Python of Llama. Those of xLAM, GLM-4-9b and Functionary
// are read only if Request.Model, or Response.Model if that is empty, has the name
// of the family in it, or Options.Markups names their markup. They are not read if
// the request asks for an answer in JSON.
//
// # What happens to the rest
//
// The text before and after a call is not changed. If a call in an answer is not
// certain, the model is asked once more, with a user message that gives the reason.
// The issue in the report has one of these codes:
//
//   - truncated: the length limit cut the call;
//   - incomplete: the text ends inside the call, for another reason;
//   - unreadable: the markup, or the arguments in it, cannot be read;
//   - ambiguous: there are several ways to read it, or several markups in use;
//   - unknown_tool: no offered tool has the name;
//   - uncertain: the call may be an example, or an answer of nothing but JSON has
//     the form of a call and is not one;
//   - empty: a required parameter is an empty string. The same call is made if
//     the last attempt has it again;
//   - destructive: the tool is destructive;
//   - unread: an offered tool is named in the marks of a call, in a markup that is
//     not read. It is sent back only with Options.ReaskUnread. See [Unread].
//
// A text that occurs in the request is passed on without a re-ask, because the
// model may be quoting it. If the length limit cut the last of several calls,
// the calls before it are returned.
//
// # Streams
//
// Text that cannot begin a call is passed to the sink at once. Text that may begin a
// call is held until that is decided, but at most 4 KiB of it, for at most 2 s. Then
// it is passed on, if necessary from another goroutine while the model call waits for
// more. A call of an offered tool is held to its end. If the sink already has the text
// of a call, EventReset is sent, and the text without the call follows. The result does
// not depend on how the text was split.
//
// # Files
//
// scan.go finds the places where a call may begin, and decides what counts.
// forms.go is the table of the markups. section.go reads a section of calls and
// those in JSON, elements.go those with raw values, python.go those in Python and
// in Gemma's notation, channels.go answers that are markup as a whole. source.go and
// json.go have what readers share, tools.go the offered tools and their schemas.
// step.go calls the model and re-asks it, errors.go has the error, message.go writes the
// response, request.go looks for a call in the request, and gate.go holds a stream.
package rescue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// Markup is the name of a form in which a family of models writes tool calls, such
// as "hermes". docs/local-models.md has a table of them.
type Markup string

// Markups returns all markups.
func Markups() []Markup {
	var all []Markup
	for _, f := range forms {
		if !slices.Contains(all, f.markup) {
			all = append(all, f.markup)
		}
	}
	return all
}

// Options configure New. The zero value reads every markup, re-asks once, and
// returns an error if that fails.
type Options struct {
	// Markups are the markups to read. nil means all of them, but forms without marks
	// only for the models that write them.
	Markups []Markup
	// MaxAttempts limits the model calls of a step, the first one included. 0
	// means 2; 1 turns re-asks off.
	MaxAttempts int
	// OnExhausted selects what a step returns if the last attempt still holds a call
	// that is not certain. 0 returns an *Error. middleware.Pass returns the response
	// as the model sent it, and its status is invalid. A response with an uncertain
	// or unread call is returned in both cases, with its status unchanged.
	OnExhausted middleware.OnExhausted
	// ReaskUnread asks the model once more if its text has markup that no form reads,
	// with the name of an offered tool in it. In a stream, the markup is held if the answer
	// begins with it; otherwise the sink may have it, and EventReset precedes the next
	// answer. By default such a text is only noted in the report.
	ReaskUnread bool
	// AllowDestructive makes calls to tools that are marked as destructive too.
	// Without it the model is asked to call such a tool properly.
	AllowDestructive bool
	// Destructive are names of tools that count as marked. No provider's format
	// has such a mark, so with package transport this is the only one.
	Destructive []string
}

// Bounds of Options.
const (
	defaultMaxAttempts = 2
	mostAttempts       = 1000
)

// withDefaults returns o with its zero fields filled in.
func (o Options) withDefaults() Options {
	o.MaxAttempts = cmp.Or(o.MaxAttempts, defaultMaxAttempts)
	return o
}

// Validate returns the first invalid field as an error, or nil. Use it for
// options read from a file or a flag: New panics with the same error.
func (o Options) Validate() error {
	all := Markups()
	for _, m := range o.Markups {
		if !slices.Contains(all, m) {
			return fmt.Errorf("rescue: Markups: must be among %v, got %q", all, m)
		}
	}
	if o.MaxAttempts < 0 || o.MaxAttempts > mostAttempts {
		return fmt.Errorf("rescue: MaxAttempts: must be 0 to %d, got %d", mostAttempts, o.MaxAttempts)
	}
	return o.OnExhausted.Validate("rescue: OnExhausted")
}

// New returns the middleware. It panics if o.Validate fails. It is safe for
// concurrent use.
//
// A rescued call has a new id, rescue_n for the n-th call of the conversation.
// The response's finish reason is tool_calls, its status is unchecked, and
// the Native of the response and of its message is nil. In the report, the
// attempt has a Change for each piece of markup that was taken out of the
// text: By is "rescue/" and the markup, Before is the piece, After the name of
// its tools.
//
// The error is an *Error if the last attempt still holds a call that is not certain
// (see Options.OnExhausted). Otherwise it is the error of the model call, of the
// sink, or of a context that ended between two attempts.
//
// Position: inside argsvalidate, which validates the rescued calls, and outside
// retry. A middleware that reads the text of answers goes outside.
func New(o Options) middleware.Middleware {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	table := newTable(o.Markups)
	return func(next middleware.ModelCall) middleware.ModelCall {
		if next == nil {
			panic("rescue: New: the model call is nil")
		}
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			tools := newTools(req)
			if len(tools.names) == 0 {
				return next(ctx, req)
			}
			s := &rescueStep{o: o, table: table, tools: tools, next: next, req: req, asked: req}
			return s.run(ctx)
		}
	}
}
