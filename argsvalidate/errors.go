package argsvalidate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// Reasons why a step or a validation failed.
var (
	// ErrExhausted: the model sent no valid message in MaxAttempts attempts.
	ErrExhausted = errors.New("argsvalidate: attempts exhausted")
	// ErrRepeated: three invalid responses in a row repeated earlier failures,
	// so no further attempt was made. Responses of earlier steps of an agent
	// loop count. It comes with ErrExhausted.
	ErrRepeated = errors.New("argsvalidate: the same invalid calls again")
	// ErrNoCall: the request demands a tool call, and the model sent none. It
	// comes with ErrExhausted.
	ErrNoCall = errors.New("argsvalidate: the request demands a tool call, and the model sent none")
	// ErrEmpty: the message holds neither an answer nor a tool call, or it announces
	// calls and has none (Options.EmptyAnswers). It comes with ErrExhausted.
	ErrEmpty = errors.New("argsvalidate: the model sent an empty message")
	// ErrInvalid: a call is invalid.
	ErrInvalid = errors.New("argsvalidate: invalid tool call")
	// ErrRule: a rule could not decide. The error also wraps the rule's own
	// error.
	ErrRule = errors.New("argsvalidate: rule failed")
)

// Error reports why a step has no valid response, or which calls are invalid.
// errors.Is finds ErrExhausted, ErrRepeated, ErrNoCall, ErrEmpty, ErrInvalid,
// ErrRule and the cause in it. middleware.ReportOf(nil, err) returns the report of the
// step.
type Error struct {
	// Response is the last response, as sent; nil without a response. With
	// batch.KeepValid it is the kept message, with the corrected calls.
	Response *middleware.Response
	Verdicts []middleware.Verdict // on the calls of Response, in order
	Replies  []middleware.Message // the replies of a re-ask, one for each call within Limits.Calls; nil with Turn.NoReplies
	reasons  []error
	attempts int
	plans    []toolPlan // by verdict
}

// newError returns an Error with the verdicts of j.
func (j *validation) newError(reasons ...error) *Error {
	return &Error{Verdicts: j.verdicts, reasons: reasons, plans: slices.Clone(j.allPlans())}
}

// maxNamed is the number of calls that an error text names.
const maxNamed = 10

// Error returns the number of attempts, the tool names and the issue codes. It
// contains no arguments and no names of undeclared tools. It contains the text
// of a rule's own error unchanged.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.reasons[0].Error())
	if e.attempts > 0 {
		fmt.Fprintf(&b, ": arguments still invalid after %d attempts", e.attempts)
	}
	named := 0
	for n, v := range e.Verdicts {
		if v.OK() || e.reasons[0] == ErrRule {
			continue
		}
		if named++; named > maxNamed {
			b.WriteString("; and more")
			break
		}
		var codes []string
		for _, i := range v.Issues {
			if !slices.Contains(codes, i.Code) {
				codes = append(codes, i.Code)
			}
		}
		fmt.Fprintf(&b, "; %s: %s", e.toolName(n), strings.Join(codes, ", "))
	}
	for _, r := range e.reasons[1:] {
		if r != ErrInvalid && r != ErrExhausted {
			b.WriteString(": " + r.Error())
		}
	}
	return b.String()
}

// Unwrap returns the reasons.
func (e *Error) Unwrap() []error { return e.reasons }

// ErrorType returns a word for metric labels and clients: rule_failed if a
// rule could not decide, else invalid_tool_call.
func (e *Error) ErrorType() string {
	if slices.Contains(e.reasons, ErrRule) {
		return "rule_failed"
	}
	return "invalid_tool_call"
}

// ForCall returns the error for the n-th call alone.
func (e *Error) ForCall(n int) *Error {
	one := &Error{Response: e.Response, Verdicts: e.Verdicts[n : n+1 : n+1], reasons: e.reasons, attempts: e.attempts}
	if n < len(e.Replies) {
		one.Replies = e.Replies[n : n+1 : n+1]
	}
	if n < len(e.plans) {
		one.plans = e.plans[n : n+1 : n+1]
	}
	return one
}

// Limits on a ClientMessage.
const (
	maxClientFaults  = 3
	maxClientMessage = 500 // bytes
)

