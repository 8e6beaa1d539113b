// Package argsvalidate validates the tool calls of a model's response inside the model
// step, before a tool runs and before a person is asked for approval.
//
//	call := argsvalidate.New(argsvalidate.Options{})(model)
//
// For each response the middleware does the following, in this order:
//
//  1. It checks that each call is complete, that its tool is declared, and that its
//     arguments are one JSON object.
//  2. It removes empty values of optional properties (package strip).
//  3. It validates the arguments against the tool's schema, then with Tool.Decode.
//  4. It repairs mistakes that have only one possible fix (package mend), and runs your
//     Fixers. A repair is kept only if the call is then valid.
//  5. It runs your Rules.
//  6. If a call is invalid, it calls the model again. The new request ends with the failed
//     message and a reply to each of its calls: an error that lists all issues of an
//     invalid call, or a notice that a valid call was not executed. A message without calls
//     is re-asked if the request demands a call, or if the message is empty.
//  7. After MaxAttempts attempts it returns an *Error, or what OnExhausted selects.
//
// The response that it returns has exactly the arguments that were validated. Failed turns
// are in the step's report only.
//
// [Validator.Validate] validates calls without a model: after a person has edited them, in
// a loop of your own, or in recorded logs.
//
// # Issue codes
//
// The code of an issue is the JSON Schema keyword that failed: required, type, enum,
// additionalProperties and so on. If the schema false rejects an object, the code is
// false. The other codes:
//
//	syntax, trailing_data, utf8   the arguments are not one JSON text
//	size, depth, number           the arguments exceed the Limits
//	too_many_calls                the message has more calls than Limits.Calls; on the first call after the limit
//	duplicate_key                 an object has two members of one key; before Tool.Decode, in ForTool and with FoldKeys also a key that differs in letter case only from a declared property
//	not_object                    the arguments are JSON, but not an object
//	truncated                     the model was cut off while it wrote the call
//	unknown_tool                  the request declares no such tool
//	tool_choice                   the request forbids this call, by ToolChoice or AllowedTools, or a rule does (Forbid); or the request requires a call that the message does not have
//	parallel_calls                the message has a further call, and the request allows one (NoParallelCalls)
//	empty                         the message has neither an answer nor a call (Options.EmptyAnswers)
//	unread_call                   the provider could not read the call (middleware.ErrInvalidToolCall)
//	unusable_schema               the tool's schema cannot be used (Options.UnusableSchemas)
//	undeclared                    a property that an open schema does not declare (Options.Properties)
//	decode                        Tool.Decode refused
//	rule                          a rule refused, unless it gave a code of its own
//	undecided                     not fully validated: a rule or Tool.Decode could not decide, the context ended, or the call is after Limits.Calls
//	unchecked                     too expensive to validate against the schema
package argsvalidate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// Options configure New and NewValidator. The zero value makes two re-asks,
// strips empty optional values, applies the default repairs, rejects
// undeclared tools, and returns an error if all attempts fail.
type Options struct {
	MaxAttempts int // model calls of a step, the first one included; 0 means 3, 1 turns re-asks off
	// OnExhausted selects what a step returns if calls are still invalid after the
	// last attempt. 0 returns an *Error. If the settings of the invalid calls
	// differ (PerTool), the strictest applies: 0 or middleware.Raise, then
	// middleware.DropInvalid, then middleware.Pass.
	//
	// With Pass the response has all calls: valid ones as validated, invalid ones
	// as sent, except for broken ids. Report.Status is middleware.Invalid, even if
	// some calls are valid. With DropInvalid it is the status of the valid calls,
	// and a note names the ids of the dropped ones.
	//
	// It also applies if the model call of a re-ask fails: Pass and DropInvalid
	// return the last response, and the error wraps that failure. If the context
	// has ended or a budget is exceeded (middleware.ErrBudget), the step returns
	// the error.
	OnExhausted  middleware.OnExhausted
	UnknownTools UnknownTools
	Properties   Properties // undeclared properties that the schema does not forbid
	Strip        strip.Mode
	Mend         []mend.Rule // local repairs of invalid arguments; nil means mend.Default(), mend.Off() turns them off
	Fixers       []Fixer     // your own repairs, tried in order if the built-in ones fail; a panic or a timeout counts as no repair
	Batch        batch.Policy
	Rules        []Rule
	RuleTimeout  time.Duration // for each call of your functions: rules, fixers, Tool.Decode, Feedback; 0 means 10 s
	OnRuleError  OnRuleError
	Tools        []middleware.Tool // added to the request's tools; a tool replaces the request's tool of the same name
	Limits       Limits
	PerTool      map[string]ToolOptions     // by tool name
	Feedback     func(FeedbackInput) string // nil means DefaultFeedback
	Advanced
}

