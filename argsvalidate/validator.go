package argsvalidate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Validator validates tool calls. It is safe for concurrent use. It keeps
// compiled schemas, so use one Validator for the whole program.
type Validator struct {
	o       Options
	perTool []string // the names in o.PerTool, in order
	schemas *schema.Cache[*compiled]
	noScan  bool // surelyValid is false, for tests
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

// Middleware returns the middleware that validates each response and re-asks
// the model. It is safe for concurrent use.
//
// A step returns one of these: a response whose calls are all valid; after the
// last attempt, an *Error or what Options.OnExhausted selects; or the error of
// the model call. If an inner layer has marked the message as invalid, the step
// returns it with Pass, and an *Error otherwise.
//
// If the provider could not read the call in an answer (middleware.ErrInvalidToolCall), the step
// re-asks too. After the last attempt, or if the re-ask fails, Pass and DropInvalid return that
// answer, marked as invalid, if the provider sent one and no earlier response had calls.
//
// If the first response has no tool calls, the step returns it unchanged, unless
// the request requires a call (ToolChoice), or the message is empty
// (Options.EmptyAnswers). Then the step re-asks once. If the next response has
// such a fault too, the step returns an error with ErrNoCall or ErrEmpty, or with
// Pass the response, marked as invalid. A refused, filtered or cut off response
// needs no call, nor does a response with a call that the provider ran.
//
// A call that was cut off at the length limit is re-asked once, with a higher limit
// (Options.RaiseTokens).
//
// A request's Sink gets only valid tool calls, after the step has accepted
// them. If the returned message is from an earlier attempt than the last, the
// Sink first gets EventReset and the text of the returned message.
func (v *Validator) Middleware() middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		if next == nil {
			panic("argsvalidate: New: the model call is nil")
		}
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			loopstate.AddValidator(ctx, v, req.Tools)
			return newStep(ctx, v, next, req).run(ctx)
		}
	}
}

// Turn is the calls of one message, with their context for rules.
type Turn struct {
	Request *middleware.Request   // the request that the model received, with the tools of the calls; nil means an empty request
	Calls   []middleware.ToolCall // the calls to validate
	// Beside holds the other calls of the message, such as those that have
	// run. Rules see them as siblings. They are not validated.
	Beside    []middleware.ToolCall
	Truncated bool // the model was cut off while it wrote the last of Calls
	// NoReplies leaves Error.Replies nil. Set it if you do not read them: writing
	// the replies takes longer than validating the calls.
	NoReplies bool
}

// ValidateTurn validates calls as a step does, without calling a model: after
// a person has edited them, before they run in another process, or for
// recorded logs. There is one verdict for each of t.Calls, in order. Ids are
// not changed. The request's ToolChoice, AllowedTools and NoParallelCalls apply;
// t.Beside does not count as further calls, because it has no place in the order.
//
// The error is nil exactly when every call is valid or Verdict.Unchecked.
// Otherwise it is an *Error with the same verdicts, and with ErrInvalid, or
// with ErrRule and without replies if a rule could not decide. If ctx ends,
// the error wraps both the context's error and an *Error, and the calls that
// were not validated to the end have an issue with the code undecided.
func (v *Validator) ValidateTurn(ctx context.Context, t Turn) ([]middleware.Verdict, error) {
	req := t.Request
	if req == nil {
		req = &middleware.Request{}
	}
	known := requestTools{v: v, req: req}
	j := v.newValidation(req, &known, t.Calls)
	j.kept = t.Beside
	err := j.validate(ctx, t.Truncated)
	if err == nil {
		j.enforceChoice()
		err = j.runAllRules(ctx)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return j.verdicts, fmt.Errorf("argsvalidate: %w: %w", err, j.newError(ErrInvalid))
	case err != nil:
		return j.verdicts, j.newError(ErrRule, err)
	case anyInvalid(j.verdicts):
		e := j.newError(ErrInvalid)
		if !t.NoReplies {
			e.Replies = batch.Replies(j.verdicts, v.o.Batch, v.render(ctx, &j, 1, false, false))
		}
		return j.verdicts, e
	}
	return j.verdicts, nil
}

// Validate is ValidateTurn for the calls of one message without a
// conversation: the request that rules see holds only the tools.
func (v *Validator) Validate(ctx context.Context, tools []middleware.Tool, calls ...middleware.ToolCall) ([]middleware.Verdict, error) {
	if c := calls; len(c) == 1 && len(v.o.Rules) == 0 && validated(c[0].Kind) && v.validAtOnce(v.plan(tools, c[0].Name, c[0].Namespace), c[0].Arguments) {
		return []middleware.Verdict{{Call: c[0]}}, nil
	}
	return v.ValidateTurn(ctx, Turn{Request: &middleware.Request{Tools: tools}, Calls: calls})
}