// ClientMessage returns one sentence for the user of the agent, such as
// "read_file: file_path is missing (3 attempts)". It names declared tools and
// properties, and describes the mistakes. It contains no values, no names
// that the model made up and no text of a rule, so a proxy may send it to any
// client. It has at most 500 bytes.
func (e *Error) ClientMessage() string {
	var faults []string
	for n, v := range e.Verdicts {
		for _, i := range v.Issues {
			if fault := e.clientFault(n, i); !slices.Contains(faults, fault) {
				faults = append(faults, fault)
			}
			if len(faults) > maxClientFaults {
				break
			}
		}
	}
	if len(faults) > maxClientFaults {
		faults = append(faults[:maxClientFaults], "and more")
	}
	message := strings.Join(faults, "; ")
	switch {
	case slices.Contains(e.reasons, ErrRule):
		message = "a rule could not decide"
	case slices.Contains(e.reasons, ErrEmpty):
		message = "the model sent an empty message"
	case message == "":
		message = "the model sent no valid tool call"
	}
	if e.attempts > 0 {
		message = fmt.Sprintf("%s (%s)", text.Clip(message, maxClientMessage-40), text.Plural(e.attempts, "attempt"))
	}
	return text.Clip(message, maxClientMessage)
}

// toolName returns the name of the tool of verdict n, if it is declared.
func (e *Error) toolName(n int) string {
	unknown := func(i middleware.Issue) bool { return i.Code == codeUnknownTool }
	if n >= len(e.plans) || !e.plans[n].declared() || slices.ContainsFunc(e.Verdicts[n].Issues, unknown) {
		return "undeclared tool"
	}
	return text.Name(e.Verdicts[n].Call.Name)
}

// clientFault describes an issue of verdict n without text of the model.
func (e *Error) clientFault(n int, i middleware.Issue) string {
	name := e.toolName(n)
	switch i.Code {
	case codeToolChoice, codeParallel:
		return name + ": this call is not allowed"
	case codeUnknownTool:
		return "a tool was called that is not declared"
	case codeTruncated:
		return name + ": the call was cut off"
	case codeNotObject, "syntax", "trailing_data", "utf8":
		return name + ": the arguments are not a JSON object"
	case "size", "depth", "number", "unchecked":
		return name + ": the arguments are too large to validate"
	}
	place := "the argument object"
	if pointer := e.declaredPart(n, i.Pointer); pointer != "" {
		place = text.Clip(text.Name(middleware.Issue{Pointer: pointer}.Path()), maxClientMessage/4)
	}
	return text.Clip(name, maxClientMessage/8) + ": " + place + " " + clientWords(i.Code)
}

// clientWords describes an issue by its code.
func clientWords(code string) string {
	switch code {
	case "required", "dependentRequired":
		return "is missing"
	case "type":
		return "has the wrong type"
	case "enum", "const":
		return "is not an allowed value"
	case "additionalProperties", "unevaluatedProperties", "propertyNames", codeUndeclared:
		return "has a property that is not declared"
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return "is out of range"
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return "has the wrong length"
	case codeDuplicateKey:
		return "has a duplicate key"
	}
	if n := strings.IndexFunc(code, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' }); n >= 0 || len(code) > 40 {
		return "is invalid"
	}
	return "is invalid (" + code + ")"
}

// declaredPart returns the longest prefix of pointer whose properties are
// declared by the schema of verdict n's tool. The model made up the names
// after it.
func (e *Error) declaredPart(n int, pointer string) string {
	if n >= len(e.plans) || e.plans[n].compiled == nil || e.plans[n].compiled.schema == nil {
		return ""
	}
	tool, declared := e.plans[n].compiled.view(), ""
	const deepest = 16
	for depth, seg := range rawjson.Segments(pointer) {
		known := tool.Declared(tool.At(declared))
		if depth == deepest || !known.Has(seg) && !known.Requires(seg) && !isNumber(seg) {
			break
		}
		declared += "/" + rawjson.Escape(seg)
	}
	return declared
}

func isNumber(seg string) bool {
	return seg != "" && len(seg) <= 9 && strings.Trim(seg, "0123456789") == ""
}
