package check

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/recordedtest"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// opinion is what an independent validator (python-jsonschema, Draft 7) recorded
// about a call.
type opinion struct {
	V             string          `json:"v"`
	Dup           json.RawMessage `json:"dup"`
	SchemaProblem json.RawMessage `json:"schema_problem"`
}

// knownDifferences is how often the two validators differ, by reason.
var knownDifferences = map[string]int{
	unknownAndBadJSON: 65,
	duplicateKey:      6,
	emptyIsObject:     15,
}

// Why the validators may differ.
const (
	unknownAndBadJSON = "a call to an unknown tool whose arguments are not JSON either"
	duplicateKey      = "a duplicate key"
	emptyIsObject     = "empty arguments are read as {}"
	unusableSchema    = "a schema that cannot be used"
)

// The verdicts as sent agree with the recorded ones: nothing is accepted that
// was found wrong, nothing rejected that was found right, but for the reasons
// in knownDifferences.
func TestAgreesWithOracle(t *testing.T) {
	t.Parallel()
	s, err := parse([]string{"-strip", "off", "-"})
	require.NoError(t, err)
	j := report.NewChecker(s.verdict)
	calls, differences, several := 0, map[string]int{}, map[string]int{}
	recordedtest.Each(t, func(l recorded.Line, turns []recorded.Turn) {
		ours := compare(t, j, l, turns, differences)
		calls += len(ours)
		bad := 0
		for i := range ours {
			if ours[i].AsSent.Failed() {
				bad++
			}
		}
		switch {
		case len(ours) < 2:
		case bad == 0:
			several["valid"]++
		case bad == len(ours):
			several["invalid"]++
		default:
			several["mixed"]++
		}
	})
	t.Logf("%d calls; the validators differ on %v", calls, differences)
	require.Equal(t, knownDifferences, differences)
	require.Equal(t, map[string]int{"valid": 7218, "invalid": 197, "mixed": 167}, several, "turns with several calls, as docs/reports/ci.md has them")
}

// compare returns the validated calls of a line, and sorts the differences by reason. A
// difference without a reason fails the test.
func compare(t *testing.T, j *report.Checker, l recorded.Line, turns []recorded.Turn, differences map[string]int) []report.Call {
	t.Helper()
	require.Len(t, turns, 1)
	var record struct {
		Oracle []opinion `json:"oracle"`
	}
	require.NoError(t, json.Unmarshal(l.Text, &record))
	ours, err := j.Check(t.Context(), turns[0].Tools, turns[0].Finish, turns[0].Calls...)
	require.NoError(t, err)
	require.Len(t, record.Oracle, len(ours))
	for i, o := range record.Oracle {
		if string(ours[i].AsSent) == o.V {
			continue
		}
		reason := whyDifferent(ours[i], o)
		if reason == "" {
			t.Errorf("%s:%d call %d to %s: we say %s, the oracle %s; %v\n%s", l.File, l.N, i, ours[i].Sent.Name, ours[i].AsSent, o.V, ours[i].Issues, ours[i].Sent.Arguments)
		}
		differences[reason]++
	}
	return ours
}

// whyDifferent names a difference that is meant, or that is only one of words;
// "" is one that is not.
func whyDifferent(c report.Call, o opinion) string {
	switch {
	case o.V == "empty_args" && (c.AsSent == report.OK || c.AsSent == report.Invalid):
		return emptyIsObject
	case o.V == "bad_json" && c.AsSent == report.UnknownTool:
		return unknownAndBadJSON
	case o.V == "ok" && len(o.Dup) > 0 && has(c.Issues, "duplicate_key"):
		return duplicateKey
	case len(o.SchemaProblem) > 0 && c.AsSent == report.BadSchema:
		return unusableSchema
	}
	return ""
}

func has(issues []middleware.Issue, code string) bool {
	for _, i := range issues {
		if i.Code == code {
			return true
		}
	}
	return false
}
