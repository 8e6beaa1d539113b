package argsvalidate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// Codes of issues that no schema keyword found; see the package comment.
const (
	codeTruncated    = "truncated"
	codeUnknownTool  = "unknown_tool"
	codeNotObject    = "not_object"
	codeDuplicateKey = "duplicate_key"
	codeUndeclared   = "undeclared"
	codeDecode       = "decode"
	codeRule         = "rule"
	codeUndecided    = "undecided"
	codeTooMany      = "too_many_calls"
	codeUnusable     = "unusable_schema"
	codeToolChoice   = "tool_choice"
)

// Validator validates tool calls. It is safe for concurrent use. It keeps
// compiled schemas, so use one Validator for the whole program.
type Validator struct {
	o       Options
	perTool []string // the names in o.PerTool, in order
	schemas *schema.Cache[*compiled]
}

// NewValidator returns a Validator. It panics if o.Validate fails.
func NewValidator(o Options) *Validator {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	v := &Validator{o: o.clone().withDefaults()}
	v.perTool = slices.Sorted(maps.Keys(v.o.PerTool))
	v.schemas = schema.NewCache(maxCached, v.compile)
	return v
}

// Parameters returns the properties that the schema of tool declares, in its
// order, and the properties that it requires, declared or not. Use it for help
// texts and forms. Both are nil if the schema names no properties or cannot be
// read. Parameters follows local $ref, allOf, anyOf and oneOf: a name that one
// branch requires is among the required names. The caller owns the slices.
func (v *Validator) Parameters(tool middleware.Tool) (accepted, required []string) {
	read := v.plan(&tool).compiled.view()
	declared := view.DeclaredBy(read.Root().Alternatives())
	return declared.Names, declared.Required
}

// validation is the validation of the calls of one message.
type validation struct {
	v        *Validator
	req      *middleware.Request
	known    *toolbox
	calls    []middleware.ToolCall // within Limits.Calls
	excess   []middleware.ToolCall // the calls past that limit
	tools    []plan                // the plan of each of calls
	docs     []*rawjson.Doc        // the parsed arguments of calls; see doc
	verdicts []middleware.Verdict  // of calls, then of excess
	notes    []string
	held     []middleware.ToolCall // valid calls of an earlier attempt, which will run together with these
	repeated []bool                // for each call, whether it repeats a held call, which runs instead; nil means that none does
	failures []error               // of functions of the program
	timedOut map[string]bool       // functions of the user that timed out
	again    bool                  // the message is of a re-ask
	work     schema.Budget         // left for validating the calls
	repairs  schema.Budget         // left for validating repairs of them
}

// validated reports whether calls of a kind are validated.
func validated(k middleware.Kind) bool {
	return k != middleware.KindCustom && k != middleware.KindBuiltin
}

// newValidation splits the calls at Limits.Calls. The budgets are for all calls
// together, so that many calls cannot multiply the cost.
func (v *Validator) newValidation(req *middleware.Request, known *toolbox, calls []middleware.ToolCall) validation {
	n, bytes := min(len(calls), v.o.Limits.Calls), 0
	for i := range calls[:n] {
		bytes += len(calls[i].Arguments)
	}
	left := schema.NewBudget(bytes)
	return validation{v: v, req: req, known: known, calls: calls[:n:n], excess: calls[n:], work: left, repairs: left}
}

func (j *validation) invalid() bool {
	for _, v := range j.verdicts {
		if !v.OK() {
			return true
		}
	}
	return false
}

