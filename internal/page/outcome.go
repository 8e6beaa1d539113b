package page

import (
	"net/http"
	"slices"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// outcome is the result of a step for the client, as one word.
type outcome string

// The outcomes; outcomeMarks has their meanings.
const (
	valid     outcome = "valid"
	repaired  outcome = "repaired"
	reasked   outcome = "re-asked"
	invalid   outcome = "invalid"
	unchecked outcome = "unchecked"
	failed    outcome = "failed"
	noCalls   outcome = "no calls"
)

// outcomes are all outcomes, in the order in which they are listed.
var outcomes = []outcome{valid, repaired, reasked, invalid, unchecked, failed, noCalls}

// outcomeMarks are shown for outcomes: a sign, because not everyone can distinguish the colours,
// the class in the style sheet, and the meaning as a sentence without its full stop.
var outcomeMarks = map[outcome]struct{ sign, class, meaning string }{
	valid:     {"✓", "valid", "every call was valid as the model first sent it"},
	repaired:  {"✎", "repaired", "a call was repaired"},
	reasked:   {"↻", "reasked", "the model was asked again, and its last answer is valid"},
	invalid:   {"✕", "invalid", "the client got an invalid call"},
	unchecked: {"?", "unchecked", "a call could not be validated, and none is invalid"},
	failed:    {"!", "failed", "the client got an error"},
	noCalls:   {"–", "none", "the answer has no call"},
}

// Sign returns the sign of o.
func (o outcome) Sign() string { return outcomeMarks[o].sign }

// Meaning returns the meaning of o, for people.
func (o outcome) Meaning() string { return outcomeMarks[o].meaning }

// Class returns the class of o in the style sheet.
func (o outcome) Class() string { return outcomeMarks[o].class }

// wasUnchecked reports whether a call was not validated. A call of a tool without a
// schema was: any object is valid.
func wasUnchecked(c report.Call) bool {
	return c.Final.Unchecked() && (c.Final != report.NoSchema || c.Sent.Kind != middleware.KindFunction)
}

// outcomeOf returns the outcome of a step.
func outcomeOf(s *report.Step) outcome {
	worst, again := s.Result()
	var calls []report.Call
	if s.Final >= 0 && s.Final < len(s.Attempts) {
		calls = s.Attempts[s.Final].Calls
	}
	switch {
	case s.Final < 0 && s.Error != "", s.Code >= http.StatusBadRequest:
		return failed
	case worst.Failed(), s.Status == middleware.Invalid:
		return invalid
	case s.Status == middleware.Unchecked, slices.ContainsFunc(calls, wasUnchecked):
		return unchecked
	case again:
		return reasked
	case len(calls) == 0:
		return noCalls
	case slices.ContainsFunc(calls, func(c report.Call) bool { return c.Sent.Name != c.Ran.Name || c.Sent.Arguments != c.Ran.Arguments }):
		return repaired
	}
	return valid
}