// Advanced are the Options that few programs need.
type Advanced struct {
	UnusableSchemas UnusableSchemas
	Placeholders    []string // strings that strip treats as empty too
	// FreshOnRepeat changes the next request if the model has repeated its
	// invalid calls. The request then leaves out the failed turns of the step,
	// and ends with a user message that lists the issues. FreshOnRepeat helps
	// some small models at temperature 0 and hurts others; see
	// docs/feedback.md. It has no effect while batch.KeepValid keeps valid calls. Leave it off
	// for requests with a conversation that the provider keeps (conversation of OpenAI
	// Responses): the provider has stored the failed turns.
	FreshOnRepeat bool
	LastTurnOnly  bool // a re-ask has only the last failed turn, which saves tokens
	// Escalate is the model of the last attempt of a step, if that attempt is a re-ask: a larger
	// model of the same provider and format. Usage is reported for the model that answered. ""
	// turns it off. It has no effect on requests without a model, such as Gemini's, which have
	// the model in the path. A larger model takes longer: do not set it if the client waits.
	Escalate string
	// Constrain makes the provider constrain the call of a re-ask. 0 is NoConstraint. In a
	// measurement with two small models, 71 instead of 23 of 76 calls became valid, and 52 instead
	// of 16 calls were valid and wrong. Do not set it where a wrong call does harm.
	Constrain Constrain
	// EmptyAnswers selects what happens to messages that hold neither an answer nor a call.
	EmptyAnswers EmptyAnswers
	// RejectedCalls is OnExhausted for calls that a rule has rejected, and for every invalid call
	// of a tool that a rule covers, because another fault may have kept the rule from running.
	// Restrict and Forbid cover the tools that they name. A rule of your own covers those for
	// which its method Covers(tool string) bool, if it has one, returns true. PerTool takes
	// precedence; 0 means that the calls are as other invalid calls. A client that validates a
	// call again by the tool's schema, and is sent invalid calls with Pass, does not know the
	// rules. NoLoops does not count as a rule: it gives way after one re-ask.
	RejectedCalls middleware.OnExhausted
	// RaiseTokens is the highest length limit (Request.MaxTokens) of a re-ask because of a
	// truncated call. Such a call is re-asked once, with twice the limit of the request, and
	// only if the request states one that can be raised and the budget of the context allows
	// it. 0 sets no bound; NoRaise re-asks no truncated call.
	RaiseTokens int
	Formats     bool // validate "format", which JSON Schema leaves optional
	// SafeFormats validates the formats that tools read as their standards say: date, ipv4 and
	// ipv6. Other formats reject values that many tools accept, such as a time without a zone.
	SafeFormats bool
	// FoldKeys rejects an undeclared key that differs in letter case only from a declared
	// property, with the code duplicate_key. false rejects it only where Go decodes the
	// arguments: before Tool.Decode, and in ForTool. Set it if you do not know what decodes
	// them: encoding/json takes the value for the property, whose schema has not validated it.
	FoldKeys bool
	// Dialect is the JSON Schema dialect of schemas without $schema: its URI,
	// or draft-04, draft-06, draft-07, 2019-09 or 2020-12. "" means 2020-12.
	Dialect string
}

// ToolOptions changes Options for one tool. A zero field inherits from
// Options.
type ToolOptions struct {
	Strip       strip.Mode
	Mend        []mend.Rule       // nil inherits; mend.ToolName works only in Options, because it applies before the tool is known
	Aliases     map[string]string // names that mend.Rename may replace by a declared property
	OnExhausted middleware.OnExhausted
	Properties  Properties
	Constrain   Constrain
	MaxAttempts int // model calls of a step; if several calls are invalid, the largest value counts
}

// Fixer is a repair of your own. It returns new arguments, or false. The
// middleware validates the new arguments. A panic or a timeout counts as false.
type Fixer func(ctx context.Context, tool middleware.Tool, call middleware.ToolCall, issues []middleware.Issue) (arguments string, ok bool)

// New returns NewValidator(o).Middleware(). It panics if o.Validate fails.
//
// Position: outside retry, so that a re-ask gets its own attempts. Inside
// tracing, so that one span covers all attempts. Outside any middleware that
// rewrites calls: calls that are rewritten outside it are not validated.
func New(o Options) middleware.Middleware { return NewValidator(o).Middleware() }

