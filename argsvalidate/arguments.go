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

// strip removes empty values from the arguments, by the tool's strip mode.
func (j *validation) strip(s *seen, by *strip.Stripper) {
	text, removed, err := by.Parsed(s.doc)
	if err != nil || len(removed) == 0 {
		return
	}
	stripped, err := rawjson.Parse(text, j.v.o.Limits.scan())
	if err != nil {
		return
	}
	for _, r := range removed {
		s.changes = append(s.changes, middleware.Change{By: "strip", Pointer: r.Pointer, Before: r.Value})
	}
	s.text, s.doc = text, stripped
}

// maxRefused is the largest number of empty members that stripRefused removes
// from one call.
const maxRefused = 100

// stripRefused removes the empty, declared members that the issues of s name,
// such as a null that only one branch of a tagged union rejects. It removes
// them only if the arguments are then valid.
func (j *validation) stripRefused(ctx context.Context, s *seen, c *compiled, left *schema.Budget) {
	if len(s.issues) > maxRefused {
		return
	}
	refused := map[rawjson.Value]bool{}
	var objects []rawjson.Value
	var changes []middleware.Change
	for _, i := range s.issues {
		v := s.doc.Root().At(i.Pointer)
		if !v.IsMember() || !v.Empty() || i.Code != "type" && i.Code != "enum" && i.Code != "const" || refused[v] {
			return
		}
		at, _ := rawjson.CutLast(i.Pointer)
		if !c.view().Declared(c.view().At(at)).Has(v.Key()) {
			return // a key of a map is a value, not a declared property
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
	text, err := rawjson.Apply(s.doc.Text(), edits)
	if err != nil {
		return
	}
	stripped, err := rawjson.Parse(text, j.v.o.Limits.scan())
	if err != nil || len(c.schema.ValidateWithin(ctx, stripped.Root(), left)) > 0 {
		return
	}
	s.text, s.doc, s.issues, s.changes = text, stripped, nil, append(s.changes, changes...)
}

// decode calls Tool.Decode. If it panics or times out, the call is undecided,
// because that says nothing about the call.
func (j *validation) decode(ctx context.Context, t *middleware.Tool, args string) []middleware.Issue {
	if t.Decode == nil {
		return nil
	}
	issues, err := isolated(ctx, j, "Decode of tool "+t.Name, func(context.Context) ([]middleware.Issue, error) { return refused(t.Decode(args)), nil })
	switch {
	case err != nil && ctx.Err() != nil: // isolated returned the error of ctx
		return issue(codeUndecided, "", undecided)
	case err != nil:
		j.failures = append(j.failures, fmt.Errorf("the decoder of tool %s: %w", t.Name, err))
		return issue(codeUndecided, "", notChecked)
	}
	return issues
}

// refused returns the issues of an error of Tool.Decode, all with the code
// decode: those of the error, or one with its text. It returns none for nil.
func refused(err error) []middleware.Issue {
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

// meant returns the plan for the declared tool that an unknown name certainly
// means, and corrects the name in v.
func (j *validation) meant(v *middleware.Verdict) plan {
	if slices.Contains(j.v.o.Mend, mend.ToolName) {
		if name, ok := j.known.meant(v.Call.Name); ok {
			p := j.known.find(name, v.Call.Namespace)
			if !p.declared() { // in another namespace
				return p
			}
			v.Changes = append(v.Changes, middleware.Change{By: "mend.tool_name", Before: rawjson.Quote(v.Call.Name), After: rawjson.Quote(name)})
			v.Call.Name = name
			j.notes = append(j.notes, p.notes()...)
			return p
		}
	}
	return plan{}
}

// repaired tries the built-in repairs on invalid arguments, then the user's
// fixers in order. The first result that makes the whole call valid counts.
// Without one it returns found.
func (j *validation) repaired(ctx context.Context, call middleware.ToolCall, p plan, found seen) seen {
	if !p.declared() || ctx.Err() != nil {
		return found
	}
	valid := map[string]seen{} // by the text that became valid
	validate := func(args string) []middleware.Issue {
		if ctx.Err() != nil { // the context has ended: try no further repair
			return issue(codeUndecided, "", undecided)
		}
		if _, known := valid[args]; known {
			return nil
		}
		got := j.examine(ctx, p, args, &j.repairs)
		if len(got.issues) == 0 {
			valid[args] = got
		}
		return got.issues
	}
	text, changes, ok := mend.Arguments(mend.Input{Tool: *p.tool, Arguments: found.text, Parsed: found.doc, Issues: found.issues,
		Rules: p.o.Mend, Schema: p.compiled.mend(), Aliases: p.o.Aliases, Validate: validate})
	if ok && len(validate(text)) == 0 {
		fixed := valid[text]
		return seen{text: fixed.text, doc: fixed.doc, changes: slices.Concat(found.changes, changes, fixed.changes)}
	}
	for n, fix := range j.v.o.Fixers {
		text, ok := j.fixed(ctx, n, fix, *p.tool, call, found.issues)
		if ok && text != call.Arguments && len(validate(text)) == 0 {
			change := middleware.Change{By: fmt.Sprintf("fixer %d", n), Before: call.Arguments, After: text}
			fixed := valid[text]
			return seen{text: fixed.text, doc: fixed.doc, changes: append([]middleware.Change{change}, fixed.changes...)}
		}
	}
	return found
}

// fixed runs a fixer; a panic or a timeout counts as no repair.
func (j *validation) fixed(ctx context.Context, n int, f Fixer, t middleware.Tool, call middleware.ToolCall, issues []middleware.Issue) (string, bool) {
	text, err := isolated(ctx, j, fmt.Sprintf("fixer %d", n), func(ctx context.Context) (string, error) {
		text, ok := f(ctx, t, call, slices.Clone(issues))
		if !ok {
			return "", errNoFix
		}
		return text, nil
	})
	if err != nil && !errors.Is(err, errNoFix) && ctx.Err() == nil {
		j.failures = append(j.failures, fmt.Errorf("fixer %d: %w", n, err))
	}
	return text, err == nil
}

var errNoFix = errors.New("no fix")
