package mend_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/ratio"
	"github.com/toolmend/toolmend/mend"
)

// TestGrowth: the time to repair a fault in each of many elements grows with their number, not
// with its square. It is not parallel, because other tests would be measured too.
func TestGrowth(t *testing.T) {
	const (
		object = `{"type": "object", "properties": {"n": {"type": "integer"}, "kind": {"type": "string", "enum": ["red", "green"]}},
			"required": ["n"], "additionalProperties": false}`
		filled = `{"type": "object", "properties": {"n": {"type": "integer", "default": 1}}, "required": ["n"]}`
	)
	for name, c := range map[string]struct{ items, element string }{
		"wrong types":      {object, `{"n": "1", "kind": "red"}`},
		"values":           {object, `{"n": 1, "kind": "RED"}`},
		"keys":             {object, `{"N": 1}`},
		"undeclared keys":  {object, `{"n": 1, "qqqqqq": 1}`},
		"empty values":     {object, `{"n": 1, "kind": ""}`},
		"missing defaults": {filled, `{}`},
		"scalars":          {`{"type": "integer"}`, `"1"`},
	} {
		fastest := func(n int) time.Duration {
			in := input(t, `{"type": "object", "properties": {"all": {"type": "array", "items": `+c.items+`}}}`,
				`{"text": "`+strings.Repeat("a text ", 1000)+`", "all": [`+repeated(n, func(int) string { return c.element })+`]}`, mend.All())
			runs := 1000 / n
			best := time.Hour
			for range 5 {
				start := ratio.ProcessorTime()
				for range runs {
					_, changes, ok := mend.Arguments(in)
					require.True(t, ok, "%s: %d elements", name, n)
					require.Len(t, changes, n)
				}
				best = min(best, (ratio.ProcessorTime()-start)/time.Duration(runs))
			}
			return best
		}
		small, large := fastest(60), fastest(960)
		t.Logf("%s: %v, %v", name, small, large)
		require.Less(t, large, 64*small, "%s: 16 times as many elements", name)
	}
}

// TestLargeCall: a few faults in a large call are repaired.
func TestLargeCall(t *testing.T) {
	t.Parallel()
	element := func(id string) func(int) string {
		return func(int) string { return `{"id": ` + id + `, "text": "a text of some length"}` }
	}
	in := input(t, `{"type": "object", "properties": {"all": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}}}`,
		`{"all": [`+repeated(20_000, element("7"))+`, `+repeated(20, element(`"8"`))+`]}`, mend.Default())
	_, changes, ok := mend.Arguments(in)
	require.True(t, ok)
	require.Len(t, changes, 20)
	require.Equal(t, "/all/20000/id", changes[0].Pointer)
}
