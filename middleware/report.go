package middleware

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// Report is the ledger of one step. The zero Report: nothing recorded.
type Report struct {
	Status   Status    `json:"status,omitzero"`
	Attempts []Attempt `json:"attempts,omitzero"` // every model call, in time order
	Final    int       `json:"final"`             // index of the attempt whose message was returned; -1: none
	Notes    []string  `json:"notes,omitzero"`    // what an operator should know, such as a schema that does not compile
	// Failures are the errors of functions of the program that did not end the
	// step, such as a rule that panicked under argsvalidate.Ignore.
	Failures []error `json:"-"`
}

// Status is what is known about the tool calls of a response. Of a response
// without a call it is what package answer found about its text, if it is in
// the chain.
type Status string

// The statuses.
const (
	NoCalls   Status = ""          // there was no call; in a response that no layer validated, nothing is known
	Valid     Status = "valid"     // every call is valid; without a call, the text is
	Invalid   Status = "invalid"   // at least one call is not: do not run it; without a call, the text is not
	Unchecked Status = "unchecked" // at least one call was not validated, and none is invalid
)

// Attempt is one model call inside a step.
type Attempt struct {
	Model        string        `json:"model,omitzero"`
	Message      Message       `json:"message,omitzero"` // as sent by the model; with Err, what had been shown to a sink by then
	FinishReason FinishReason  `json:"finish_reason,omitzero"`
	Verdicts     []Verdict     `json:"verdicts,omitzero"` // one for each call, in order; nil if not checked
	Issues       []Issue       `json:"issues,omitzero"`   // what is wrong with the text of the answer (package answer)
	Changes      []Change      `json:"changes,omitzero"`  // what was repaired in that text
	Replies      []Message     `json:"replies,omitzero"`  // what the model was told next; nil if it was not asked again
	Usage        Usage         `json:"usage,omitzero"`
	Start        time.Time     `json:"start,omitzero"`    // zero if nobody measured
	Duration     time.Duration `json:"duration,omitzero"` // nanoseconds
	Err          error         `json:"-"`
}

// Verdict is the judgement on one call.
type Verdict struct {
	Call    ToolCall `json:"call"`             // as it would run
	Issues  []Issue  `json:"issues,omitzero"`  // empty: valid
	Changes []Change `json:"changes,omitzero"` // what made it differ from what the model wrote
	// Unchecked means that the call was not validated: the schema of its tool
	// cannot be used, its tool is not declared, or its kind has no arguments
	// that are JSON. It has no issues, unless a rule found some.
	Unchecked bool `json:"unchecked,omitzero"`
	// Notes are what rules remark on the call without refusing it. They are for
	// who approves the call, and not for the model.
	Notes []string `json:"notes,omitzero"`
}

// OK reports whether nothing is wrong with the call.
func (v Verdict) OK() bool { return len(v.Issues) == 0 }

// Issue is one thing wrong with a call.
type Issue struct {
	// Code is stable. A fault that a JSON Schema keyword found has the keyword
	// for a code: "required", "type", "enum", "additionalProperties", …
	// The others are listed in package argsvalidate.
	Code    string `json:"code"`
	Pointer string `json:"pointer"` // JSON Pointer (RFC 6901) into the arguments; "" is the whole
	Message string `json:"message"` // for the model
}

// Path returns Pointer in the form that people read: config.thresholds[1],
// or "the arguments" for the whole.
func (i Issue) Path() string {
	if i.Pointer == "" {
		return "the arguments"
	}
	var b strings.Builder
	for n, seg := range strings.Split(strings.TrimPrefix(i.Pointer, "/"), "/") {
		seg = strings.NewReplacer("~1", "/", "~0", "~").Replace(seg)
		switch {
		case n > 0 && isIndex(seg):
			b.WriteString("[" + seg + "]")
		case n > 0:
			b.WriteString("." + seg)
		default:
			b.WriteString(seg)
		}
	}
	return b.String()
}

