package argsvalidate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
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
)

// Validator judges tool calls. Safe for concurrent use; it keeps compiled
// schemas, so one that lives as long as its program is cheapest.
type Validator struct {
	o       Options
	schemas *schema.Cache[*compiled]
}

// NewValidator panics if o.Validate fails.
func NewValidator(o Options) *Validator {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	v := &Validator{o: o.withDefaults()}
	v.schemas = schema.NewCache(maxSchemas, v.compile)
	return v
}

// Validate judges calls, the calls of one message, against Options.Tools and
// tools. No model is asked. There is one verdict for each call, in order; ids
// are left alone. The error is nil exactly when every call is valid, else an
// *Error with the same verdicts: ErrInvalid, or ErrRule where a rule could not
// decide.
func (v *Validator) Validate(ctx context.Context, tools []middleware.Tool, calls ...middleware.ToolCall) ([]middleware.Verdict, error) {
	j := v.newJudgement(&middleware.Request{Tools: tools}, calls)
	j.detached = true
	if err := j.run(ctx, false); err != nil {
		return j.verdicts, &Error{Verdicts: j.verdicts, Replies: v.replies(j, 1, false), reasons: []error{ErrRule, err}}
	}
	if j.invalid() {
		return j.verdicts, &Error{Verdicts: j.verdicts, Replies: v.replies(j, 1, false), reasons: []error{ErrInvalid}}
	}
	return j.verdicts, nil
}

// Inspect says how calls to tool will be judged: whether against a schema, and
// what an operator should know about it, such as why it cannot be used, that
// it was read leniently, or which keyword is not checked.
func (v *Validator) Inspect(tool middleware.Tool) (validated bool, notes []string) {
	p := v.plan(&tool)
	return p.compiled.schema != nil, p.notes()
}

// judgement is the look at the calls of one message.
type judgement struct {
	v        *Validator
	req      *middleware.Request
	calls    []middleware.ToolCall
	tools    []plan // of each call
	verdicts []middleware.Verdict
	notes    []string
	detached bool // there is no request behind it
}

func (v *Validator) newJudgement(req *middleware.Request, calls []middleware.ToolCall) *judgement {
	return &judgement{v: v, req: req, calls: calls}
}

func (j *judgement) invalid() bool {
	for _, v := range j.verdicts {
		if !v.OK() {
			return true
		}
	}
	return false
}

