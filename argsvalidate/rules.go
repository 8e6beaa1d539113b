package argsvalidate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// Call is what a rule sees. It must not change what it points to.
type Call struct {
	middleware.ToolCall                       // as it would run
	Tool                middleware.Tool       // the zero Tool if the call's is not declared
	Siblings            []middleware.ToolCall // the other calls of the message, as sent: those after this one, then those before it
	Request             *middleware.Request   // what the model answered; never nil. In Validator.Validate it holds the tools only

	notes *noteList
	read  func() (*rawjson.Doc, error) // the arguments that the validator accepted, for all rules together
}

// parsed returns the arguments, read. A rule may have put others in their place.
func (c *Call) parsed() (*rawjson.Doc, error) {
	if c.read != nil {
		if doc, err := c.read(); err == nil && doc.Text() == c.Arguments {
			return doc, nil
		}
	}
	return accepted(c.Arguments)
}

// where names the tool, if it is declared: other names are the model's words.
func (c *Call) where() string {
	if c.Tool.Name == "" {
		return "an undeclared tool"
	}
	return "tool " + c.Tool.Name
}

// Rule is a check of your own, on calls that satisfy their schema; a FieldRule
// also checks the valid values of calls that do not. Issues go
// to the model; an issue without a code gets the code rule. An error means
// "could not decide": it ends the step, or what Options.OnRuleError says, and
// is never shown to the model. So do a panic and a Check that is not back
// within Options.RuleTimeout; one that ignores its context keeps its goroutine
// until it returns.
//
// A rule adds a remark without refusing with Call.Note, and has a name in errors
// with [Named]. Rules run one after the other, in order, on each call of the
// message.
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
	return forTools{[]string{tool}, func(ctx context.Context, c *Call) ([]middleware.Issue, error) {
		if c.Name != tool {
			return nil, nil
		}
		doc, err := c.parsed()
		if err != nil {
			return nil, err
		}
		if twin := caseTwin(doc.Root()); twin.Exists() {
			return issue(codeDecode, twin.Pointer(), "this key differs from another one in letter case only; send one of them"), nil
		}
		var args A
		if err := unmarshal(doc.Root(), &args); err != nil {
			return decodeIssue(doc.Root(), err), nil
		}
		return check(ctx, args, c)
	}}
}

// forTools is a rule for the tools of these names; nil: every tool.
type forTools struct {
	tools []string
	check RuleFunc
}

func (r forTools) Check(ctx context.Context, c *Call) ([]middleware.Issue, error) {
	return r.check(ctx, c)
}

func (r forTools) scope() (tools []string, path string) { return r.tools, "" }

// accepted reads arguments that the validator has accepted already, within
// whatever limits it had.
func accepted(arguments string) (*rawjson.Doc, error) {
	return rawjson.Parse(arguments, rawjson.Limits{Bytes: -1, Depth: maxDepth, Number: -1, Exponent: -1})
}

// maxDigitsOfGo is the length of the longest integer that a Go type holds.
const maxDigitsOfGo = 20

// unmarshal is json.Unmarshal, which also takes 5.0 and 1e1 for integers, as
// JSON Schema does. Numbers are rewritten only if it refuses them as they are.
func unmarshal(v rawjson.Value, into any) error {
	err := json.Unmarshal([]byte(v.Raw()), into)
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Value, "number") {
		return err
	}
	start, _ := v.Span()
	var edits []rawjson.Edit
	var walk func(v rawjson.Value)
	walk = func(v rawjson.Value) {
		if digits, ok := v.Integer(); ok && digits != v.Raw() && len(digits) <= maxDigitsOfGo {
			from, to := v.Span()
			edits = append(edits, rawjson.Edit{Start: from - start, End: to - start, Text: digits})
		}
		for child := range v.Each() {
			walk(child)
		}
	}
	walk(v)
	text, applyErr := rawjson.Apply(v.Raw(), edits)
	if len(edits) == 0 || applyErr != nil {
		return err
	}
	reflect.ValueOf(into).Elem().SetZero()
	return json.Unmarshal([]byte(text), into)
}

// caseTwin returns a member whose key differs from that of another one in the
// same object in letter case only: encoding/json takes the two for one field,
// so a rule would see another value than the tool.
func caseTwin(v rawjson.Value) rawjson.Value {
	seen := map[string]bool{}
	for child := range v.Each() {
		if child.IsMember() {
			folded := strings.ToLower(child.Key())
			if seen[folded] {
				return child
			}
			seen[folded] = true
		}
		if twin := caseTwin(child); twin.Exists() {
			return twin
		}
	}
	return rawjson.Value{}
}

