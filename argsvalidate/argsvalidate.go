// Package argsvalidate validates the tool calls of a model's response and
// re-asks the model if a call is invalid.
//
//	call := argsvalidate.New(argsvalidate.Options{})(model)
//
// The middleware validates every tool call inside the model step, before a
// tool runs and before a person is asked for approval. A call is valid if it
// is complete, its tool is declared, its arguments are one JSON object, and
// they satisfy the tool's schema and your rules. Empty optional values are
// removed first. Mistakes with only one possible fix are repaired.
//
// If a call is still invalid, the model is called again. Each call of the
// message gets a reply: an invalid call an error that lists all of its issues,
// a valid call a notice that it was not executed. Failed turns are not
// returned; the step's report holds them.
//
// [Validator.Validate] does the same validation without a model: for arguments
// that a person has edited, in a loop of your own, or for recorded logs.
//
// # Issue codes
//
// An issue found by a JSON Schema keyword has the keyword as its code:
// required, type, enum, additionalProperties and so on. An object that the
// schema false rejects has the code false. The other codes:
//
//	syntax, trailing_data, utf8   the arguments are not one JSON text
//	size, depth, number           they are past the Limits
//	too_many_calls                the message has more calls than Limits.Calls; on the first call past it
//	duplicate_key                 an object has two members of one key
//	not_object                    JSON, but no object
//	truncated                     the model was cut off while it wrote the call
//	unknown_tool                  the request declares no such tool
//	tool_choice                   the request demands a call to another tool, and the message has none
//	unusable_schema               the tool's schema cannot be used (Options.UnusableSchemas)
//	undeclared                    a property that an open schema does not declare (Options.Properties)
//	decode                        Tool.Decode refused
//	rule                          a rule refused, unless it gave a code of its own
//	undecided                     not validated to the end: a rule or Tool.Decode could not decide, the context ended, or the call is past Limits.Calls
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
	Tools        []middleware.Tool // added to the request's tools; they replace those of the same name
	Limits       Limits
	PerTool      map[string]ToolOptions     // by tool name
	Feedback     func(FeedbackInput) string // nil means DefaultFeedback
	Advanced
}

// Advanced are the Options that few programs need.
type Advanced struct {
	UnusableSchemas UnusableSchemas
	Placeholders    []string // strings that strip treats as empty too
	// FreshOnRepeat changes the next request if the model has sent the same
	// invalid calls again. The request then leaves out the failed turns of the
	// step, and a user message after the conversation says what was wrong.
	// FreshOnRepeat helps some small models at temperature 0 and hurts others;
	// see docs/feedback.md. While valid calls are held (batch.KeepValid), the
	// failed turns stay.
	FreshOnRepeat bool
	LastTurnOnly  bool // a re-ask has only the last failed turn, which saves tokens
	// Escalate is the model of the last attempt of a step, if that is a re-ask: a larger one of the
	// same provider and format. Usage is reported by the model that answered. "" escalates
	// nothing. It has no effect on a request without a model, such as one of Gemini's, whose model is
	// in the path. A larger model takes longer: do not set it if the client waits.
	Escalate string
	// Constrain makes the provider constrain the call that a re-ask brings. 0 is NoConstraint. In a
	// measurement with two small models it made 71 instead of 23 of 76 calls valid, and 52 instead of
	// 16 of them valid and wrong. Do not set it where a wrong call does harm.
	Constrain Constrain
	Formats   bool // validate "format", which JSON Schema leaves optional
	// Dialect is the JSON Schema dialect of schemas without $schema: its URI,
	// or draft-04, draft-06, draft-07, 2019-09 or 2020-12. "" means 2020-12.
	Dialect string
}

// ToolOptions changes Options for one tool. A zero field inherits from
// Options.
type ToolOptions struct {
	Strip       strip.Mode
	Mend        []mend.Rule       // nil inherits; without ToolName, which belongs into Options because it applies before the tool is known
	Aliases     map[string]string // names that mend.Rename may replace by a declared property
	OnExhausted middleware.OnExhausted
	Properties  Properties
	Constrain   Constrain
	MaxAttempts int // model calls of a step; if several calls are invalid, the largest value counts
}

// Fixer is a repair of your own. It returns new arguments, or false. The new
// arguments are validated too. A panic or a timeout counts as false.
type Fixer func(ctx context.Context, tool middleware.Tool, call middleware.ToolCall, issues []middleware.Issue) (arguments string, ok bool)

