package argsvalidate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// examined is the result of validating arguments once.
type examined struct {
	text    string              // the arguments without the stripped values
	changes []middleware.Change // from the arguments to text
	issues  []middleware.Issue
	doc     *rawjson.Doc // text, parsed; nil if one scan was enough, or if it cannot be parsed
	sentDoc *rawjson.Doc // the arguments as sent, parsed; nil in the same cases
}

// examine validates arguments without repairs and rules. It reduces the budget left.
func (j *validation) examine(ctx context.Context, p toolPlan, args string, left *schema.Budget) examined {
	if p.declared() && j.v.surelyValid(p, args) {
		return examined{text: args, issues: j.decode(ctx, p, args)}
	}
	e := examined{text: args}
	if t := strings.TrimSpace(args); t == "" || t == "null" {
		e.text = "{}"
		e.changes = append(e.changes, middleware.Change{By: "empty", Before: args, After: "{}"})
	}
	e.doc, e.issues = j.parse(e.text)
	if e.sentDoc = e.doc; e.issues == nil && p.declared() {
		j.againstTool(ctx, &e, p, left)
	}
	return e
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
		return fmt.Sprintf("not JSON: %v; sent %s", e, quoteAround(args, e.Offset))
	case rawjson.Trailing:
		return fmt.Sprintf("%v; sent %s", e, quoteAround(args, e.Offset))
	}
	return err.Error()
}

// againstTool strips arguments and validates them against the tool. It undoes a strip
// that makes valid arguments invalid.
func (j *validation) againstTool(ctx context.Context, e *examined, p toolPlan, left *schema.Budget) {
	before := *e
	if stripper := p.stripper(); stripper != nil {
		j.stripEmpty(e, stripper)
	}
	if compiled := p.compiled.schema; compiled != nil || len(p.rules) > 0 {
		e.issues = p.issues(ctx, e.doc.Root(), left)
		if len(e.issues) > 0 && e.doc != before.doc && len(p.issues(ctx, before.doc.Root(), left)) == 0 {
			*e = before
		}
		if len(e.issues) > 0 && p.options.Strip != strip.Off {
			j.stripRefused(ctx, e, p, left)
		}
		if len(e.issues) == 0 && p.options.Properties == RejectUndeclared && compiled != nil {
			e.issues = schema.Undeclared(p.compiled.view(), e.doc.Root(), codeUndeclared)
		}
		if len(e.issues) > 0 && e.issues[0].Code == schema.Unchecked && ctx.Err() != nil {
			e.issues = issue(codeUndecided, "", undecided)
		}
	}
	if len(e.issues) == 0 && j.v.folds(p) {
		e.issues = schema.OtherCase(p.views(), e.doc.Root(), false, codeDuplicateKey)
	}
	if len(e.issues) == 0 {
		e.issues = j.decode(ctx, p, e.text)
	}
}

// stripEmpty removes empty values from the arguments, by the tool's strip mode.
func (j *validation) stripEmpty(e *examined, by *strip.Stripper) {
	text, removed, err := by.Parsed(e.doc)
	if err != nil || len(removed) == 0 {
		return
	}
	stripped, err := rawjson.Parse(text, j.v.o.Limits.scan())
	if err != nil {
		return
	}
	for _, r := range removed {
		e.changes = append(e.changes, middleware.Change{By: "strip", Pointer: r.Pointer, Before: r.Value})
	}
	e.text, e.doc = text, stripped
}

// maxRefused is the largest number of empty members that stripRefused removes
// from one call.
const maxRefused = 100

// stripRefused removes the members that issues point to, if all of them are empty
// and declared, and if the arguments are then valid. It handles, for example, a
// null that only one branch of a tagged union rejects.
func (j *validation) stripRefused(ctx context.Context, e *examined, p toolPlan, left *schema.Budget) {
	if len(e.issues) > maxRefused {
		return
	}
	refused := map[rawjson.Value]bool{}
	var objects []rawjson.Value
	var changes []middleware.Change
	for _, i := range e.issues {
		v := e.doc.Root().At(i.Pointer)
		if !v.IsMember() || !v.Empty() || i.Code != "type" && i.Code != "enum" && i.Code != "const" || refused[v] {
			return
		}
		at, _ := rawjson.CutLast(i.Pointer)
		if tool := p.compiled.view(); !tool.Declared(tool.At(at)).Has(v.Key()) {
			return // the key of a map is data, not a property
		}
		refused[v] = true
		if !slices.Contains(objects, v.Parent()) {
			objects = append(objects, v.Parent())
		}
		changes = append(changes, middleware.Change{By: "strip", Pointer: i.Pointer, Before: v.Raw()})
	}
	var edits []rawjson.Edit
	for _, object := range objects {
		edits = append(edits, object.Cut(func(m rawjson.Value) bool { return refused[m] })...)
	}
	text, err := rawjson.Apply(e.doc.Text(), edits)
	if err != nil {
		return
	}
	stripped, err := rawjson.Parse(text, j.v.o.Limits.scan())
	if err != nil || len(p.issues(ctx, stripped.Root(), left)) > 0 {
		return
	}
	e.text, e.doc, e.issues, e.changes = text, stripped, nil, append(e.changes, changes...)
}

