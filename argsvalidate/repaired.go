package argsvalidate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

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
