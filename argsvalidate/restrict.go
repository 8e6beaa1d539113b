package argsvalidate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// toolRule is what Restrict and Forbid return.
type toolRule struct {
	tool    string
	schema  *schema.Schema // nil forbids the tool
	repairs *mend.Schema   // schema, for repairs
	message string         // of a forbidden call
	name    string         // of the rule, in a Validator
}

// Restrict returns a rule that lays a JSON Schema of draft 2020-12 over the schemas of the tools whose
// names match tool, in which * is any text: arguments must satisfy both schemas. The model is shown
// the tool's own schema only. The issues name what the rule wants.
//
// Unlike other rules, this one runs together with the tool's schema: a repair is kept only if the
// arguments then satisfy both, and repairs use the rule's schema too, such as the values of an enum.
// The rule also holds for tools whose own schema cannot be used. Calls to tools that the request does
// not list are checked as by other rules, without a repair. "format" is validated.
//
// The error says why the schema cannot be used: it is not valid, it has a keyword that JSON Schema does
// not have, or a part of it could not be checked.
func Restrict(tool string, restricting json.RawMessage) (Rule, error) {
	s, err := schema.Compile(restricting, schema.Options{Formats: true, Strict: true})
	if err != nil {
		return nil, fmt.Errorf("argsvalidate: Restrict: %w", err)
	}
	doc, _ := rawjson.Parse(string(restricting), schema.Limits) // it has been read before
	notes := s.Notes()
	if unknown := closedSchema().Validate(doc.Root()); len(unknown) > 0 { // the last one is the deepest
		i := unknown[len(unknown)-1]
		notes = append(notes, i.Pointer+": "+i.Message)
	}
	if len(notes) > 0 {
		return nil, fmt.Errorf("argsvalidate: Restrict: %s", strings.Join(notes, "; "))
	}
	return toolRule{tool: tool, schema: s, repairs: mend.ReadSchema(restricting)}, nil
}

// closedSchema is the schema of schemas, without keywords that JSON Schema does not have.
var closedSchema = sync.OnceValue(func() *schema.Schema {
	s, _ := schema.Compile([]byte(`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "toolmend:closed", "$dynamicAnchor": "meta",
		"$ref": "https://json-schema.org/draft/2020-12/schema", "unevaluatedProperties": false}`), schema.Options{})
	return s
})

// Forbid returns a rule that rejects every call of the tools whose names match tool, in which * is
// any text. Calls that are not function calls are rejected too. message tells the model why, and
// what it can do instead; "" is a default one. The issue has the code tool_choice, and the call no
// other issue. Calls that the provider runs itself cannot be rejected.
func Forbid(tool, message string) Rule {
	return toolRule{tool: tool, message: strings.TrimRight(cmp.Or(message, "calls of this tool are not allowed here. Go on without it"), ".")}
}

// Check checks a call to a tool that the request does not list. A Validator checks all other calls
// with the schema of their tool, and forbids calls before rules run.
func (r toolRule) Check(_ context.Context, c *Call) ([]middleware.Issue, error) {
	if r.schema == nil || c.Tool.Name != "" || !text.Match(r.tool, c.Name) {
		return nil, nil
	}
	doc, err := c.parsed()
	if err != nil {
		return nil, err
	}
	return r.schema.Validate(doc.Root()), nil
}

// toolRules returns the rules of Restrict, or those of Forbid, for a tool.
func (v *Validator) toolRules(tool string, forbid bool) (all []toolRule) {
	for n, r := range v.o.Rules {
		if r, ok := unwrapRule(r).(toolRule); ok && forbid == (r.schema == nil) && text.Match(r.tool, tool) {
			r.name = v.ruleName(n)
			all = append(all, r)
		}
	}
	return all
}

// issues validates arguments against the tool's schema and the rules of Restrict.
func (p toolPlan) issues(ctx context.Context, v rawjson.Value, left *schema.Budget) (issues []middleware.Issue) {
	if p.compiled.schema != nil {
		issues = p.compiled.schema.ValidateWithin(ctx, v, left)
	}
	for _, r := range p.rules {
		issues = append(issues, ruleIssues(r.name, r.schema.ValidateWithin(ctx, v, left))...)
	}
	return issues[:min(len(issues), schema.MaxIssues)]
}

// ruleIssues returns the issues of a rule, with its name.
func ruleIssues(name string, issues []middleware.Issue) []middleware.Issue {
	issues = slices.Clone(issues)
	for i := range issues {
		issues[i].Rule, issues[i].Code = name, cmp.Or(issues[i].Code, codeRule)
	}
	return issues
}

// onExhausted returns the policy for a call that is still invalid. covered is the result of covered.
// NoLoops gives way after one re-ask, so it does not count as a rule.
func (o *Options) onExhausted(v middleware.Verdict, covered func(tool string) bool) middleware.OnExhausted {
	isRejected := func(i middleware.Issue) bool { return i.Rule != "" && i.Code != LoopCode }
	if o.RejectedCalls != 0 && o.PerTool[v.Call.Name].OnExhausted == 0 && (covered(v.Call.Name) || slices.ContainsFunc(v.Issues, isRejected)) {
		return o.RejectedCalls
	}
	return o.forTool(v.Call.Name).OnExhausted
}

// covered returns whether a rule covers a tool, under its name or under a variant of it, with which a
// model called it. A rule that covers the tool of an invalid call may not have run on that call.
func (o *Options) covered(tools []middleware.Tool) func(tool string) bool {
	var declared *mend.Names
	return func(tool string) bool {
		if declared == nil {
			var names []string
			for _, t := range slices.Concat(o.Tools, tools) {
				names = append(names, t.Name)
			}
			declared = mend.NewNames(names)
		}
		variant, _ := declared.Match(tool)
		return slices.ContainsFunc(o.Rules, func(r Rule) bool {
			covers, ok := unwrapRule(r).(interface{ Covers(tool string) bool })
			return ok && (covers.Covers(tool) || variant != "" && covers.Covers(variant))
		})
	}
}

// Covers reports whether the rule is for a tool. See Advanced.RejectedCalls.
func (r toolRule) Covers(tool string) bool { return text.Match(r.tool, tool) }
