package report

import "github.com/toolmend/toolmend/middleware"

// Verdict is the result of validating a call, as one word. The words are stable.
type Verdict string

// The verdicts.
const (
	OK          Verdict = "ok"           // valid
	Invalid     Verdict = "invalid"      // it violates the schema, a rule or a limit, or has a duplicate key
	BadJSON     Verdict = "bad_json"     // the arguments are not JSON
	NotObject   Verdict = "not_object"   // the arguments are JSON, but not an object
	UnknownTool Verdict = "unknown_tool" // the tool is not declared
	Truncated   Verdict = "truncated"    // the answer was cut off in this call
	NoSchema    Verdict = "no_schema"    // valid, because there is no schema; of a custom or built-in call: not validated
	BadSchema   Verdict = "bad_schema"   // not validated: the tool's schema cannot be used
	Announced   Verdict = "announced"    // not validated: the request announces the tool, and does not list it
)

// Good reports whether the call is valid or has no schema to satisfy, or the client
// has the schema. A call whose schema cannot be used is not good, because it was not
// validated.
func (v Verdict) Good() bool { return v == OK || v == NoSchema || v == Announced }

// Unchecked reports whether the call was not held to a schema. Such calls are not
// part of the rates.
func (v Verdict) Unchecked() bool { return v == NoSchema || v == BadSchema || v == Announced }

// Failed reports whether the call was validated, and is not valid.
func (v Verdict) Failed() bool { return !v.Good() && !v.Unchecked() }

// rank orders verdicts from good to bad.
func (v Verdict) rank() int {
	switch {
	case v == OK || v == "":
		return 0
	case v == NoSchema || v == Announced:
		return 1
	case v == BadSchema:
		return 2
	}
	return 3
}

// verdictOf reduces a verdict to one word. If there are several issues, the first
// mistake on the way to a valid call counts. unchecked is the reason why calls
// like this one are not validated, or "".
func verdictOf(v middleware.Verdict, unchecked Verdict) Verdict {
	if v.OK() {
		if unchecked != "" {
			return unchecked
		}
		return OK
	}
	switch code := v.Issues[0].Code; code {
	case string(UnknownTool), string(Truncated), string(NotObject):
		return Verdict(code)
	case "syntax", "trailing_data", "utf8":
		return BadJSON
	}
	return Invalid
}