func (j *judgement) note(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

// run judges every call, then runs the rules on those that are valid so far.
// The error is a rule's that could not decide; the verdicts are there anyway.
func (j *judgement) run(ctx context.Context, truncated bool) error {
	j.tools = make([]plan, len(j.calls))
	j.verdicts = make([]middleware.Verdict, len(j.calls))
	for i, c := range j.calls {
		j.verdicts[i] = middleware.Verdict{Call: c}
		if c.Kind != middleware.Function {
			continue
		}
		j.tools[i] = j.v.find(j.req.Tools, c.Name)
		j.notes = append(j.notes, j.tools[i].notes()...)
		j.judge(i, truncated && i == len(j.calls)-1)
	}
	if len(j.v.o.Rules) == 0 {
		return nil
	}
	return j.rules(ctx)
}

// judge fills in the verdict on one function call, rules apart.
func (j *judgement) judge(i int, truncated bool) {
	v, p := &j.verdicts[i], j.tools[i]
	if truncated {
		v.Issues = issue(codeTruncated, "", "the arguments were cut off, because the answer reached its length limit")
		return
	}
	if !p.declared() && j.v.o.UnknownTools == RejectUnknown {
		v.Issues = issue(codeUnknownTool, "", "there is no tool of this name")
		return
	}
	sent := v.Call.Arguments
	if p.declared() && j.v.surelyValid(p, sent) {
		v.Issues = decode(p.tool, sent)
		return
	}
	if s := strings.TrimSpace(sent); s == "" || s == "null" {
		v.Call.Arguments = "{}"
		v.Changes = append(v.Changes, middleware.Change{By: "empty", Before: sent, After: "{}"})
	}
	doc, issues := j.parse(v.Call.Arguments)
	if issues == nil && p.declared() {
		issues = j.againstTool(v, p, doc)
	}
	if len(issues) > 0 { // an invalid call stays as it was sent
		v.Call.Arguments, v.Changes, v.Issues = sent, nil, issues
	}
}

// parse reads the arguments, or says why they are not one JSON object.
func (j *judgement) parse(args string) (*rawjson.Doc, []middleware.Issue) {
	doc, err := rawjson.Parse(args, j.v.o.Limits.scan())
	if err != nil {
		var e *rawjson.Error
		if !errors.As(err, &e) {
			return nil, issue(string(rawjson.Syntax), "", err.Error())
		}
		return nil, issue(string(e.Code), "", e.Error())
	}
	if k := doc.Root().Kind(); k != rawjson.Object {
		return nil, issue(codeNotObject, "", "wanted one JSON object; sent "+schema.Sent(doc.Root()))
	}
	var issues []middleware.Issue
	for _, dup := range doc.Duplicates() {
		issues = append(issues, middleware.Issue{Code: codeDuplicateKey, Pointer: dup.Pointer(), Message: "this key stands twice in one object; send it once"})
	}
	return doc, issues
}

// againstTool strips and validates. What is stripped counts only as long as it
// does not break what was valid.
func (j *judgement) againstTool(v *middleware.Verdict, p plan, doc *rawjson.Doc) []middleware.Issue {
	original, changes := doc, v.Changes
	if stripper := p.stripper(); stripper != nil {
		doc = j.strip(v, stripper, doc)
	}
	if s := p.compiled.schema; s != nil {
		issues := s.Validate(doc.Root())
		if len(issues) > 0 && doc != original && len(s.Validate(original.Root())) == 0 {
			doc, issues = original, nil
			v.Call.Arguments, v.Changes = original.Text(), changes
		}
		if len(issues) == 0 {
			issues = j.undeclared(p, doc)
		}
		if len(issues) > 0 {
			return issues
		}
	}
	return decode(p.tool, v.Call.Arguments)
}

func (j *judgement) strip(v *middleware.Verdict, s *strip.Stripper, doc *rawjson.Doc) *rawjson.Doc {
	text, removed, err := s.JSON(doc.Text())
	if err != nil || len(removed) == 0 {
		return doc
	}
	stripped, err := rawjson.Parse(text, j.v.o.Limits.scan())
	if err != nil {
		return doc
	}
	for _, r := range removed {
		v.Changes = append(v.Changes, middleware.Change{By: "strip", Pointer: r.Pointer, Before: r.Value})
	}
	v.Call.Arguments = text
	return stripped
}

func decode(t *middleware.Tool, args string) (issues []middleware.Issue) {
	if t.Decode == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			issues = issue(codeDecode, "", "the arguments cannot be decoded")
		}
	}()
	if err := t.Decode(args); err != nil {
		return issue(codeDecode, "", err.Error())
	}
	return nil
}

// undeclared looks for properties that an open schema does not declare.
func (j *judgement) undeclared(p plan, doc *rawjson.Doc) []middleware.Issue {
	if p.o.Properties == BySchema {
		return nil
	}
	issues := schema.Undeclared(p.compiled.schema.Source(), doc.Root(), codeUndeclared)
	if p.o.Properties == NoteUndeclared {
		for _, i := range issues {
			j.note("tool %s: undeclared property at %s", p.tool.Name, i.Pointer)
		}
		return nil
	}
	return issues
}

func issue(code, pointer, message string) []middleware.Issue {
	return []middleware.Issue{{Code: code, Pointer: pointer, Message: message}}
}

// replies returns what the model is told about a judgement.
func (v *Validator) replies(j *judgement, attempt int, repeated bool) []middleware.Message {
	return batch.Replies(j.verdicts, v.o.Batch, v.render(j, attempt, repeated))
}

// render returns the function that puts one verdict into words. A user's
// function that panics is replaced by the built-in text.
func (v *Validator) render(j *judgement, attempt int, repeated bool) func(middleware.Verdict) string {
	i := -1
	return func(verdict middleware.Verdict) (text string) {
		for i++; j.verdicts[i].OK(); i++ {
		}
		in := FeedbackInput{Verdict: verdict, Attempt: attempt, Repeated: repeated}
		if p := j.tools[i]; p.declared() {
			in.Tool, in.Declared = *p.tool, true
		}
		in.Available = v.available(j.req.Tools)
		defer func() {
			if recover() != nil {
				j.note("Options.Feedback panicked; the built-in text was sent")
				text = DefaultFeedback(in)
			}
		}()
		return v.o.Feedback(in)
	}
}