// decodeIssue puts an error of encoding/json into words without Go's names.
// The place is left out where it is not one of the arguments': encoding/json
// gives no index of an element, and Go's name of a field without a tag.
func decodeIssue(root rawjson.Value, err error) []middleware.Issue {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return issue(codeDecode, "", "the arguments cannot be decoded")
	}
	pointer := ""
	for seg := range strings.SplitSeq(wrong.Field, ".") {
		pointer += "/" + rawjson.Escape(seg)
	}
	if !root.At(pointer).Exists() {
		pointer = ""
	}
	return issue(codeDecode, pointer, fmt.Sprintf("wanted a value that fits %s; sent %s", wrong.Type.Kind(), wrong.Value))
}

// rules runs every rule on every call that is valid so far, but not again on a
// repetition of a call that is held. The first rule that could not decide ends it,
// if the options say so, and the calls that were not validated to the end are
// marked.
func (j *judgement) rules(ctx context.Context) error {
	if len(j.v.o.Rules) == 0 {
		return nil
	}
	// One list, twice, holds the siblings of every call without a copy for each.
	var all []middleware.ToolCall
	for i, c := range j.calls {
		if !j.repeats(i) {
			all = append(all, c)
		}
	}
	all = append(all, j.held...)
	others, at := slices.Concat(all, all), -1
	for i := range j.calls {
		if j.repeats(i) {
			continue
		}
		at++
		v, siblings := &j.verdicts[i], others[at+1:at+len(all):at+len(all)]
		if !validated(v.Call.Kind) {
			continue
		}
		check := j.rulesOn
		if !v.OK() {
			check = j.fieldRulesOn
		}
		wasOK := v.OK()
		if err := check(ctx, i, siblings); err != nil {
			j.markUndecided(i)
			return err
		}
		if v.OK() || !wasOK {
			continue
		}
		if v.Call.Name != j.calls[i].Name { // mended, and the model should know
			v.Issues = append(issue(codeUnknownTool, "", "there is no tool of this name"), v.Issues...)
		}
		v.Call, v.Changes = j.calls[i], nil // an invalid call stays as it was sent
	}
	return nil
}

// repeats reports whether a held call runs in place of the i-th one.
func (j *judgement) repeats(i int) bool { return j.repeated != nil && j.repeated[i] }

// callOf returns what rules see of the i-th call.
func (j *judgement) callOf(i int, siblings []middleware.ToolCall) *Call {
	doc, call := j.doc(i), j.verdicts[i].Call
	read := sync.OnceValues(func() (*rawjson.Doc, error) {
		if doc != nil {
			return doc, nil
		}
		return accepted(call.Arguments)
	})
	c := &Call{ToolCall: call, read: read, Siblings: siblings, Request: j.req}
	if p := j.tools[i]; p.declared() {
		c.Tool = *p.tool
	}
	return c
}

func (j *judgement) rulesOn(ctx context.Context, i int, siblings []middleware.ToolCall) error {
	v, c := &j.verdicts[i], j.callOf(i, siblings)
	for n, r := range j.v.o.Rules {
		name, notes := j.v.ruleName(n), &noteList{}
		issues, err := isolated(ctx, j, fmt.Sprintf("rule %d", n), func(ctx context.Context) ([]middleware.Issue, error) {
			call := *c
			call.notes = notes
			return r.Check(ctx, &call)
		})
		if err != nil {
			err = fmt.Errorf("%s on %s: %w", name, c.where(), err)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return run.ContextError(ctx)
		case err != nil && j.v.o.OnRuleError == FailStep:
			return err
		case err != nil:
			j.failed(err)
			if j.v.o.OnRuleError == Ignore {
				continue
			}
			issues = issue(codeUndecided, "", notChecked)
		default:
			j.remark(v, name, c, notes.take())
		}
		for _, found := range issues[:min(len(issues), schema.MaxIssues-len(v.Issues))] {
			if found.Code == "" {
				found.Code = codeRule
			}
			v.Issues = append(v.Issues, found)
		}
	}
	if !v.OK() {
		doc, _ := c.read()
		j.keep(i, doc) // for the reply
	}
	return nil
}

// notChecked is what is said of a call that a rule could not decide on: for all
// that is known, nothing is wrong with it.
const notChecked = "this call could not be checked, so it was not executed"

// undecided is what is said of a call that was not validated to the end.
const undecided = "this call was not checked to the end, and not executed"

// markUndecided marks the calls from the i-th on that have no issue yet.
func (j *judgement) markUndecided(i int) {
	for ; i < len(j.verdicts); i++ {
		if v := &j.verdicts[i]; v.OK() && validated(v.Call.Kind) {
			v.Issues = issue(codeUndecided, "", undecided)
		}
	}
}
