package argsvalidate

import (
	"cmp"
	"context"
	"encoding"
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
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// Rule is a check of your own on calls that satisfy their schema. A FieldRule
// also checks the valid values of other calls. The issues are sent to the
// model; an issue without a code gets the code rule.
//
// An error means that the rule could not decide. Options.OnRuleError then
// applies, and the model does not see the error. A panic or a timeout
// (Options.RuleTimeout) is an error too. A Check that ignores its context leaks
// its goroutine until it returns.
//
// Call.Note adds a remark without rejecting the call. [Named] gives a rule a
// name for errors and notes. Rules run one after the other, in order, on each
// call of the message. A Rule must be safe for concurrent use.
type Rule interface {
	Check(ctx context.Context, c *Call) ([]middleware.Issue, error)
}

// RuleFunc adapts a function to a Rule.
type RuleFunc func(ctx context.Context, c *Call) ([]middleware.Issue, error)

// Check calls f.
func (f RuleFunc) Check(ctx context.Context, c *Call) ([]middleware.Issue, error) { return f(ctx, c) }

// Call is the input of a rule. A rule must not modify the values that it
// points to.
type Call struct {
	middleware.ToolCall                       // as it would run
	Tool                middleware.Tool       // the zero Tool if the tool is not declared
	Siblings            []middleware.ToolCall // the other calls of the message, as sent: first the calls after this one, then the calls before it
	Request             *middleware.Request   // the request of the step, without its failed turns; never nil. In Validator.Validate it holds only the tools

	reasked  bool       // in a re-ask
	declared *view.View // what the tool's schema declares; nil means nothing
	notes    *noteList
	read     func() (*rawjson.Doc, error) // the arguments that the validator accepted, parsed once for all rules
}

// parsed returns the parsed arguments. A rule may have replaced Arguments.
func (c *Call) parsed() (*rawjson.Doc, error) {
	if c.read != nil {
		if doc, err := c.read(); err == nil && doc.Text() == c.Arguments {
			return doc, nil
		}
	}
	return parseAccepted(c.Arguments)
}

// where returns the tool's name for errors and notes. It omits an undeclared name,
// which is the model's text.
func (c *Call) where() string {
	if c.Tool.Name == "" {
		return "an undeclared tool"
	}
	return "tool " + c.Tool.Name
}

// Note adds a remark about the call without rejecting it, such as "only 5
// left". The remark is in Verdict.Notes, for the person who approves the call,
// and with the name of the rule in Report.Notes. The model does not see it.
// Notes of a rule that returns an error, and notes after Check has returned,
// are dropped. On a Call that was not made by a Validator, Note does nothing.
func (c *Call) Note(text string) {
	if c.notes != nil {
		c.notes.add(text)
	}
}

// Named returns r with a name that errors and notes contain, as in: rule
// "stock" on tool order. A rule type of your own may have a method Name()
// string instead. Named panics if r is nil or name is empty.
func Named(name string, r Rule) Rule {
	if isNil(r) || name == "" {
		panic("argsvalidate: Named: the rule must not be nil, and the name not be empty")
	}
	return namedRule{r, name}
}

type namedRule struct {
	Rule
	name string
}

func (r namedRule) Name() string { return r.name }

// unwrapRule returns the rule without the names that Named gave it.
func unwrapRule(r Rule) Rule {
	for {
		named, ok := r.(namedRule)
		if !ok {
			return r
		}
		r = named.Rule
	}
}

// ruleName returns the name of the n-th rule for errors and notes.
func (v *Validator) ruleName(n int) string {
	if named, ok := v.o.Rules[n].(interface{ Name() string }); ok {
		return fmt.Sprintf("rule %q", named.Name())
	}
	return fmt.Sprintf("rule %d", n)
}

// ForTool returns a rule for one tool that gets the arguments decoded by
// encoding/json. Arguments that do not decode into an A are an issue with the
// code decode. A key that differs in letter case only from a declared property, or from
// another key, is an issue with the code duplicate_key: encoding/json decodes both into
// one field.
func ForTool[A any](tool string, check func(ctx context.Context, args A, c *Call) ([]middleware.Issue, error)) Rule {
	return forTools{[]string{tool}, func(ctx context.Context, c *Call) ([]middleware.Issue, error) {
		if c.Name != tool {
			return nil, nil
		}
		doc, err := c.parsed()
		if err != nil {
			return nil, err
		}
		kind := reflect.TypeFor[A]().Kind()
		folds := kind != reflect.Map && kind != reflect.Interface
		if issues := schema.OtherCase([]*view.View{c.declared}, doc.Root(), true, codeDuplicateKey); folds && issues != nil {
			return issues, nil
		}
		var args A
		if err := unmarshal(doc.Root(), &args); err != nil {
			if v, why := refusedValue(doc.Root(), reflect.TypeFor[A]()); why != nil {
				return issue(codeDecode, v.Pointer(), "this value cannot be decoded: "+schema.Clip(why.Error())), nil
			}
			return unmarshalIssues(doc.Root(), err), nil
		}
		return check(ctx, args, c)
	}}
}

// forTools is a rule for the tools of these names; nil means every tool.
type forTools struct {
	tools []string
	check RuleFunc
}

func (r forTools) Check(ctx context.Context, c *Call) ([]middleware.Issue, error) {
	return r.check(ctx, c)
}

func (r forTools) scope() (tools []string, path string) { return r.tools, "" }

// parseAccepted parses arguments that the validator has already accepted, whatever
// its limits are.
func parseAccepted(arguments string) (*rawjson.Doc, error) {
	return rawjson.Parse(arguments, rawjson.Limits{Bytes: -1, Depth: maxDepth, Number: -1, Exponent: -1})
}

// maxDigitsOfGo is the length of the longest integer that a Go type holds.
const maxDigitsOfGo = 20

// unmarshal is json.Unmarshal that also decodes 5.0 and 1e1 into integers, as
// JSON Schema does. It rewrites numbers only if json.Unmarshal rejects them.
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

// refusedValue returns the first value that a type with a decoding of its own, such as time.Time,
// refuses, and its error. t is the type that v is decoded into.
func refusedValue(v rawjson.Value, t reflect.Type) (rawjson.Value, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	into := reflect.New(t).Interface()
	_, decodes := into.(json.Unmarshaler)
	if _, reads := into.(encoding.TextUnmarshaler); decodes || reads {
		return v, json.Unmarshal([]byte(v.Raw()), into)
	}
	for child := range v.Each() {
		var of reflect.Type
		switch t.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map:
			of = t.Elem()
		case reflect.Struct:
			for _, f := range reflect.VisibleFields(t) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if strings.EqualFold(cmp.Or(name, f.Name), child.Key()) {
					of = f.Type
				}
			}
		}
		if of != nil {
			if found, err := refusedValue(child, of); err != nil {
				return found, err
			}
		}
	}
	return rawjson.Value{}, nil
}

