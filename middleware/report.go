package middleware

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// Report records the attempts of one step. The zero Report records nothing.
type Report struct {
	Status   Status    `json:"status,omitzero"`
	Attempts []Attempt `json:"attempts,omitzero"` // every model call, in time order
	Final    int       `json:"final"`             // index of the attempt whose message was returned; -1 if there is none
	Notes    []string  `json:"notes,omitzero"`    // remarks for an operator, such as a schema that does not compile
	// Failures are the errors of functions of the program that did not end the
	// step, such as a rule that panicked under argsvalidate.Ignore.
	Failures []error `json:"-"`
}

// Status is the result of validating the tool calls of a response. For a
// response without calls it is the result of package answer for the text, if
// that package is in the chain.
type Status string

// The statuses.
const (
	NoCalls   Status = ""          // no calls, and a text that no middleware validated
	Valid     Status = "valid"     // every call is valid; without calls, the text is valid
	Invalid   Status = "invalid"   // at least one call is invalid, so do not run it; without calls, the text is invalid
	Unchecked Status = "unchecked" // at least one call was not validated, and none is invalid
)

// Attempt is one model call inside a step.
type Attempt struct {
	Model        string        `json:"model,omitzero"`
	Message      Message       `json:"message,omitzero"` // as sent by the model; if Err is set, the output that was streamed before
	FinishReason FinishReason  `json:"finish_reason,omitzero"`
	Verdicts     []Verdict     `json:"verdicts,omitzero"` // one for each call, in order; nil if not checked
	Issues       []Issue       `json:"issues,omitzero"`   // of the message, if it has no calls
	Answer       bool          `json:"answer,omitzero"`   // the text was validated as an answer (package answer); else Issues tell why the message is neither a call nor an answer
	Changes      []Change      `json:"changes,omitzero"`  // repairs of that text
	Replies      []Message     `json:"replies,omitzero"`  // sent to the model in the next attempt; nil if there was none
	Healed       []string      `json:"healed,omitzero"`   // names of the rules of package heal by which the request was changed
	Rescued      int           `json:"rescued,omitzero"`  // calls that package rescue read in the text
	Usage        Usage         `json:"usage,omitzero"`
	Start        time.Time     `json:"start,omitzero"`    // zero if it was not measured
	Duration     time.Duration `json:"duration,omitzero"` // nanoseconds
	Err          error         `json:"-"`
}

// Verdict is the result of validating one call.
type Verdict struct {
	Call    ToolCall `json:"call"`             // as it would run
	Issues  []Issue  `json:"issues,omitzero"`  // empty if the call is valid
	Changes []Change `json:"changes,omitzero"` // the repairs: the differences from what the model wrote
	// Unchecked means that the call was not validated. Its tool has an
	// unusable schema or is not declared, or the arguments of its kind are not
	// JSON. Issues is then empty, unless a rule found some.
	Unchecked bool `json:"unchecked,omitzero"`
	// Announced means that the call is Unchecked because the request does not
	// list its tool, and says in another way that it exists; see
	// argsvalidate.UnknownTools.
	Announced bool `json:"announced,omitzero"`
	// Notes are remarks of rules that did not reject the call. They are for
	// the person who approves the call. The model does not see them.
	Notes []string `json:"notes,omitzero"`
}

// OK reports whether the call has no issues.
func (v Verdict) OK() bool { return len(v.Issues) == 0 }

// Issue is one problem of a call, or of the text of a response.
type Issue struct {
	// Code is stable. An issue found by a JSON Schema keyword has the keyword
	// as its code: "required", "type", "enum", "additionalProperties", …
	// Package argsvalidate lists the other codes.
	Code    string `json:"code"`
	Pointer string `json:"pointer"`        // JSON Pointer (RFC 6901) into the arguments; "" means all of them
	Message string `json:"message"`        // text for the model
	Rule    string `json:"rule,omitempty"` // the rule of package argsvalidate that made the issue, such as `rule "stock"`; "" means none
}

// Path returns Pointer in a readable form: config.thresholds[1], or "the
// arguments" if Pointer is "". An empty key is written as "".
func (i Issue) Path() string {
	if i.Pointer == "" {
		return "the arguments"
	}
	var b strings.Builder
	for n, seg := range strings.Split(strings.TrimPrefix(i.Pointer, "/"), "/") {
		if strings.Contains(seg, "~") {
			seg = unescapePointer.Replace(seg)
		}
		if seg == "" {
			seg = `""`
		}
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

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

func isIndex(s string) bool {
	return s == "0" || s != "" && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}

// Change is one repair of a call's arguments, name or id.
type Change struct {
	By      string `json:"by"`              // what made the change, such as "strip" or "id"
	Pointer string `json:"pointer"`         // JSON Pointer into the arguments; "" if By names another part of the call
	Before  string `json:"before,omitzero"` // JSON text of the value, "" if there was none; an id or whole arguments are not quoted
	After   string `json:"after,omitzero"`  // likewise; "" if the value was removed
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

// ReportOf returns the report of a finished step. Its arguments are the
// results of the call, whether it succeeded or not. A call without a recorded
// attempt counts as one attempt. A response with tool calls that no middleware
// validated is Unchecked. If both arguments are nil, ReportOf returns a zero
// Report with Final -1.
func ReportOf(resp *Response, err error) Report {
	switch {
	case err != nil:
		if e, ok := errors.AsType[*stepError](err); ok {
			return e.report
		}
		r := Report{Attempts: []Attempt{{Err: err}}, Final: -1}
		if errors.Is(err, ErrInvalidToolCall) {
			r.Status = Invalid
		}
		return r
	case resp == nil:
		return Report{Final: -1}
	}
	r := resp.Report
	r.Status = resp.status()
	if len(r.Attempts) == 0 {
		r.Attempts, r.Final = []Attempt{attemptOf(resp)}, 0
	}
	return r
}

// attemptOf copies the message, because the owner of the response may modify
// it.
func attemptOf(resp *Response) Attempt {
	return Attempt{Model: resp.Model, Message: resp.Message.Clone(), FinishReason: resp.FinishReason, Usage: resp.Usage}
}

// Usage returns the sum over the attempts.
func (r Report) Usage() Usage {
	var u Usage
	for i := range r.Attempts {
		u = u.Add(r.Attempts[i].Usage)
	}
	return u
}

// Healed returns the names in Attempt.Healed of all attempts, each once, in the order of their
// first use.
func (r Report) Healed() (names []string) {
	for i := range r.Attempts {
		for _, name := range r.Attempts[i].Healed {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Rescued returns Attempt.Rescued of the attempt whose message was returned, 0 if there is none.
func (r Report) Rescued() int {
	if r.Final < 0 || r.Final >= len(r.Attempts) {
		return 0
	}
	return r.Attempts[r.Final].Rescued
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
		a.Healed = slices.Clone(a.Healed)
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
		v.Error = new(text(a.Err.Error()))
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON writes. Err is then an error with the
// same text, without its type.
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
