// Package argsvalidate lets only valid tool calls through, and asks the model
// again about the others.
//
//	call := argsvalidate.New(argsvalidate.Options{})(model)
//
// Every tool call of an answer is judged inside the model step, before a tool
// runs and before a person is asked: is it whole, is the tool declared, are the
// arguments one JSON object, do they satisfy the tool's schema and your rules.
// Empty optional values are taken out first, and what is certain to be put
// right locally is mended. If a call is still invalid, each call of the message
// gets its reply, an error that lists everything wrong at once for a bad one,
// and the model is asked again. Failed turns stay inside the step.
//
// The same judgement is there without a model: [Validator.Validate], for
// arguments that a person has edited, in a loop, or over recorded logs.
//
// # Issue codes
//
// A fault found by a JSON Schema keyword has the keyword for a code: required,
// type, enum, additionalProperties and so on; an object that "false" refuses has
// the code false. The others:
//
//	syntax, trailing_data, utf8   the arguments are not one JSON text
//	size, depth, number           they are past the Limits
//	too_many_calls                the message has more calls than Limits.Calls; on the first call past it
//	duplicate_key                 an object has two members of one key
//	not_object                    JSON, but no object
//	truncated                     the model was cut off while it wrote the call
//	unknown_tool                  the request declares no such tool
//	unusable_schema               the tool's schema cannot be used (Options.UnusableSchemas)
//	undeclared                    a property that an open schema does not declare (Options.Properties)
//	decode                        Tool.Decode refused
//	rule                          a rule refused, unless it gave a code of its own
//	undecided                     not validated to the end: a rule could not decide, the context ended, or the call is past Limits.Calls
//	unchecked                     too much work to hold to the schema: send less
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
	"github.com/toolmend/toolmend/internal/validators"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// Options configure New and NewValidator. The zero value re-asks twice, strips
// optional empties, mends what is certain, refuses undeclared tools, and fails
// open.
type Options struct {
	MaxAttempts     int // model calls of a step, the first one included; 0 means 3, 1 never asks again
	OnExhausted     OnExhausted
	UnknownTools    UnknownTools
	UnusableSchemas UnusableSchemas
	Properties      Properties // undeclared properties under an open schema
	Strip           strip.Mode
	Placeholders    []string    // strings that strip also takes as empty; nil: none
	Mend            []mend.Rule // local repairs of invalid arguments; nil means mend.Default(), mend.None() turns them off
	Fixers          []Fixer     // yours, tried in order when the built-in ones fail; one that panics or is late has no fix
	Batch           batch.Policy
	// FreshOnRepeat changes the next request when the model has sent the very same
	// invalid calls again: it leaves the failed turns of the step out, and a user
	// message behind the conversation says what was wrong. It helps some small
	// models at temperature 0 and hurts others; see docs/feedback.md. While valid
	// calls are held (batch.KeepValid), the failed turns stay.
	FreshOnRepeat bool
	LastTurnOnly  bool // a re-ask has the last failed turn only, not those before it: fewer tokens
	Formats       bool // assert "format", which JSON Schema leaves open
	// Dialect is that of schemas without $schema: its URI, or draft-04, draft-06,
	// draft-07, 2019-09 or 2020-12. "" means 2020-12.
	Dialect     string
	Rules       []Rule
	RuleTimeout time.Duration // for each call of a function of yours: rules, fixers, Tool.Decode, Feedback; 0 means 10 s
	OnRuleError OnRuleError
	Tools       []middleware.Tool // these, and the request's own of other names; nil: the request's own
	Limits      Limits
	PerTool     map[string]ToolOptions     // by tool name
	Feedback    func(FeedbackInput) string // nil: DefaultFeedback
}

// ToolOptions changes Options for one tool. A zero field inherits.
type ToolOptions struct {
	Strip       strip.Mode
	Mend        []mend.Rule       // nil inherits. Not ToolName, which is the Options' to say: the tool is not known yet
	Aliases     map[string]string // names that mend.Rename may take for a declared property
	OnExhausted OnExhausted
	Properties  Properties
	MaxAttempts int // counts the attempts of the step; where several calls are invalid, the largest counts
}

// Inherit is the zero value of OnExhausted and Properties: in ToolOptions it
// means what Options say, in Options the default.
const Inherit = 0

// OnExhausted says what a step returns if calls are still invalid when no attempt
// is left. If the settings of the invalid calls differ, the strictest counts:
// Raise, then DropInvalid, then Pass.
type OnExhausted uint8

