package argsvalidate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// partly is a rule that can check some values of a call and skip others.
type partly interface {
	checkParts(c *Call, want func(pointer string) bool) ([]middleware.Issue, error)
}

// fieldRulesOn runs the field rules on the i-th call, which is invalid, for
// the values that are valid. So one reply has both kinds of issues. A rule
// that cannot decide adds nothing here.
func (j *validation) fieldRulesOn(ctx context.Context, i int, siblings []middleware.ToolCall) error {
	v := &j.verdicts[i]
	if !slices.ContainsFunc(j.v.o.Rules, func(r Rule) bool { _, ok := inner(r).(partly); return ok }) || !j.tools[i].readable(v) {
		return nil
	}
	want, call := apartFrom(v.Issues), j.callOf(i, siblings)
	for n, r := range j.v.o.Rules {
		rule, ok := inner(r).(partly)
		if !ok {
			continue
		}
		issues, err := isolated(ctx, j, fmt.Sprintf("rule %d", n), func(context.Context) ([]middleware.Issue, error) {
			return rule.checkParts(call, want)
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return run.ContextError(ctx)
		case err != nil:
			j.failed(fmt.Errorf("%s on tool %s: %w", j.v.ruleName(n), j.tools[i].tool.Name, err))
			continue
		}
		v.Issues = append(v.Issues, issues[:max(0, min(len(issues), schema.MaxIssues-len(v.Issues)))]...)
	}
	return nil
}

// readable reports whether the call failed its schema and passed all earlier
// checks.
func (p plan) readable(v *middleware.Verdict) bool {
	if !p.declared() || p.compiled.schema == nil {
		return false
	}
	return !slices.ContainsFunc(v.Issues, func(i middleware.Issue) bool {
		switch i.Code {
		case codeUnknownTool, codeNotObject, codeDuplicateKey, codeDecode, codeTruncated, codeUndecided, codeTooMany, codeUnusable, codeToolChoice,
			"syntax", "trailing_data", "utf8", "size", "depth", "number", "unchecked":
			return true
		}
		return false
	})
}

// apartFrom returns a function that reports whether a value has no issue at
// its place, above it or below it.
func apartFrom(issues []middleware.Issue) func(pointer string) bool {
	refused := map[string]bool{} // pointers of issues, and those above them
	at := map[string]bool{}
	for _, i := range issues {
		at[i.Pointer] = true
		for p := i.Pointer; ; p = p[:strings.LastIndexByte(p, '/')] {
			refused[p] = true
			if p == "" {
				break
			}
		}
	}
	return func(pointer string) bool {
		if refused[pointer] {
			return false
		}
		for p := pointer; p != ""; {
			if p = p[:strings.LastIndexByte(p, '/')]; at[p] {
				return false
			}
		}
		return true
	}
}