func (j *validation) note(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

// failed adds a note about a function of the program that failed, and keeps
// the error.
func (j *validation) failed(err error) {
	j.note("%v", err)
	j.failures = append(j.failures, err)
}

// validate validates every call without the rules, which run later. It checks
// ctx between calls and returns its error. The verdicts are complete in any
// case.
func (j *validation) validate(ctx context.Context, truncated bool) error {
	j.start()
	for i, c := range j.calls {
		cutOff := truncated && i == len(j.calls)-1 && len(j.excess) == 0
		if cutOff && c.Kind != middleware.KindBuiltin {
			j.verdicts[i].Issues = issue(codeTruncated, "", "cut off, because the answer reached its length limit")
		}
		if !validated(c.Kind) {
			j.verdicts[i].Unchecked = j.verdicts[i].OK()
			continue
		}
		if i > 0 && ctx.Err() != nil {
			j.markUndecided(i)
			return run.ContextError(ctx)
		}
		j.tools[i] = j.known.find(c.Name, c.Namespace)
		j.notes = append(j.notes, j.tools[i].notes()...)
		if !cutOff {
			j.check(ctx, i)
		}
		if ctx.Err() != nil && slices.ContainsFunc(j.verdicts[i].Issues, func(i middleware.Issue) bool { return i.Code == codeUndecided }) {
			j.markUndecided(i)
			return run.ContextError(ctx)
		}
	}
	j.notes = append(j.notes, j.known.misspeltOnce(ctx)...)
	return nil
}

// start makes the verdicts. The verdicts on calls past the limit are final.
func (j *validation) start() {
	all := len(j.calls) + len(j.excess)
	j.tools = make([]plan, len(j.calls))
	j.verdicts = make([]middleware.Verdict, all)
	for i, c := range j.calls {
		j.verdicts[i].Call = c
	}
	if len(j.excess) == 0 {
		return
	}
	uncounted := issue(codeUndecided, "", undecided)
	for i, c := range j.excess {
		j.verdicts[len(j.calls)+i] = middleware.Verdict{Call: c, Issues: uncounted}
	}
	j.verdicts[len(j.calls)].Issues = issue(codeTooMany, "",
		fmt.Sprintf("the message holds %d tool calls, and at most %d are accepted in one message", all, len(j.calls)))
}

// check fills in the verdict on one function call, without the rules.
func (j *validation) check(ctx context.Context, i int) {
	v, p := &j.verdicts[i], j.tools[i]
	if !p.declared() && v.Call.Name != "" {
		announced, err := j.known.announced().Has(ctx, v.Call.Name)
		if err != nil {
			v.Issues = issue(codeUndecided, "", undecided)
			return
		}
		v.Announced = announced
	}
	if v.Announced {
		j.note("tool %s: not in the request's tools, and announced there: its calls are not validated", text.Label(v.Call.Name))
	}
	unknown := !p.declared() && !v.Announced && (j.v.o.UnknownTools == RejectUnknown || v.Call.Name == "")
	if unknown {
		if p = j.meant(v); !p.declared() {
			v.Issues = j.unknownTool(ctx)
			return
		}
		j.tools[i] = p
	}
	if v.Unchecked = !p.declared() || p.unusable(); p.unusable() && j.v.o.UnusableSchemas == RejectUnusable {
		v.Issues = issue(codeUnusable, "", "this tool cannot be called now: the arguments cannot be validated")
		return
	}
	seen := j.examine(ctx, p, v.Call.Arguments, &j.work)
	if len(seen.issues) > 0 {
		seen = j.repaired(ctx, v.Call, p, seen)
	}
	if len(seen.issues) == 0 {
		v.Call.Arguments = seen.text
		v.Changes = append(v.Changes, seen.changes...)
		j.keep(i, seen.doc)
		j.noteUndeclared(p, seen.doc)
		return
	}
	v.Issues = seen.issues
	j.keep(i, seen.sent)
	if unknown {
		v.Issues = append(j.unknownTool(ctx), seen.issues...)
	}
	v.Call, v.Changes = j.calls[i], nil // an invalid call is returned as it was sent
}

// unknownTool returns the issue of a call whose tool is not declared.
func (j *validation) unknownTool(ctx context.Context) []middleware.Issue {
	message := "there is no tool of this name"
	if search := j.known.announced().Loader(ctx); search != "" {
		message = "no tool of this name is loaded; use " + text.Label(search)
	}
	return issue(codeUnknownTool, "", message)
}

// keep stores the parsed arguments of the i-th call.
func (j *validation) keep(i int, doc *rawjson.Doc) {
	if doc != nil && j.docs == nil {
		j.docs = make([]*rawjson.Doc, len(j.calls))
	}
	if doc != nil {
		j.docs[i] = doc
	}
}

// doc returns the parsed arguments of the i-th call: of a valid call as it
// will run, of an invalid call as it was sent. It is nil if they were not
// parsed.
func (j *validation) doc(i int) *rawjson.Doc {
	if i >= len(j.docs) {
		return nil
	}
	return j.docs[i]
}

// seen is the result of validating arguments once.
type seen struct {
	text    string              // the arguments without the stripped values
	changes []middleware.Change // from the arguments to text
	issues  []middleware.Issue
	doc     *rawjson.Doc // text, parsed; nil if one pass over it was enough, or if it cannot be parsed
	sent    *rawjson.Doc // the arguments, parsed; likewise
}

// examine validates arguments without repairs and rules. It uses up
// the budget left.
func (j *validation) examine(ctx context.Context, p plan, args string, left *schema.Budget) seen {
	if p.declared() && j.v.surelyValid(p, args) {
		return seen{text: args, issues: j.decode(ctx, p.tool, args)}
	}
	s := seen{text: args}
	if t := strings.TrimSpace(args); t == "" || t == "null" {
		s.text = "{}"
		s.changes = append(s.changes, middleware.Change{By: "empty", Before: args, After: "{}"})
	}
	s.doc, s.issues = j.parse(s.text)
	if s.sent = s.doc; s.issues == nil && p.declared() {
		j.againstTool(ctx, &s, p, left)
	}
	return s
}

// parse parses the arguments, or returns why they are not one JSON object.
func (j *validation) parse(args string) (*rawjson.Doc, []middleware.Issue) {
	doc, err := rawjson.Parse(args, j.v.o.Limits.scan())
	if err != nil {
		found := schema.Unreadable(err)
		found.Message = unreadable(args, err)
		return nil, []middleware.Issue{found}
	}
	if k := doc.Root().Kind(); k != rawjson.Object {
		return nil, issue(codeNotObject, "", "wanted one JSON object; sent "+schema.Sent(doc.Root()))
	}
	return doc, schema.Duplicates(doc, codeDuplicateKey)
}

// unreadable describes why arguments cannot be parsed, and quotes the place.
func unreadable(args string, err error) string {
	var e *rawjson.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	switch e.Code {
	case rawjson.Syntax, rawjson.UTF8:
		return fmt.Sprintf("not JSON: %v; sent %s", e, around(args, e.Offset))
	case rawjson.Trailing:
		return fmt.Sprintf("%v; sent %s", e, around(args, e.Offset))
	}
	return err.Error()
}

// againstTool strips and validates. It drops a strip that makes valid
// arguments invalid.
func (j *validation) againstTool(ctx context.Context, s *seen, p plan, left *schema.Budget) {
	before := *s
	if stripper := p.stripper(); stripper != nil {
		j.strip(s, stripper)
	}
	if compiled := p.compiled.schema; compiled != nil {
		s.issues = compiled.ValidateWithin(ctx, s.doc.Root(), left)
		if len(s.issues) > 0 && s.doc != before.doc && len(compiled.ValidateWithin(ctx, before.doc.Root(), left)) == 0 {
			*s = before
		}
		if len(s.issues) > 0 && p.o.Strip != strip.Off {
			j.stripRefused(ctx, s, p.compiled, left)
		}
		if len(s.issues) == 0 && p.o.Properties == RejectUndeclared {
			s.issues = schema.Undeclared(p.compiled.view(), s.doc.Root(), codeUndeclared)
		}
		if len(s.issues) > 0 && s.issues[0].Code == schema.Unchecked && ctx.Err() != nil {
			s.issues = issue(codeUndecided, "", undecided)
		}
	}
	if len(s.issues) == 0 {
		s.issues = j.decode(ctx, p.tool, s.text)
	}
}

// noteUndeclared adds a note about the properties that an open schema does not
// declare, if the options say so.
func (j *validation) noteUndeclared(p plan, doc *rawjson.Doc) {
	if !p.declared() || p.o.Properties != NoteUndeclared || p.compiled.schema == nil || doc == nil {
		return
	}
	found := schema.Undeclared(p.compiled.view(), doc.Root(), codeUndeclared)
	var at []string
	for _, i := range found[:min(len(found), 5)] {
		at = append(at, schema.Clip(i.Path()))
	}
	if len(found) > 0 {
		j.note("tool %s: %d undeclared properties: %s", p.tool.Name, len(found), strings.Join(at, ", "))
	}
}

func issue(code, pointer, message string) []middleware.Issue {
	return []middleware.Issue{{Code: code, Pointer: pointer, Message: message}}
}

// replies returns the replies that a re-ask sends.
func (v *Validator) replies(ctx context.Context, j *validation, attempt int, repeated bool) []middleware.Message {
	return batch.Replies(j.verdicts, v.o.Batch, v.render(ctx, j, attempt, repeated, false))
}

// render returns the function that writes the reply to one invalid call. If a
// user's function panics, the built-in text is sent.
func (v *Validator) render(ctx context.Context, j *validation, attempt int, repeated, alone bool) func(middleware.Verdict) string {
	i := -1
	return func(verdict middleware.Verdict) string {
		for i++; j.verdicts[i].OK(); i++ {
		}
		in := FeedbackInput{Verdict: verdict, Attempt: attempt, Repeated: repeated, alone: alone, hints: &j.known.hints}
		if i < len(j.tools) && j.tools[i].declared() {
			p := j.tools[i]
			in.Tool, in.Declared, in.known, in.doc = *p.tool, true, p.compiled, j.doc(i)
		}
		in.Available, in.search = j.known.available(), j.known.announced().Loader(ctx)
		if v.o.Feedback == nil {
			return DefaultFeedback(in)
		}
		text, err := isolated(ctx, j, "Feedback", func(context.Context) (string, error) { return v.o.Feedback(in), nil })
		if err != nil {
			j.failed(fmt.Errorf("the built-in text was sent: Options.Feedback: %w", err))
			return DefaultFeedback(in)
		}
		return text
	}
}
