package main

import (
	"context"
	"errors"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/middleware"
)

// verdict is the result of validating a call, as one word.
type verdict string

// The verdicts; the help of check explains them.
const (
	ok          verdict = "ok"
	invalid     verdict = "invalid"
	badJSON     verdict = "bad_json"
	notObject   verdict = "not_object"
	unknownTool verdict = "unknown_tool"
	truncated   verdict = "truncated"
	noSchema    verdict = "no_schema"
	badSchema   verdict = "bad_schema"
)

// good reports whether the call is valid or has no schema to satisfy. A call
// whose schema cannot be used is not good, because it was not validated.
func (v verdict) good() bool { return v == ok || v == noSchema }

// checked is one call with its verdicts.
type checked struct {
	file  string
	line  int // from 1
	index int // index in its turn, from 0
	turn  *recorded.Turn
	call  middleware.ToolCall // as sent

	asSent, final       verdict
	issues, finalIssues []middleware.Issue  // the reasons; empty if the verdict is good
	changes             []middleware.Change // the changes between the two verdicts
	note                string              // why the tool's schema cannot be used
}

// checker returns verdicts. It is safe for concurrent use.
type checker struct {
	sent, final *argsvalidate.Validator
}

// newChecker returns a checker with one Validator for each of the two
// verdicts. They keep compiled schemas, so one checker serves a whole run.
func newChecker(s settings) *checker {
	final, sent := s.options()
	return &checker{sent: argsvalidate.NewValidator(sent), final: argsvalidate.NewValidator(final)}
}

// turn validates the calls of one turn, with both Validators. The second one does not
// start from what the first one left: as sent means as sent.
func (j *checker) turn(ctx context.Context, l recorded.Line, t *recorded.Turn) ([]checked, error) {
	sent, err := verdicts(ctx, j.sent, t)
	if err != nil {
		return nil, err
	}
	final, err := verdicts(ctx, j.final, t)
	if err != nil {
		return nil, err
	}
	out := make([]checked, len(t.Calls))
	for i, c := range t.Calls {
		reason, note := j.unchecked(t.Tools, c)
		finalReason, _ := j.unchecked(t.Tools, final[i].Call) // a repaired name has a tool
		out[i] = checked{
			file: l.File, line: l.N, index: i, turn: t, call: c, note: note,
			asSent: word(sent[i], reason), issues: sent[i].Issues,
			final: word(final[i], finalReason), finalIssues: final[i].Issues, changes: final[i].Changes,
		}
	}
	return out, nil
}

// verdicts calls a Validator. The Validator does not see the response: if the
// response was cut off, verdicts marks its last call as truncated. That call may be
// valid JSON by chance, but it is not known to be what the model wanted to write. A call
// in a form of its own is text, and cannot be told from a whole one.
func verdicts(ctx context.Context, v *argsvalidate.Validator, t *recorded.Turn) ([]middleware.Verdict, error) {
	got, err := v.Validate(ctx, t.Tools, t.Calls...)
	if err != nil && !errors.Is(err, argsvalidate.ErrInvalid) {
		return nil, err
	}
	if last := len(got) - 1; t.Finish == middleware.FinishLength && t.Calls[last].Kind == middleware.KindFunction {
		got[last] = middleware.Verdict{Call: t.Calls[last], Issues: []middleware.Issue{{
			Code: string(truncated), Message: "the answer reached its length limit in this call",
		}}}
	}
	return got, nil
}

// unchecked returns why calls like c are not validated: noSchema, or badSchema
// and a note. It returns "" if they are.
func (j *checker) unchecked(tools []middleware.Tool, c middleware.ToolCall) (verdict, string) {
	for _, t := range tools {
		if t.Name != c.Name || t.Kind == middleware.KindHosted {
			continue
		}
		if len(t.Parameters) == 0 || c.Kind != middleware.KindFunction {
			return noSchema, ""
		}
		if validated, notes := j.sent.Inspect(t); !validated {
			return badSchema, strings.Join(notes, "; ")
		}
		return "", ""
	}
	return noSchema, "" // an unknown tool, with -unknown pass
}

// word reduces a verdict to one word. If there are several issues, the first
// mistake on the way to a valid call counts.
func word(v middleware.Verdict, unchecked verdict) verdict {
	if v.OK() {
		if unchecked != "" {
			return unchecked
		}
		return ok
	}
	switch code := v.Issues[0].Code; code {
	case string(unknownTool), string(truncated), string(notObject):
		return verdict(code)
	case "syntax", "trailing_data", "utf8":
		return badJSON
	}
	return invalid
}