func isIndex(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != "" && (s == "0" || s[0] != '0')
}

// Change is one edit made to a call's arguments, name or id.
type Change struct {
	By      string `json:"by"`              // what made it, such as "strip" or "id"
	Pointer string `json:"pointer"`         // JSON Pointer into the arguments; "" where By names another part of the call
	Before  string `json:"before,omitzero"` // JSON text of the value, "" if there was none; of an id or of whole arguments, as they were
	After   string `json:"after,omitzero"`  // likewise; "" if it was removed
}

// StatusOf returns the status of a message whose calls have these verdicts.
func StatusOf(verdicts []Verdict) Status {
	status := NoCalls
	for _, v := range verdicts {
		switch {
		case !v.OK():
			return Invalid
		case v.Unchecked:
			status = Unchecked
		case status == NoCalls:
			status = Valid
		}
	}
	return status
}

// ReportOf returns the ledger of a finished step, whatever its outcome: pass
// what the call returned. A call that nobody recorded counts as one attempt. A
// response with tool calls that no layer validated is Unchecked.
// Without a response and an error it is the zero Report with Final -1.
func ReportOf(resp *Response, err error) Report {
	switch {
	case err != nil:
		var e *stepError
		if errors.As(err, &e) {
			return e.report
		}
		r := Report{Attempts: []Attempt{{Err: err}}, Final: -1}
		if errors.Is(err, ErrInvalidToolCall) {
			r.Status = Invalid
		}
		return r
	case resp == nil:
		return Report{Final: -1}
	case len(resp.Report.Attempts) > 0:
		return resp.Report
	}
	r := resp.Report
	if r.Status == NoCalls && len(resp.Message.ToolCalls) > 0 {
		r.Status = Unchecked
	}
	r.Attempts = []Attempt{attemptOf(resp)}
	r.Final = 0
	return r
}

// attemptOf copies the message: the ledger says what was sent, whatever the
// response's owner makes of it.
func attemptOf(resp *Response) Attempt {
	return Attempt{Model: resp.Model, Message: resp.Message.Clone(), FinishReason: resp.FinishReason, Usage: resp.Usage}
}

// Usage returns the sum over the attempts.
func (r Report) Usage() Usage {
	var u Usage
	for _, a := range r.Attempts {
		u = u.Add(a.Usage)
	}
	return u
}

func (r Report) clone() Report {
	r.Notes, r.Failures = slices.Clone(r.Notes), slices.Clone(r.Failures)
	r.Attempts = slices.Clone(r.Attempts)
	for i := range r.Attempts {
		a := &r.Attempts[i]
		a.Message = a.Message.Clone()
		a.Replies = cloneMessages(a.Replies)
		a.Issues = slices.Clone(a.Issues)
		a.Changes = slices.Clone(a.Changes)
		a.Verdicts = slices.Clone(a.Verdicts)
		for j := range a.Verdicts {
			a.Verdicts[j].Issues = slices.Clone(a.Verdicts[j].Issues)
			a.Verdicts[j].Changes = slices.Clone(a.Verdicts[j].Changes)
			a.Verdicts[j].Notes = slices.Clone(a.Verdicts[j].Notes)
		}
	}
	return r
}

// MarshalJSON writes the error as its text.
func (a Attempt) MarshalJSON() ([]byte, error) {
	type plain Attempt
	v := struct {
		plain
		Error *text `json:"error,omitzero"`
	}{plain: plain(a)}
	if a.Err != nil {
		t := text(a.Err.Error())
		v.Error = &t
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON writes; Err has the text of the error
// that was written, not its type.
func (a *Attempt) UnmarshalJSON(b []byte) error {
	type plain Attempt
	v := struct {
		*plain
		Error *text `json:"error"`
	}{plain: (*plain)(a)}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	a.Err = nil
	if v.Error != nil {
		a.Err = errors.New(string(*v.Error))
	}
	return nil
}