// unmarshalIssues describes an error of encoding/json without Go names. It leaves
// out the place if encoding/json gives no place in the arguments: no index for
// an element, and a Go field name for a field without a tag.
func unmarshalIssues(root rawjson.Value, err error) []middleware.Issue {
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

// runAllRules runs the rules on all calls, except on calls that repeat a kept call. On
// invalid calls it runs only field rules. With FailStep, it stops at the first rule that
// cannot decide, and marks the remaining calls as undecided.
func (j *validation) runAllRules(ctx context.Context) error {
	if len(j.v.o.Rules) == 0 {
		return nil
	}
	// In others, all calls twice, the siblings of each call are one slice.
	var all []middleware.ToolCall
	for i, c := range j.calls {
		if !j.repeats(i) {
			all = append(all, c)
		}
	}
	all = append(all, j.kept...)
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
		wasOK := v.OK()
		if err := j.runRules(ctx, i, siblings); err != nil {
			j.markUndecided(i)
			return err
		}
		if v.OK() || !wasOK {
			continue
		}
		if v.Call.Name != j.calls[i].Name { // the name was repaired, and the model must know
			v.Issues = append(j.unknownTool(ctx), v.Issues...)
		}
		v.Call, v.Changes = j.calls[i], nil // an invalid call stays as it was sent
	}
	return nil
}

// repeats reports whether a kept call runs instead of the i-th call.
func (j *validation) repeats(i int) bool { return j.repeated != nil && j.repeated[i] }

