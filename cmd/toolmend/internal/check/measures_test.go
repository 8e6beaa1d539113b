package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/recordedtest"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// TestBuckets holds OpenRouter's bucket of a call, and whether K2 Vendor Verifier
// counts the call as valid.
func TestBuckets(t *testing.T) {
	t.Parallel()
	m := newMeasurer(nil)
	tool := func(name, parameters string) middleware.Tool {
		return middleware.Tool{Name: name, Parameters: json.RawMessage(parameters)}
	}
	tools := []middleware.Tool{
		tool("add", `{"type":"object","properties":{"x":{"type":"integer"},"when":{"type":"string","format":"date"}},"required":["x"]}`),
		tool("add", `{"type":"object"}`), // the first of a name counts
		tool("none", ``), tool("empty", ` { } `), tool("odd", `{"type":"nonsense"}`), tool("lenient", `{"type":"OBJECT"}`),
		tool("new", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","dependentRequired":{"a":["b"]}}`),
		tool("only", `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`), tool("closed", `false`),
		tool("far", `{"$ref":"https://example.com/x.json"}`),
		{Name: "web", Kind: middleware.KindHosted},
		{Name: "text", Kind: middleware.KindCustom},
	}
	for _, c := range []struct {
		name, arguments string
		want            bucket
		checked, k2     bool
	}{
		{"add", `{"x":1}`, bucketValid, true, true},
		{"add", `{"x":1,"x":"1"}`, bucketSchemaMismatch, true, false}, // the last one counts
		{"add", `{"x":"1"}`, bucketSchemaMismatch, true, false},
		{"add", `{"x":1,"when":"soon"}`, bucketSchemaMismatch, true, true}, // only OpenRouter's validator asserts formats
		{"add", `[1]`, bucketSchemaMismatch, true, false},
		{"add", `{"x":1`, bucketInvalidJSON, true, false},
		{"add", ``, bucketInvalidJSON, true, false},
		{"add", `{"x":1} {}`, bucketInvalidJSON, true, false},
		{"sub", `{}`, bucketUnknownName, true, false},
		{"sub", `{`, bucketInvalidJSON, true, false},
		{"web", `{}`, bucketUnknownName, true, false},
		{"none", `{}`, bucketValid, false, false},
		{"none", `{`, bucketInvalidJSON, true, false},
		{"empty", `{}`, bucketValid, true, false},
		{"odd", `{}`, bucketValid, false, false},
		{"lenient", `{"a":[]}`, bucketValid, false, false},
		{"far", `{}`, bucketValid, false, false},
		{"new", `{"a":1}`, bucketValid, true, false}, // Draft 7 does not know the keyword
		{"only", `3`, bucketValid, true, true},
		{"closed", `{}`, bucketSchemaMismatch, true, false},
		{"add", `{"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, bucketValid, false, false}, // too deep to say
	} {
		call := middleware.ToolCall{Name: c.name, Arguments: c.arguments}
		got, checked := m.openRouter(tools, call)
		require.Equal(t, c.want, got, "%s %s", c.name, c.arguments)
		require.Equal(t, c.checked, checked, "%s %s", c.name, c.arguments)
		require.Equal(t, c.k2, m.k2Valid(tools, call), "%s %s", c.name, c.arguments)
	}
	got, checked := m.openRouter(tools, middleware.ToolCall{Name: "text", Kind: middleware.KindCustom, Arguments: "x"})
	require.Equal(t, bucketValid, got)
	require.False(t, checked)
}

// TestMeasures holds what counts as a request and as an answer, for each model.
func TestMeasures(t *testing.T) {
	t.Parallel()
	finished := func(reason, line string) string {
		return strings.Replace(line, `{"source"`, `{"finish_reason":"`+reason+`","source"`, 1)
	}
	dir := clitest.DirWith(t, map[string]string{"log": clitest.Turn("a", "1", "add", `{"x":1}`, "add", `{"x":2}`) +
		clitest.Turn("a", "2", "add", `{"x":"1"}`, "add", `{"x"`, "sub", `{}`, "free", `{}`) +
		finished("tool_calls", clitest.Turn("b", "3", "add", `{"x":1}`)) + finished("length", clitest.Turn("b", "4", "add", `{"x"`)) + finished("stop", clitest.Turn("b", "5", "odd", `{}`))})
	got := exec(t, dir, "", "check", "-json", "@/log")
	var s summaryJSON
	require.NoError(t, json.Unmarshal([]byte(lastLine(got.Out)), &s))
	text, err := json.Marshal(s.Measures)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"total": {"openrouter": {"requests":5,"errors":2,"InvalidJson":2,"UnknownName":1,"SchemaMismatch":1,"unchecked":2}, "k2_vendor_verifier": {"answers":3,"valid":2,"other_finish":2}},
		"models": {
			"a": {"openrouter": {"requests":2,"errors":1,"InvalidJson":1,"UnknownName":1,"SchemaMismatch":1,"unchecked":1}, "k2_vendor_verifier": {"answers":2,"valid":1,"other_finish":0}},
			"b": {"openrouter": {"requests":3,"errors":1,"InvalidJson":1,"UnknownName":0,"SchemaMismatch":0,"unchecked":1}, "k2_vendor_verifier": {"answers":1,"valid":1,"other_finish":2}}
		}}`, string(text))
	require.Contains(t, exec(t, dir, "", "check", "@/log").Out,
		"OpenRouter, tool call error rate: 40.00% of 5 requests (calls: 2 InvalidJson, 1 UnknownName, 1 SchemaMismatch)\n"+
			"K2 Vendor Verifier, schema accuracy: 66.67% of 3 answers\n")
	// A turn counts as a whole, also if -tool selects one of its calls.
	require.Contains(t, exec(t, dir, "", "check", "-tool", "free", "@/log").Out, "100.00% of 1 request (calls: 1 InvalidJson, 1 UnknownName, 1 SchemaMismatch)")
}

// bucketOf is the bucket of an opinion of python-jsonschema, Draft 7.
var bucketOf = map[string]bucket{
	"ok": bucketValid, "no_schema": bucketValid, "bad_schema": bucketValid,
	"invalid": bucketSchemaMismatch, "not_object": bucketSchemaMismatch,
	"bad_json": bucketInvalidJSON, "empty_args": bucketInvalidJSON, "unknown_tool": bucketUnknownName,
}

// TestBucketsAgreeWithOracle compares the buckets of all recorded calls with the
// opinions of python-jsonschema, Draft 7. A call that is neither JSON nor of a
// known tool is in one of two buckets; the oracle looked at the name first.
func TestBucketsAgreeWithOracle(t *testing.T) {
	t.Parallel()
	m := newMeasurer(nil)
	calls, requests, differences, k2 := 0, 0, map[string]int{}, map[string]int{}
	recordedtest.Each(t, func(l recorded.Line, turns []recorded.Turn) {
		var record struct {
			Oracle []opinion `json:"oracle"`
		}
		require.NoError(t, json.Unmarshal(l.Text, &record))
		requests++
		ours, theirs := false, false
		for i, o := range record.Oracle {
			calls++
			c := turns[0].Calls[i]
			got, _ := m.openRouter(turns[0].Tools, c)
			want, known := bucketOf[o.V]
			require.True(t, known, o.V)
			ours, theirs = ours || got != bucketValid, theirs || want != bucketValid
			if got != want {
				differences[o.V+", "+string(got)]++
			}
			if valid := m.k2Valid(turns[0].Tools, c); valid != (o.V == "ok") {
				k2[fmt.Sprint(o.V, ", schema valid: ", len(o.SchemaProblem) == 0)]++
			}
		}
		require.Equal(t, theirs, ours, "%s:%d", l.File, l.N)
	})
	t.Logf("%d requests, %d calls: %v; K2: %v", requests, calls, differences, k2)
	require.Equal(t, map[string]int{
		"unknown_tool, InvalidJson": 69, // neither
		"bad_json, UnknownName":     2,  // JSON around a text that the recorder could not read; the call has no name
	}, differences)
	require.Equal(t, map[string]int{
		"ok, schema valid: false": 12, // K2 Vendor Verifier refuses the schema itself
		"ok, schema valid: true":  1,  // {} counts as no schema
	}, k2)
}

// TestMeasuresOfValidCalls: what is concluded from check's own verdict is what the
// validators of the publishers say, on hand-made schemas and on recorded calls.
func TestMeasuresOfValidCalls(t *testing.T) {
	t.Parallel()
	checker := report.NewChecker(argsvalidate.Options{})
	m, slow, concluded := newMeasurer(checker), newMeasurer(checker), map[bool]int{}
	same := func(turn *recorded.Turn) {
		calls, err := checker.Check(t.Context(), turn.Tools, "", turn.Calls...)
		require.NoError(t, err)
		unknown := slices.Clone(calls)
		for i := range calls {
			unknown[i].AsSent = "" // nothing is concluded from it
			if valid, known := m.concluded(turn.Tools, &calls[i]); known {
				concluded[valid]++
			}
		}
		require.Equal(t, slow.turn(turn, unknown), m.turn(turn, calls), "%v", turn.Calls)
	}
	for _, schema := range []string{
		`{"type":"object"}`, `{}`, ` { } `, `true`, `{"type":"nonsense"}`, `{"properties":{"d":{"type":"string","format":"date"}}}`,
		`{"properties":{"d":{"type":"string","form\u0061t":"date"}}}`, `{"properties":{"l":{"items":[{"type":"integer"}]}}}`,
		`{"properties":{"l":{"prefixItems":[{"type":"string"}]}}}`, `{"dependentRequired":{"d":["q"]}}`, `{"dependencies":{"d":["q"]}}`,
		`{"$defs":{"a":{"type":"integer"}},"properties":{"d":{"$ref":"#/$defs/a"}}}`, `{"properties":{"l":{"contains":{"type":"integer"},"minContains":3}}}`,
		`{"type":"object","properties":{"d":{"type":"string"}},"required":["d"],"additionalProperties":false}`,
		`{"properties":{"l":{"contains":{"type":"string"}}}}`, `{"properties":{"l":{"items":{},"additionalItems":false}}}`,
		`{"definitions":{"a":{"type":"str"}}}`, `{"id":"x","items":[true]}`, `{"unevaluatedProperties":false}`, `{"required":"d"}`, `{"type":"object","properties":{"d":{"type":"str"}}}`, `{"properties":{"d":{"pattern":"["}}}`,
	} {
		for _, arguments := range []string{`{"d":"no date","l":[1,2]}`, `{"d":"2026-11-22"}`, `{}`, ``, `null`, ` {}`, `{"d":1,"d":2}`} {
			same(&recorded.Turn{Tools: []middleware.Tool{{Name: "f", Parameters: []byte(schema)}}, Calls: []middleware.ToolCall{{Name: "f", Arguments: arguments}}})
		}
	}
	require.NotEmpty(t, concluded)
	recordedtest.Each(t, func(l recorded.Line, turns []recorded.Turn) {
		if l.N%8 == 0 { // the slow way is slow
			same(&turns[0])
		}
	})
	require.Greater(t, concluded[true], 7_000)
	require.Greater(t, concluded[false], 60)
}