// Inspect reports whether calls to tool are validated against a schema (otherwise
// every JSON object is valid), and returns remarks for an operator: for example, why
// the schema cannot be used, that it was read leniently, which keyword is not
// checked, or that the schema does not declare the path of a FieldRule.
func (v *Validator) Inspect(tool middleware.Tool) (validated bool, notes []string) {
	p := v.newPlan(&tool)
	return p.compiled.schema != nil, append(p.notes(), v.undeclaredPaths(p)...)
}

// InspectTools returns remarks for an operator about tools before they are
// offered: the notes of Inspect on each tool, names in Options.PerTool and in
// rules that match no tool, and paths of rules that no schema declares.
// Reports repeat the remarks on names and paths in every step.
func (v *Validator) InspectTools(tools []middleware.Tool) []string {
	var notes []string
	known := requestTools{v: v, req: &middleware.Request{Tools: tools}}
	for _, name := range known.available() {
		notes = append(notes, known.find(name, "").notes()...)
	}
	return append(notes, known.misspeltNames(context.Background())...)
}

// Parameters returns the properties that the schema of tool declares, in its
// order, and the properties that it requires, declared or not. Use it for help
// texts and forms. Both are nil if the schema names no properties or cannot be
// read. Parameters follows local $ref, allOf, anyOf and oneOf: a name that one
// branch requires is among the required names. The caller owns the slices.
func (v *Validator) Parameters(tool middleware.Tool) (accepted, required []string) {
	read := v.newPlan(&tool).compiled.view()
	declared := view.DeclaredBy(read.Root().Alternatives())
	return declared.Names, declared.Required
}

// Codes of issues that are not schema keywords; see the package comment.
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
	codeEmpty        = "empty"
	codeUnread       = "unread_call"
	codeParallel     = "parallel_calls"
)

// validation is the validation of the calls of one message.
type validation struct {
	v            *Validator
	req          *middleware.Request
	tools        *requestTools
	calls        []middleware.ToolCall // within Limits.Calls
	excess       []middleware.ToolCall // the calls past that limit
	plans        []toolPlan            // the plan of each of calls; see allPlans
	docs         []*rawjson.Doc        // the parsed arguments of calls; see doc
	verdicts     []middleware.Verdict  // of calls, then of excess
	notes        []string
	kept         []middleware.ToolCall // valid calls of an earlier attempt, which will run together with these
	repeated     []bool                // for each call, whether it repeats a kept call, which runs instead; nil means that no call does
	failures     []error               // of the program's functions, such as rules
	timedOut     map[string]bool       // the program's functions that timed out
	reasked      bool                  // the message answers a re-ask
	budget       schema.Budget         // left for validating the calls
	repairBudget schema.Budget         // left for validating repairs of the calls
}

// newValidation splits the calls at Limits.Calls. The budgets are for all calls
// together, so that many calls cannot multiply the cost.
func (v *Validator) newValidation(req *middleware.Request, known *requestTools, calls []middleware.ToolCall) validation {
	n, bytes := min(len(calls), v.o.Limits.Calls), 0
	for i := range calls[:n] {
		bytes += len(calls[i].Arguments)
	}
	left := schema.NewBudget(bytes)
	return validation{v: v, req: req, tools: known, calls: calls[:n:n], excess: calls[n:], budget: left, repairBudget: left}
}

// validate validates every call without the rules, which run later. It checks
// ctx between calls and returns its error. The verdicts are complete in any
// case.
func (j *validation) validate(ctx context.Context, truncated bool) error {
	j.initVerdicts()
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
		p := j.tools.find(c.Name, c.Namespace)
		if j.v.validAtOnce(p, c.Arguments) {
			continue
		}
		j.allPlans()[i] = p
		j.notes = append(j.notes, p.notes()...)
		if !cutOff {
			j.checkCall(ctx, i)
		}
		if ctx.Err() != nil && slices.ContainsFunc(j.verdicts[i].Issues, func(i middleware.Issue) bool { return i.Code == codeUndecided }) {
			j.markUndecided(i)
			return run.ContextError(ctx)
		}
	}
	j.notes = append(j.notes, j.tools.misspeltNames(ctx)...)
	return nil
}