// UnknownTools selects the status of a call to an undeclared tool. It does not
// apply to a tool that the request does not list, but announces in one of these ways:
//
//   - A system message has its name as a whole word. If the name is an English word,
//     such as search, no other word may be next to it in its line.
//   - A reminder of Claude Code has its name: a text part of a user message that is one
//     <system-reminder> and begins with the sentence about deferred tools, or about tools
//     that were loaded before a compaction. All parts before it are reminders, the message
//     has a further part or follows a tool result, and the request lists ToolSearch.
//   - A reminder of qwen-code has a row with its name, and the request lists tool_search
//     and tool_call.
//   - The request lists a toolset that the provider runs (Tool.Loads).
//
// A call to such a tool is unchecked, Verdict.Announced is set, and the report has a
// note. Names in tool results, in other user texts and in the model's texts do not count.
// If the request lists a tool that loads further tools, the reply to a call of any other
// undeclared tool is that the tool is not loaded.
type UnknownTools uint8

// The settings.
const (
	RejectUnknown UnknownTools = iota + 1 // the default: the call is invalid
	PassUnknown                           // the call is unchecked, if its arguments are a JSON object and the rules accept it
)

var unknownWords = text.Words{"", "reject", "pass"}

// String returns the word of the constant, such as "pass", and "default" for 0.
func (u UnknownTools) String() string { return unknownWords.Of(uint8(u)) }

// MarshalText returns the text of String.
func (u UnknownTools) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText sets u to the constant with this word: reject or pass.
func (u *UnknownTools) UnmarshalText(word []byte) error { return unknownWords.Parse(word, (*uint8)(u)) }

// UnusableSchemas selects the status of a call to a tool whose schema does not
// compile or would cost too much.
type UnusableSchemas uint8

// The settings.
const (
	PassUnusable   UnusableSchemas = iota + 1 // the default: the call is unchecked, if its arguments are a JSON object and the rules accept it
	RejectUnusable                            // the call is invalid, with the issue unusable_schema
)

var unusableWords = text.Words{"", "pass", "reject"}

// String returns the word of the constant, such as "reject", and "default" for 0.
func (u UnusableSchemas) String() string { return unusableWords.Of(uint8(u)) }

// MarshalText returns the text of String.
func (u UnusableSchemas) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText sets u to the constant with this word: pass or reject.
func (u *UnusableSchemas) UnmarshalText(word []byte) error {
	return unusableWords.Parse(word, (*uint8)(u))
}

// Properties selects the status of an undeclared property under an open
// schema: a schema that declares properties and has no rule for other properties.
type Properties uint8

// The settings.
const (
	BySchema         Properties = iota + 1 // it is valid; the default
	RejectUndeclared                       // it is an issue of code undeclared
	NoteUndeclared                         // it is valid, and the report has a note
)

// OnRuleError selects what happens if a rule could not decide: it returned an
// error, panicked, or timed out.
type OnRuleError uint8

// The settings.
const (
	FailStep OnRuleError = iota // the step ends with ErrRule, whatever OnExhausted is: a failed database, for example, is not the model's mistake
	AsIssue                     // the call is invalid; the model reads that the call could not be checked, without the reason
	Ignore                      // the rule is skipped, and the report has a note
)

// Constrain selects whether the provider's server restricts the model's output in a
// re-ask to a call of the tool whose call was invalid. A constrained call is more often
// valid than correct: see docs/feedback.md.
//
// A re-ask is constrained only if the message had one call, its issues are about the form
// of the arguments, and the tool is not destructive, because the model cannot withdraw a
// forced call. If the provider refuses the constraint, or the answer has no call, the
// step repeats the model call without it and uses no further constraint. The refused
// model call is in the report and does not count as an attempt.
type Constrain uint8

// The constraints.
const (
	// NoConstraint is the default.
	NoConstraint Constrain = iota + 1
	// ConstrainNamed sets the request's tool choice to the tool, and the tool to strict.
	// The format must have a tool choice: Ollama's own has none.
	ConstrainNamed
	// ConstrainResponseFormat requests the call as a JSON text, and converts the text to a
	// call. It is for servers that ignore a tool choice, such as llama.cpp, in the formats
	// of OpenAI Chat and Ollama. It is not used for schemas with $ref.
	ConstrainResponseFormat
)

var constrainWords = text.Words{"", "off", "named", "response-format"}

// String returns the word of the constant, such as "named", and "default" for 0.
func (c Constrain) String() string { return constrainWords.Of(uint8(c)) }