// The settings.
const (
	// Pass is the default. It returns the response with all calls: valid ones as
	// they were validated, invalid ones as they were sent, but for broken ids.
	// Report.Status is middleware.Invalid, also where some calls are valid: look at
	// it before you run a call.
	Pass OnExhausted = iota + 1
	// Raise returns no response but an *Error with ErrExhausted and ErrInvalid. Its
	// Response, Verdicts and Replies hold all calls, the valid ones too.
	Raise
	// DropInvalid returns the response with its valid calls only. Report.Status is
	// that of these calls, and a note names the ids that were dropped. If no valid
	// call is left it does what Raise does.
	DropInvalid
)

// Fixer is a repair of your own: it returns new arguments, or false. They are
// validated like any other. A panic and a timeout count as false.
type Fixer func(ctx context.Context, tool middleware.Tool, call middleware.ToolCall, issues []middleware.Issue) (arguments string, ok bool)

// UnknownTools says what a call to an undeclared tool is.
type UnknownTools uint8

// What it may be.
const (
	RejectUnknown UnknownTools = iota // invalid
	PassUnknown                       // unchecked, if its arguments are a JSON object and the rules agree
)

// UnusableSchemas says what a call to a tool is whose schema does not compile,
// or would cost too much.
type UnusableSchemas uint8

// What it may be.
const (
	PassUnusable   UnusableSchemas = iota // unchecked, if its arguments are a JSON object and the rules agree
	RejectUnusable                        // invalid, with the issue unusable_schema
)

// Properties says what an undeclared property is under a schema that does not
// forbid it: an object schema that declares properties and says nothing about
// others.
type Properties uint8

// What it may be.
const (
	BySchema         Properties = iota + 1 // valid; the default
	RejectUndeclared                       // an issue of code undeclared
	NoteUndeclared                         // valid, with a note in the report
)

// OnRuleError says what happens when a rule could not decide: it returned an
// error, panicked, or was not back in time.
type OnRuleError uint8

// What may happen.
const (
	FailStep OnRuleError = iota // the step ends with ErrRule, whatever OnExhausted says: a database that is down is not the model's fault
	AsIssue                     // the call is invalid; the model is told that it could not be checked, not why
	Ignore                      // the rule is passed over, with a note in the report
)

// Limits bound what is validated: the calls of one message, and the arguments
// of one call. Zero fields mean the defaults.
type Limits struct {
	Bytes    int // default 1 MiB; longer arguments are refused unread
	Depth    int // of nested objects and arrays, at most 512; default 64
	Number   int // characters of one number, at most 10,000; default 1,000
	Exponent int // of one number, either sign, at most 10,000; default 400
	// Calls is how many calls of one message are validated, at most 65,536;
	// default 128. A message with more is invalid: the first call past the limit
	// has the issue too_many_calls, those after it undecided, and none of them
	// is sent back to the model. The calls within the limit are validated as
	// usual; DropInvalid keeps the valid ones.
	Calls int
	// Turns is how many bytes of text and arguments failed turns add to a request;
	// default 1 MiB. The oldest are left out first, the last one never is: batch.Echo
	// bounds it.
	Turns int
}

const maxAttempts = 1000

// Past these, jsonschema/v5 takes seconds for one value.
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

// clone keeps o apart from the slices and maps of the caller.
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
	o.OnExhausted = cmp.Or(o.OnExhausted, Pass)
	o.Properties = cmp.Or(o.Properties, BySchema)
	o.Strip = cmp.Or(o.Strip, strip.Optional)
	if o.Mend == nil {
		o.Mend = mend.Default()
	}
	o.RuleTimeout = cmp.Or(o.RuleTimeout, defaultRuleTimeout)
	o.Limits.Calls = cmp.Or(o.Limits.Calls, defaultCalls)
	o.Limits.Turns = cmp.Or(o.Limits.Turns, defaultTurns)
	if o.Feedback == nil {
		o.Feedback = DefaultFeedback
	}
	return o
}

// forTool returns the settings for a tool, nothing left to inherit.
func (o Options) forTool(name string) ToolOptions {
	var t ToolOptions
	if o.PerTool != nil {
		t = o.PerTool[name]
	}
	if t.Mend == nil {
		t.Mend = o.Mend
	}
	return ToolOptions{
		Strip:       cmp.Or(t.Strip, o.Strip),
		Mend:        t.Mend,
		Aliases:     t.Aliases,
		OnExhausted: cmp.Or(t.OnExhausted, o.OnExhausted),
		Properties:  cmp.Or(t.Properties, o.Properties),
		MaxAttempts: cmp.Or(t.MaxAttempts, o.MaxAttempts),
	}
}

