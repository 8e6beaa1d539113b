package mend_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// A repair of the type is not tried without where the schema surely wants it:
// eight of them took nine validations.
func TestNeededRepairsAreValidatedOnce(t *testing.T) {
	t.Parallel()
	var properties, members []string
	for i := range 8 {
		properties = append(properties, fmt.Sprintf(`"c%d":{"type":"integer"}`, i))
		members = append(members, fmt.Sprintf(`"c%d":"%d"`, i, i))
	}
	for name, c := range map[string]struct {
		schema, args string
		validations  int
	}{
		"in the object":     {`{"properties":{` + strings.Join(properties, ",") + `}}`, `{` + strings.Join(members, ",") + `}`, 1},
		"in an element":     {`{"properties":{"l":{"type":"array","items":{"properties":{` + strings.Join(properties, ",") + `}}}}}`, `{"l":[{` + strings.Join(members, ",") + `}]}`, 1},
		"below a reference": {`{"$ref":"#/$defs/o","$defs":{"o":{"properties":{` + strings.Join(properties, ",") + `}}}}`, `{` + strings.Join(members, ",") + `}`, 9},
		"in a branch":       {`{"allOf":[{"properties":{` + strings.Join(properties, ",") + `}}]}`, `{` + strings.Join(members, ",") + `}`, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled, err := schema.Compile([]byte(c.schema), schema.Options{})
			require.NoError(t, err)
			count := -1 // the first one is the test's
			validate := func(args string) []middleware.Issue {
				count++
				doc, err := rawjson.Parse(args, rawjson.Limits{})
				require.NoError(t, err)
				return compiled.Validate(doc.Root())
			}
			_, changes, ok := mend.Arguments(mend.Input{Tool: middleware.Tool{Parameters: []byte(c.schema)}, Arguments: c.args, Issues: validate(c.args), Validate: validate})
			require.True(t, ok)
			require.Len(t, changes, 8)
			require.Equal(t, c.validations, count)
		})
	}
}

// Arguments that no rule has an answer to are not read.
func TestNothingToRepair(t *testing.T) {
	in := mend.Input{Arguments: `{"a":[` + strings.Repeat("1,", 100_000) + `1]}`, Issues: []middleware.Issue{{Code: "unchecked"}}, Rules: mend.All()}
	require.Less(t, testing.AllocsPerRun(3, func() { mend.Arguments(in) }), 5.0)
}

// A string with a million control characters becomes a few edits. The result
// is the same as that of an edit for each.
func TestManyControlCharacters(t *testing.T) {
	repair := func(text string) (string, []middleware.Change) {
		fixed, changes, ok := mend.Arguments(mend.Input{Arguments: text, Issues: []middleware.Issue{{Code: "syntax"}},
			Validate: func(string) []middleware.Issue { return nil }})
		require.True(t, ok)
		return fixed, changes
	}
	for _, n := range []int{1, 8, 16, 17, 18, 100} {
		text := `{"a":"x` + strings.Repeat("\n\\'\té\x01\\n", n) + `","b":"` + strings.Repeat("\r", n) + `"}`
		fixed, _ := repair(text)
		var got map[string]string
		require.NoError(t, json.Unmarshal([]byte(fixed), &got))
		require.Equal(t, map[string]string{"a": "x" + strings.Repeat("\n'\té\x01\n", n), "b": strings.Repeat("\r", n)}, got)
	}
	text := `{"a":"` + strings.Repeat("x\n", 200_000) + `"}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, changes := repair(text)
	runtime.ReadMemStats(&after)
	require.Len(t, changes, 1)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(30*len(text)), "bytes allocated")
}