// MarshalText returns the text of String.
func (c Constrain) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText sets c to the constant with this word: off, named or response-format.
func (c *Constrain) UnmarshalText(word []byte) error { return constrainWords.Parse(word, (*uint8)(c)) }

// Limits limit the calls of one message and the arguments of one call. A zero
// field means its default.
type Limits struct {
	Bytes    int // of arguments; default 1 MiB; longer arguments are rejected without parsing, and their message is not re-asked
	Depth    int // of nested objects and arrays; at most 512, default 64
	Number   int // characters of one number; at most 10,000, default 1,000
	Exponent int // of one number, positive or negative; at most 10,000, default 400
	// Calls is the number of calls of one message that are validated; at most
	// 65,536, default 128. A message with more calls is invalid, and is not
	// re-asked. The first call after the limit has the issue too_many_calls,
	// and further calls have the issue undecided. The calls within the limit
	// are validated as usual, and DropInvalid keeps the valid calls.
	Calls int
	// Turns is the number of bytes of text and arguments that failed turns add
	// to a request; default 1 MiB. The oldest turns are left out first. The
	// last turn is always sent; batch.Turn limits its size.
	Turns int
}

const maxAttempts = 1000

// Past these values, jsonschema/v5 takes seconds for one value.
const (
	maxDepth  = 512
	maxDigits = 10_000
)

const (
	defaultMaxAttempts = 3
	defaultCalls       = 128
	defaultTurns       = 1 << 20
	maxCalls           = 1 << 16
	defaultRuleTimeout = 10 * time.Second
)

// clone copies the slices and maps of o, which the caller may modify later.
func (o Options) clone() Options {
	o.Placeholders = slices.Clone(o.Placeholders)
	o.Fixers = slices.Clone(o.Fixers)
	o.Rules = slices.Clone(o.Rules)
	o.Mend = slices.Clone(o.Mend)
	o.Tools = slices.Clone(o.Tools)
	o.PerTool = maps.Clone(o.PerTool)
	for name, t := range o.PerTool {
		t.Aliases = maps.Clone(t.Aliases)
		o.PerTool[name] = t
	}
	return o
}

func (o Options) withDefaults() Options {
	o.MaxAttempts = cmp.Or(o.MaxAttempts, defaultMaxAttempts)
	o.UnknownTools = cmp.Or(o.UnknownTools, RejectUnknown)
	o.UnusableSchemas = cmp.Or(o.UnusableSchemas, PassUnusable)
	o.EmptyAnswers = cmp.Or(o.EmptyAnswers, EmptyDefault)
	o.Properties = cmp.Or(o.Properties, BySchema)
	o.Batch = cmp.Or(o.Batch, batch.ReissueAll)
	o.Strip = cmp.Or(o.Strip, strip.Optional)
	if o.Mend == nil {
		o.Mend = mend.Default()
	}
	o.RuleTimeout = cmp.Or(o.RuleTimeout, defaultRuleTimeout)
	o.Limits.Calls = cmp.Or(o.Limits.Calls, defaultCalls)
	o.Limits.Turns = cmp.Or(o.Limits.Turns, defaultTurns)
	return o
}

// forTool returns the settings for a tool, with the inherited values filled
// in.
func (o *Options) forTool(name string) ToolOptions {
	t := o.PerTool[name]
	if t.Mend == nil {
		t.Mend = o.Mend
	}
	t.Constrain = cmp.Or(t.Constrain, o.Constrain)
	t.Strip = cmp.Or(t.Strip, o.Strip)
	t.OnExhausted = cmp.Or(t.OnExhausted, o.OnExhausted)
	t.Properties = cmp.Or(t.Properties, o.Properties)
	t.MaxAttempts = cmp.Or(t.MaxAttempts, o.MaxAttempts)
	return t
}

func (l Limits) scan() rawjson.Limits {
	return rawjson.Limits{Bytes: l.Bytes, Depth: l.Depth, Number: l.Number, Exponent: l.Exponent}
}