func (l Limits) scan() rawjson.Limits {
	return rawjson.Limits{Bytes: l.Bytes, Depth: l.Depth, Number: l.Number, Exponent: l.Exponent}
}

// Validate returns what is wrong with o: for options read from a file or a
// flag. New panics with it. Schemas are not looked at: one that does not
// compile is a note in each report.
func (o Options) Validate() error {
	wrong := func(field, what string, got any) error {
		return fmt.Errorf("argsvalidate: %s: %s, got %v", field, what, got)
	}
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
			return wrong(n.field, fmt.Sprintf("must be 0 to %d", n.most), n.value)
		}
	}
	if o.RuleTimeout < 0 {
		return wrong("RuleTimeout", "must not be negative", o.RuleTimeout)
	}
	if o.UnknownTools > PassUnknown || o.OnRuleError > Ignore || !o.Batch.Known() {
		return wrong("UnknownTools, OnRuleError or Batch", "not one of the constants", [...]any{o.UnknownTools, o.OnRuleError, o.Batch})
	}
	if o.UnusableSchemas > RejectUnusable {
		return wrong("UnusableSchemas", "not one of the constants", o.UnusableSchemas)
	}
	if _, ok := schema.Dialect(o.Dialect); !ok && o.Dialect != "" {
		return wrong("Dialect", "not a dialect of JSON Schema that is known", fmt.Sprintf("%q", o.Dialect))
	}
	for i, f := range o.Fixers {
		if f == nil {
			return wrong(fmt.Sprintf("Fixers[%d]", i), "must not be nil", nil)
		}
	}
	for i, r := range o.Rules {
		if isNil(r) {
			return wrong(fmt.Sprintf("Rules[%d]", i), "must not be nil", nil)
		}
		if c, ok := inner(r).(interface{ validate() error }); ok {
			if err := c.validate(); err != nil {
				return fmt.Errorf("argsvalidate: Rules[%d]: %w", i, err)
			}
		}
	}
	names := map[string]bool{}
	for i, t := range o.Tools {
		if t.Name == "" || names[t.Name] {
			return wrong(fmt.Sprintf("Tools[%d].Name", i), "must be set and unique", fmt.Sprintf("%q", t.Name))
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

// isNil also finds a nil pointer in the interface, whose methods would panic.
func isNil(r Rule) bool {
	v := reflect.ValueOf(r)
	return r == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

func (t ToolOptions) validate(where string) error {
	if t.OnExhausted > DropInvalid || t.Properties > NoteUndeclared || t.Strip > strip.Off {
		return fmt.Errorf("argsvalidate: %s: OnExhausted, Properties or Strip: not one of the constants, got %d, %d, %d", where, t.OnExhausted, t.Properties, t.Strip)
	}
	if i := slices.IndexFunc(t.Mend, func(r mend.Rule) bool { return !r.Known() }); i >= 0 {
		return fmt.Errorf("argsvalidate: %s: Mend: not one of the rules: %s", where, t.Mend[i])
	}
	if t.MaxAttempts < 0 || t.MaxAttempts > maxAttempts {
		return fmt.Errorf("argsvalidate: %s: MaxAttempts: must be 0 to %d, got %d", where, maxAttempts, t.MaxAttempts)
	}
	return nil
}

// New returns NewValidator(o).Middleware(). It panics if o.Validate fails.
//
// Position: outside retry, so that a re-ask gets its own attempts; inside
// tracing, so that one span covers the hidden ones; outside of anything that
// rewrites calls, or the rewritten ones are not judged.
func New(o Options) middleware.Middleware { return NewValidator(o).Middleware() }

// Middleware returns the layer that judges each answer and asks again. Safe
// for concurrent use.
//
// The outcome is a response whose calls are all valid; or, when no attempt is
// left, what OnExhausted says; or an *Error; or the error of the model call.
// An answer without tool calls to the first attempt is returned as it is, unless
// the request demands a call (ToolChoice): then the model is asked for
// it once more, and an answer without a call after that is returned with a note,
// under Raise an error with ErrNoCall. Answers that were refused, filtered or cut
// off, and those with a call that the provider ran, pass.
//
// What a request's Sink gets of tool calls are the valid ones, once the step
// has accepted them. If the message that is returned is not the last attempt's,
// the Sink gets EventReset and its text first.
func (v *Validator) Middleware() middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		if next == nil {
			panic("argsvalidate: New: the model call is nil")
		}
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			validators.Report(ctx, v)
			return newStep(ctx, v, next, req).run(ctx)
		}
	}
}