// ruleCall returns the input of rules for the i-th call.
func (j *validation) ruleCall(i int, siblings []middleware.ToolCall) *Call {
	doc, call := j.doc(i), j.verdicts[i].Call
	read := sync.OnceValues(func() (*rawjson.Doc, error) {
		if doc != nil {
			return doc, nil
		}
		return parseAccepted(call.Arguments)
	})
	c := &Call{ToolCall: call, read: read, Siblings: siblings, Request: j.req, reasked: j.reasked}
	if p := j.allPlans()[i]; p.declared() {
		c.Tool, c.declared = *p.tool, p.compiled.view()
	}
	return c
}

// runRules runs the rules on the i-th call: every rule on a valid call, and the field rules on
// the valid values of an invalid call, so that the reply has both kinds of issues. On an invalid
// call it ignores a rule that cannot decide. Each rule gets its own copy of the Call, because a
// rule that timed out may still use its copy.
func (j *validation) runRules(ctx context.Context, i int, siblings []middleware.ToolCall) error {
	v := &j.verdicts[i]
	wasOK := v.OK()
	var accept func(pointer string) bool // selects the valid values of an invalid call
	if !wasOK {
		if !j.allPlans()[i].failedOnlySchema(v) {
			return nil
		}
		accept = withoutIssues(v.Issues)
	}
	c := j.ruleCall(i, siblings)
	for n, r := range j.v.o.Rules {
		name, check, notes := j.v.ruleName(n), r.Check, &noteList{}
		if !wasOK {
			rule, ok := unwrapRule(r).(partialRule)
			if !ok {
				continue
			}
			check, notes = func(ctx context.Context, c *Call) ([]middleware.Issue, error) { return rule.checkParts(ctx, c, accept) }, nil
		}
		issues, err := isolated(ctx, j, fmt.Sprintf("rule %d", n), func(ctx context.Context) ([]middleware.Issue, error) {
			call := *c
			call.notes = notes
			return check(ctx, &call)
		})
		if err != nil {
			err = fmt.Errorf("%s on %s: %w", name, c.where(), err)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return run.ContextError(ctx)
		case err != nil && wasOK && j.v.o.OnRuleError == FailStep:
			return err
		case err != nil:
			j.noteFailure(err)
			if !wasOK || j.v.o.OnRuleError == Ignore {
				continue
			}
			issues = issue(codeUndecided, "", notChecked)
		case wasOK:
			for _, text := range notes.close() {
				v.Notes = append(v.Notes, text)
				j.note("%s on %s: %s", name, c.where(), text)
			}
		}
		v.Issues = append(v.Issues, ruleIssues(name, issues[:max(0, min(len(issues), schema.MaxIssues-len(v.Issues)))])...)
	}
	if wasOK && !v.OK() {
		doc, _ := c.read()
		j.storeDoc(i, doc) // for the reply
	}
	return nil
}

// maxRuleNotes is the number of notes that one rule can make on one call.
const maxRuleNotes = 16

// noteList collects the notes of one run of a rule. The rule may continue
// after it has timed out.
type noteList struct {
	mu   sync.Mutex
	list []string
}

func (n *noteList) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) < maxRuleNotes {
		n.list = append(n.list, text)
	}
}

// close returns the notes and closes the list.
func (n *noteList) close() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list = make([]string, maxRuleNotes)
	return list
}

// partialRule is a rule that can check some values of a call and skip others.
type partialRule interface {
	checkParts(ctx context.Context, c *Call, accept func(pointer string) bool) ([]middleware.Issue, error)
}

// otherCodes are the codes of checks other than the schema.
var otherCodes = append([]string{codeUnknownTool, codeNotObject, codeDuplicateKey, codeDecode, codeTruncated, codeUndecided, codeTooMany, codeUnusable,
	codeToolChoice, codeParallel, schema.Unchecked}, unreadableCodes...)

// failedOnlySchema reports whether the call failed its schema and passed all other checks.
func (p toolPlan) failedOnlySchema(v *middleware.Verdict) bool {
	return p.declared() && p.compiled.schema != nil &&
		!slices.ContainsFunc(v.Issues, func(i middleware.Issue) bool { return slices.Contains(otherCodes, i.Code) })
}

// withoutIssues returns a function that reports whether a value has no issue at
// its place, above it or below it.
func withoutIssues(issues []middleware.Issue) func(pointer string) bool {
	refused := map[string]bool{} // the pointers of issues, and all pointers above them
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