// New returns NewValidator(o).Middleware(). It panics if o.Validate fails.
//
// Position: outside retry, so that a re-ask gets its own attempts. Inside
// tracing, so that one span covers all attempts. Outside any middleware that
// rewrites calls: calls that are rewritten outside it are not validated.
func New(o Options) middleware.Middleware { return NewValidator(o).Middleware() }

// UnknownTools selects the status of a call to an undeclared tool. It does not
// apply to a tool that the request announces in another way than by listing it:
//
//   - A system message names it as a whole word. A name that is an English word, such
//     as search, must have no other word directly beside it in its line.
//   - Claude Code names it in a reminder: a text part of a user message that is one
//     <system-reminder> with its sentence about deferred tools, or about tools that were
//     loaded before a compaction. In front of it are only reminders, it is not all that
//     the user sends, and the request lists ToolSearch.
//   - qwen-code names it in a row of such a reminder, and the request lists tool_search
//     and tool_call.
//   - The request lists a toolset that the provider runs (Tool.Loads).
//
// A call to such a tool is unchecked, Verdict.Announced is set, and the report has a
// note. Names in results of tools, in other texts of the user and in texts of the
// model announce nothing. If the request lists a tool that loads further tools, the
// reply to a call of any other undeclared tool says that the tool is not loaded.
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
// schema: one that declares properties and does not say whether it allows
// others.
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
	AsIssue                     // the call is invalid; its issue says that the call could not be checked, and not why
	Ignore                      // the rule is skipped, and the report has a note
)

// Constrain selects whether a re-ask makes the provider's server constrain what the
// model writes to a call of the tool whose call was invalid. A constrained call is
// valid more often than right: see docs/feedback.md.
//
// A re-ask is constrained only if the message had one call, its issues are about the
// form of the arguments, and the tool is not destructive: a forced call cannot be taken
// back by the model. If the provider refuses the constraint, or the answer has no call,
// the model is asked once more without it, and not constrained again in this step. The
// refused model call is in the report and does not count as an attempt.
type Constrain uint8

// The constraints.
const (
	// NoConstraint is the default.
	NoConstraint Constrain = iota + 1
	// ConstrainNamed sets the request's tool choice to the tool, and the tool to strict.
	// The format must have a tool choice: Ollama's own has none.
	ConstrainNamed
	// ConstrainResponseFormat demands the call as a JSON text, and makes a call of it. It is for
	// servers that ignore a tool choice, such as llama.cpp: OpenAI Chat's format and
	// Ollama's. A schema with $ref is not used.
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
	Bytes    int // of arguments; default 1 MiB; longer arguments are rejected without parsing
	Depth    int // of nested objects and arrays; at most 512, default 64
	Number   int // characters of one number; at most 10,000, default 1,000
	Exponent int // of one number, positive or negative; at most 10,000, default 400
	// Calls is the number of calls of one message that are validated; at most
	// 65,536, default 128. A message with more calls is invalid. The first
	// call past the limit has the issue too_many_calls, those after it have
	// the issue undecided, and none of them is echoed to the model. The calls
	// within the limit are validated as usual, and DropInvalid keeps the valid
	// ones.
	Calls int
	// Turns is the number of bytes of text and arguments that failed turns add
	// to a request; default 1 MiB. The oldest turns are left out first. The
	// last one is always sent; the echo limits its size.
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
	return ToolOptions{
		Constrain:   cmp.Or(t.Constrain, o.Constrain),
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
	if o.RuleTimeout < 0 {
		return invalidOption("RuleTimeout", "must not be negative", o.RuleTimeout)
	}
	if o.UnknownTools > PassUnknown || o.OnRuleError > Ignore || !o.Batch.Known() {
		return invalidOption("UnknownTools, OnRuleError or Batch", "not one of the constants", [...]any{o.UnknownTools, o.OnRuleError, o.Batch})
	}
	if o.UnusableSchemas > RejectUnusable {
		return invalidOption("UnusableSchemas", "not one of the constants", o.UnusableSchemas)
	}
	if o.Constrain > ConstrainResponseFormat {
		return invalidOption("Constrain", "not one of the constants", uint8(o.Constrain))
	}
	if _, ok := schema.Dialect(o.Dialect); !ok && o.Dialect != "" {
		return invalidOption("Dialect", "not a dialect of JSON Schema that is known", fmt.Sprintf("%q", o.Dialect))
	}
	if err := o.validateFunctions(); err != nil {
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