// initVerdicts makes the verdicts. The verdicts on calls past the limit are final.
func (j *validation) initVerdicts() {
	all := len(j.calls) + len(j.excess)
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

// allPlans returns the plan of each of calls. validate looks up none if all calls were valid at once.
func (j *validation) allPlans() []toolPlan {
	if j.plans == nil && len(j.calls) > 0 {
		j.plans = make([]toolPlan, len(j.calls))
		for i, c := range j.calls {
			if validated(c.Kind) {
				j.plans[i] = j.tools.find(c.Name, c.Namespace)
			}
		}
	}
	return j.plans
}

// checkCall sets the verdict on one function call, without the rules.
func (j *validation) checkCall(ctx context.Context, i int) {
	v, p := &j.verdicts[i], j.plans[i]
	if !p.declared() && v.Call.Name != "" {
		announced, err := j.tools.announced().Has(ctx, v.Call.Name)
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
		if p = j.correctName(v); !p.declared() {
			v.Issues = j.unknownTool(ctx)
			return
		}
		j.plans[i] = p
	}
	if v.Unchecked = !p.declared() || p.unusable(); p.unusable() && j.v.o.UnusableSchemas == RejectUnusable {
		v.Issues = issue(codeUnusable, "", "this tool cannot be called now: the arguments cannot be validated")
		return
	}
	result := j.examine(ctx, p, v.Call.Arguments, &j.budget)
	if len(result.issues) > 0 {
		result = j.repair(ctx, v.Call, p, result)
	}
	if len(result.issues) == 0 {
		v.Call.Arguments = result.text
		v.Changes = append(v.Changes, result.changes...)
		j.storeDoc(i, result.doc)
		j.noteUndeclared(p, result.doc)
		return
	}
	v.Issues = result.issues
	j.storeDoc(i, result.sentDoc)
	if unknown {
		v.Issues = append(j.unknownTool(ctx), result.issues...)
	}
	v.Call, v.Changes = j.calls[i], nil // an invalid call is returned as it was sent
}

// validated reports whether calls of a kind are validated.
func validated(k middleware.Kind) bool {
	return k != middleware.KindCustom && k != middleware.KindBuiltin
}

// unknownTool returns the issue of a call whose tool is not declared.
func (j *validation) unknownTool(ctx context.Context) []middleware.Issue {
	message := "there is no tool of this name"
	if search := j.tools.announced().Loader(ctx); search != "" {
		message = "no tool of this name is loaded; use " + text.Label(search)
	}
	return issue(codeUnknownTool, "", message)
}

func issue(code, pointer, message string) []middleware.Issue {
	return []middleware.Issue{{Code: code, Pointer: pointer, Message: message}}
}

// notChecked is the message for a call that a rule could not decide. It does not
// mention a mistake, because the call may be correct.
const notChecked = "this call could not be checked, so it was not executed"

// undecided is the message for a call whose validation did not end.
const undecided = "this call was not checked to the end, and not executed"

// markUndecided adds the issue undecided to the calls without issues, from the
// i-th call on.
func (j *validation) markUndecided(i int) {
	for ; i < len(j.verdicts); i++ {
		if v := &j.verdicts[i]; v.OK() && validated(v.Call.Kind) {
			v.Issues = issue(codeUndecided, "", undecided)
		}
	}
}

// storeDoc stores the parsed arguments of the i-th call.
func (j *validation) storeDoc(i int, doc *rawjson.Doc) {
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

func (j *validation) note(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

// noteFailure stores the error of one of the program's functions, and adds a note.
func (j *validation) noteFailure(err error) {
	j.note("%v", err)
	j.failures = append(j.failures, err)
}

// isolated is run.Isolated for a user's function. A function that timed out is
// not called again in the same validation: otherwise a message of a thousand
// calls would wait a thousand times.
func isolated[T any](ctx context.Context, j *validation, name string, f func(context.Context) (T, error)) (T, error) {
	if j.timedOut[name] && ctx.Err() == nil {
		var zero T
		return zero, fmt.Errorf("not called again after a timeout: %w", context.DeadlineExceeded)
	}
	v, err := run.Isolated(ctx, j.v.o.RuleTimeout, f)
	if timeout := (*run.Timeout)(nil); errors.As(err, &timeout) {
		if j.timedOut == nil {
			j.timedOut = map[string]bool{}
		}
		j.timedOut[name] = true
	}
	return v, err
}

// render returns the function that writes the reply to one invalid call. If a
// user's function panics, the built-in text is sent.
func (v *Validator) render(ctx context.Context, j *validation, attempt int, repeated, alone bool) func(middleware.Verdict) string {
	i := -1
	return func(verdict middleware.Verdict) string {
		for i++; j.verdicts[i].OK(); i++ {
		}
		in := FeedbackInput{Verdict: verdict, Attempt: attempt, Repeated: repeated, withoutCall: alone, hints: &j.tools.hints}
		if plans := j.allPlans(); i < len(plans) && plans[i].declared() {
			p := plans[i]
			in.Tool, in.Declared, in.compiled, in.doc = *p.tool, true, p.compiled, j.doc(i)
		}
		if in.Available = j.tools.available(); firstCode(verdict.Issues) == codeUnknownTool {
			in.search = j.tools.announced().Loader(ctx)
		}
		if v.o.Feedback == nil {
			return DefaultFeedback(in)
		}
		text, err := isolated(ctx, j, "Feedback", func(context.Context) (string, error) { return v.o.Feedback(in), nil })
		if err != nil {
			j.noteFailure(fmt.Errorf("the built-in text was sent: Options.Feedback: %w", err))
			return DefaultFeedback(in)
		}
		return text
	}
}
