package main

import (
	"context"
	"errors"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/middleware"
)

// verdict is a judgement in one word.
type verdict string

// The words, as check's help explains them.
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

// good reports whether nothing is wrong, as far as that can be said. A tool
// without a schema asks for nothing; one whose schema cannot be used asks for
// something that nobody checked, which is not good.
func (v verdict) good() bool { return v == ok || v == noSchema }

// judged is one call with its verdicts.
type judged struct {
	file  string
	line  int // from 1
	index int // in its turn, from 0
	turn  *recorded.Turn
	call  middleware.ToolCall // as sent

	asSent, final       verdict
	issues, finalIssues []middleware.Issue  // why; empty where the verdict is good
	changes             []middleware.Change // what lies between the two verdicts
	note                string              // why the tool's schema cannot be used
}

// judge gives verdicts. It is safe for concurrent use.
type judge struct {
	sent, final *argsvalidate.Validator
}

// newJudge returns a judge with one Validator for each of the two verdicts.
// They keep compiled schemas, so one judge serves a whole run.
func newJudge(s settings) *judge {
	final, sent := s.options()
	return &judge{sent: argsvalidate.NewValidator(sent), final: argsvalidate.NewValidator(final)}
}

// turn judges the calls of one turn.
func (j *judge) turn(ctx context.Context, l recorded.Line, t *recorded.Turn) ([]judged, error) {
	sent, err := verdicts(ctx, j.sent, t)
	if err != nil {
		return nil, err
	}
	final, err := verdicts(ctx, j.final, t)
	if err != nil {
		return nil, err
	}
	out := make([]judged, len(t.Calls))
	for i, c := range t.Calls {
		reason, note := j.unjudged(t.Tools, c)
		finalReason, _ := j.unjudged(t.Tools, final[i].Call) // a mended name has a tool
		out[i] = judged{
			file: l.File, line: l.N, index: i, turn: t, call: c, note: note,
			asSent: word(sent[i], reason), issues: sent[i].Issues,
			final: word(final[i], finalReason), finalIssues: final[i].Issues, changes: final[i].Changes,
		}
	}
	return out, nil
}

// verdicts asks a Validator, which sees calls and not the answer they came in:
// of one that was cut off, the last call is not whole.
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

// unjudged says why calls like c are not held to a schema: noSchema, or
// badSchema and a note, or "" where they are.
func (j *judge) unjudged(tools []middleware.Tool, c middleware.ToolCall) (verdict, string) {
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
	return noSchema, "" // an unknown tool, where those pass
}

// word puts a verdict into one word; where several things are wrong, the one
// that comes first on the way to a valid call.
func word(v middleware.Verdict, unjudged verdict) verdict {
	if v.OK() {
		if unjudged != "" {
			return unjudged
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
