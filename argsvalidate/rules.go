package argsvalidate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Call is what a rule sees. It must not change what it points to.
type Call struct {
	middleware.ToolCall                       // as it would run
	Tool                middleware.Tool       // the zero Tool if the call's is not declared
	Siblings            []middleware.ToolCall // the other calls of the message, as sent
	Request             *middleware.Request   // nil in Validator.Validate
}

// where names the tool, if it is declared: other names are the model's words.
func (c *Call) where() string {
	if c.Tool.Name == "" {
		return "an undeclared tool"
	}
	return "tool " + c.Tool.Name
}

// Rule is a check of your own, on calls that satisfy their schema. Issues go
// to the model; an issue without a code gets the code rule. An error means
// "could not decide": it ends the step, or what Options.OnRuleError says, and
// is never shown to the model. So do a panic and a Check that is not back
// within Options.RuleTimeout; one that ignores its context keeps its goroutine
// until it returns.
//
// Rules run one after the other, in order, on each valid call of the message.
// A Rule is used by any number of goroutines.
type Rule interface {
	Check(ctx context.Context, c *Call) ([]middleware.Issue, error)
}

// RuleFunc adapts a function.
type RuleFunc func(ctx context.Context, c *Call) ([]middleware.Issue, error)

// Check calls f.
func (f RuleFunc) Check(ctx context.Context, c *Call) ([]middleware.Issue, error) { return f(ctx, c) }

// ForTool returns a rule for one tool whose arguments arrive decoded by
// encoding/json. Arguments that do not decode into an A are an issue of code
// decode.
func ForTool[A any](tool string, check func(ctx context.Context, args A, c *Call) ([]middleware.Issue, error)) Rule {
	return RuleFunc(func(ctx context.Context, c *Call) ([]middleware.Issue, error) {
		if c.Name != tool {
			return nil, nil
		}
		var args A
		if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
			return decodeIssue(err), nil
		}
		return check(ctx, args, c)
	})
}

// decodeIssue puts an error of encoding/json into words without Go's names.
func decodeIssue(err error) []middleware.Issue {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return issue(codeDecode, "", "the arguments cannot be decoded")
	}
	pointer := ""
	if wrong.Field != "" {
		for seg := range strings.SplitSeq(wrong.Field, ".") {
			pointer += "/" + rawjson.Escape(seg)
		}
	}
	return issue(codeDecode, pointer, fmt.Sprintf("wanted a value that fits %s; sent %s", wrong.Type.Kind(), wrong.Value))
}

// rules runs every rule on every call that is valid so far. The first rule
// that could not decide ends it, if the options say so.
func (j *judgement) rules(ctx context.Context) error {
	for i := range j.verdicts {
		v := &j.verdicts[i]
		if !v.OK() || v.Call.Kind != middleware.Function {
			continue
		}
		c := &Call{ToolCall: v.Call, Siblings: slices.Delete(slices.Clone(j.calls), i, i+1)}
		if !j.detached {
			c.Request = j.req
		}
		if p := j.tools[i]; p.declared() {
			c.Tool = *p.tool
		}
		for n, r := range j.v.o.Rules {
			issues, err := j.v.check(ctx, r, c)
			if err != nil {
				err = fmt.Errorf("rule %d on %s: %w", n, c.where(), err)
				switch j.v.o.OnRuleError {
				case FailStep:
					return err
				case AsIssue:
					issues = issue(codeRule, "", "this call could not be checked, so it was not executed")
				}
				j.note("%v", err)
			}
			v.Issues = append(v.Issues, issues...)
		}
		if v.OK() {
			continue
		}
		if v.Call.Name != j.calls[i].Name { // mended, and the model should know
			v.Issues = append(issue(codeUnknownTool, "", "there is no tool of this name"), v.Issues...)
		}
		v.Call, v.Changes = j.calls[i], nil // an invalid call stays as it was sent
	}
	return nil
}

// check runs one rule and gives its issues a code.
func (v *Validator) check(ctx context.Context, r Rule, c *Call) ([]middleware.Issue, error) {
	call := *c
	issues, err := isolated(ctx, v.o.RuleTimeout, func(ctx context.Context) ([]middleware.Issue, error) { return r.Check(ctx, &call) })
	if err != nil {
		return nil, err
	}
	issues = slices.Clone(issues)
	for i := range issues {
		if issues[i].Code == "" {
			issues[i].Code = codeRule
		}
	}
	return issues, nil
}