// decode calls Tool.Decode. If it panics or times out, the call is undecided: the
// call may be correct.
func (j *validation) decode(ctx context.Context, p toolPlan, args string) []middleware.Issue {
	t := p.tool
	if t.Decode == nil {
		return nil
	}
	issues, err := isolated(ctx, j, "Decode of tool "+t.Name, func(context.Context) ([]middleware.Issue, error) { return decodeIssues(t.Decode(args)), nil })
	switch {
	case err != nil && ctx.Err() != nil: // isolated returned the error of ctx
		return issue(codeUndecided, "", undecided)
	case err != nil:
		j.failures = append(j.failures, fmt.Errorf("the decoder of tool %s: %w", t.Name, err))
		return issue(codeUndecided, "", notChecked)
	}
	return issues
}

// decodeIssues returns the issues of an error of Tool.Decode, with the code decode. An
// error without issues becomes one issue with its text; nil means no issues.
func decodeIssues(err error) []middleware.Issue {
	if err == nil {
		return nil
	}
	var placed interface{ Issues() []middleware.Issue }
	if !errors.As(err, &placed) || len(placed.Issues()) == 0 {
		return issue(codeDecode, "", err.Error())
	}
	issues := slices.Clone(placed.Issues())
	for i := range issues {
		issues[i].Code = codeDecode
	}
	return issues
}

// noteUndeclared adds a note about undeclared properties, with NoteUndeclared.
func (j *validation) noteUndeclared(p toolPlan, doc *rawjson.Doc) {
	if !p.declared() || p.options.Properties != NoteUndeclared || p.compiled.schema == nil || doc == nil {
		return
	}
	undeclared := schema.Undeclared(p.compiled.view(), doc.Root(), codeUndeclared)
	var at []string
	for _, i := range undeclared[:min(len(undeclared), 5)] {
		at = append(at, schema.Clip(i.Path()))
	}
	if len(undeclared) > 0 {
		j.note("tool %s: %d undeclared properties: %s", p.tool.Name, len(undeclared), strings.Join(at, ", "))
	}
}

// correctName corrects an unknown tool name in v if it is a variant of exactly one
// declared name. It returns the plan for that tool.
func (j *validation) correctName(v *middleware.Verdict) toolPlan {
	if !slices.Contains(j.v.o.Mend, mend.ToolName) {
		return toolPlan{}
	}
	name, _ := j.tools.match(v.Call.Name)
	p := j.tools.find(name, v.Call.Namespace)
	if p.declared() { // it may be in another namespace
		v.Changes = append(v.Changes, middleware.Change{By: "mend.tool_name", Before: rawjson.Quote(v.Call.Name), After: rawjson.Quote(name)})
		v.Call.Name = name
		j.notes = append(j.notes, p.notes()...)
	}
	return p
}

// repair tries the built-in repairs on invalid arguments, then the user's fixers in
// order. It returns the first result that makes the whole call valid, else failed.
func (j *validation) repair(ctx context.Context, call middleware.ToolCall, p toolPlan, failed examined) examined {
	if !p.declared() || ctx.Err() != nil {
		return failed
	}
	valid := map[string]examined{} // by the text that became valid
	validate := func(args string) []middleware.Issue {
		if ctx.Err() != nil { // the context has ended: try no further repair
			return issue(codeUndecided, "", undecided)
		}
		if _, known := valid[args]; known {
			return nil
		}
		got := j.examine(ctx, p, args, &j.repairBudget)
		if len(got.issues) == 0 {
			valid[args] = got
		}
		return got.issues
	}
	schemas := []*mend.Schema{p.compiled.mend()}
	for _, r := range p.rules {
		schemas = append(schemas, r.repairs)
	}
	for _, s := range schemas {
		text, changes, ok := mend.Arguments(mend.Input{Tool: *p.tool, Arguments: failed.text, Parsed: failed.doc, Issues: failed.issues,
			Rules: p.options.Mend, Schema: s, Aliases: p.options.Aliases, Validate: validate})
		if ok && len(validate(text)) == 0 {
			fixed := valid[text]
			return examined{text: fixed.text, doc: fixed.doc, changes: slices.Concat(failed.changes, changes, fixed.changes)}
		}
	}
	for n, fix := range j.v.o.Fixers {
		text, ok := j.runFixer(ctx, n, fix, *p.tool, call, failed.issues)
		if ok && text != call.Arguments && len(validate(text)) == 0 {
			change := middleware.Change{By: fmt.Sprintf("fixer %d", n), Before: call.Arguments, After: text}
			fixed := valid[text]
			return examined{text: fixed.text, doc: fixed.doc, changes: append([]middleware.Change{change}, fixed.changes...)}
		}
	}
	return failed
}

// runFixer runs a fixer; a panic or a timeout counts as no repair.
func (j *validation) runFixer(ctx context.Context, n int, f Fixer, t middleware.Tool, call middleware.ToolCall, issues []middleware.Issue) (string, bool) {
	type fix struct {
		text string
		ok   bool
	}
	fixed, err := isolated(ctx, j, fmt.Sprintf("fixer %d", n), func(ctx context.Context) (fix, error) {
		text, ok := f(ctx, t, call, slices.Clone(issues))
		return fix{text, ok}, nil
	})
	if err != nil && ctx.Err() == nil {
		j.failures = append(j.failures, fmt.Errorf("fixer %d: %w", n, err))
	}
	return fixed.text, err == nil && fixed.ok
}