// Validate returns the first invalid field as an error, or nil. Use it for
// options read from a file or a flag: New panics with the same error. Validate
// does not check schemas: a schema that does not compile is a note in the report
// of each step that calls its tool.
func (o Options) Validate() error {
	for _, n := range []struct {
		field string
		value int
		most  int
	}{
		{"MaxAttempts", o.MaxAttempts, maxAttempts},
		{"Limits.Bytes", o.Limits.Bytes, 1 << 30},
		{"Limits.Depth", o.Limits.Depth, maxDepth},
		{"Limits.Number", o.Limits.Number, maxDigits},
		{"Limits.Exponent", o.Limits.Exponent, maxDigits},
		{"Limits.Calls", o.Limits.Calls, maxCalls},
		{"Limits.Turns", o.Limits.Turns, 1 << 30},
	} {
		if n.value < 0 || n.value > n.most {
			return invalidOption(n.field, fmt.Sprintf("must be 0 to %d", n.most), n.value)
		}
	}
	_, known := schema.Dialect(o.Dialect)
	switch {
	case o.RuleTimeout < 0:
		return invalidOption("RuleTimeout", "must not be negative", o.RuleTimeout)
	case o.UnknownTools > PassUnknown || o.OnRuleError > Ignore || !o.Batch.Known():
		return invalidOption("UnknownTools, OnRuleError or Batch", "not one of the constants", [...]any{o.UnknownTools, o.OnRuleError, o.Batch})
	case o.UnusableSchemas > RejectUnusable:
		return invalidOption("UnusableSchemas", "not one of the constants", o.UnusableSchemas)
	case o.EmptyAnswers > EmptyAlways:
		return invalidOption("EmptyAnswers", "not one of the constants", uint8(o.EmptyAnswers))
	case o.RaiseTokens < NoRaise:
		return invalidOption("RaiseTokens", "must not be negative, unless it is NoRaise", o.RaiseTokens)
	case o.Constrain > ConstrainResponseFormat:
		return invalidOption("Constrain", "not one of the constants", uint8(o.Constrain))
	case !known && o.Dialect != "":
		return invalidOption("Dialect", "not a dialect of JSON Schema that is known", fmt.Sprintf("%q", o.Dialect))
	}
	if err := cmp.Or(o.RejectedCalls.Validate("argsvalidate: Options: RejectedCalls"), o.validateFunctions()); err != nil {
		return err
	}
	return o.validateTools()
}

func invalidOption(field, what string, got any) error {
	return fmt.Errorf("argsvalidate: %s: %s, got %v", field, what, got)
}

func (o Options) validateFunctions() error {
	for i, f := range o.Fixers {
		if f == nil {
			return invalidOption(fmt.Sprintf("Fixers[%d]", i), "must not be nil", nil)
		}
	}
	for i, r := range o.Rules {
		if isNil(r) {
			return invalidOption(fmt.Sprintf("Rules[%d]", i), "must not be nil", nil)
		}
		if c, ok := unwrapRule(r).(interface{ validate() error }); ok {
			if err := c.validate(); err != nil {
				return fmt.Errorf("argsvalidate: Rules[%d]: %w", i, err)
			}
		}
	}
	return nil
}

func (o Options) validateTools() error {
	names := map[string]bool{}
	for i, t := range o.Tools {
		if t.Name == "" || names[t.Name] {
			return invalidOption(fmt.Sprintf("Tools[%d].Name", i), "must be set and unique", fmt.Sprintf("%q", t.Name))
		}
		names[t.Name] = true
	}
	if err := (ToolOptions{Mend: o.Mend, Strip: o.Strip, OnExhausted: o.OnExhausted, Properties: o.Properties}).validate("Options"); err != nil {
		return err
	}
	for name, t := range o.PerTool {
		if err := t.validate(fmt.Sprintf("PerTool[%q]", name)); err != nil {
			return err
		}
	}
	return nil
}

// isNil also detects a nil pointer in the interface, whose methods would
// panic.
func isNil(r Rule) bool {
	v := reflect.ValueOf(r)
	return r == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

func (t ToolOptions) validate(where string) error {
	if err := t.OnExhausted.Validate("argsvalidate: " + where + ": OnExhausted"); err != nil {
		return err
	}
	if t.Properties > NoteUndeclared || t.Strip > strip.Off {
		return fmt.Errorf("argsvalidate: %s: Properties or Strip: not one of the constants, got %d, %d", where, t.Properties, t.Strip)
	}
	if i := slices.IndexFunc(t.Mend, func(r mend.Rule) bool { return !r.Known() }); i >= 0 {
		return fmt.Errorf("argsvalidate: %s: Mend: not one of the rules: %s", where, t.Mend[i])
	}
	if t.MaxAttempts < 0 || t.MaxAttempts > maxAttempts {
		return fmt.Errorf("argsvalidate: %s: MaxAttempts: must be 0 to %d, got %d", where, maxAttempts, t.MaxAttempts)
	}
	return nil
}
