package mend_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// TestBelowAUnion: validation says which objects are allowed, not what is wrong
// inside of the one that was sent.
func TestBelowAUnion(t *testing.T) {
	t.Parallel()
	union := func(a, b string) string {
		return properties(true, "o!", `{"anyOf": [`+a+`, `+b+`]}`)
	}
	other := properties(false, "other!", integer)
	check(t, only(mend.Unwrap, mend.Coerce), []row{
		{name: "a list", params: union(properties(false, "l!", strs), other), args: `{"o": {"l": "[\"x\"]"}}`, want: `{"o": {"l": ["x"]}}`},
		{name: "and what it holds", params: union(properties(false, "l!", ints), other), args: `{"o": {"l": "[\"1\"]"}}`, want: `{"o": {"l": [1]}}`},
		{name: "two values", params: union(properties(false, "l!", strs, "n!", integer), other), args: `{"o": {"l": "[]", "n": "5"}}`, want: `{"o": {"l": [], "n": 5}}`},

		{name: "one branch has a string there", params: union(properties(false, "l!", strs, "a!", str), properties(false, "l!", str, "b!", str)), args: `{"o": {"l": "[]"}}`},
		{name: "either of two values would do", params: union(properties(true, "l!", strs, "n", `{}`), properties(true, "l", `{}`, "n!", integer)), args: `{"o": {"l": "[]", "n": "5"}}`},
		{name: "each of two values makes it valid", params: union(properties(false, "l!", strs), properties(false, "n!", integer)), args: `{"o": {"l": "[]", "n": "5"}}`},
		{name: "each of two values makes it valid, once what it holds is fixed", params: union(properties(false, "l!", ints), properties(false, "m!", ints)),
			args: `{"o": {"l": "[\"1\"]", "m": "[\"2\"]"}}`},
		{name: "a value that nothing fixes", params: union(properties(false, "l!", strs, "n", integer), other), args: `{"o": {"l": "[]", "n": "many"}}`},
	})
}

// TestHostile has arguments of almost a megabyte that give the rules as much to do as
// they can. Validation is not counted: its bounds are its own.
func TestHostile(t *testing.T) {
	const size = 1<<20 - 1<<12
	manyKeys := func(value string) string {
		var b strings.Builder
		for i := 0; b.Len() < size-100; i++ {
			b.WriteString(`"k` + strings.Repeat("x", i%50) + strings.Repeat("y", i%7) + `": ` + value + ", ")
		}
		return "{" + b.String() + `"z": 1}`
	}
	closed := properties(true, "kx!", str, "ky", str, "a", ints)
	for name, args := range map[string]string{
		"a long list":   `{"a": [` + strings.Repeat(`"1", `, size/5) + `"1"]}`,
		"many keys":     manyKeys(`"v"`),
		"nested values": `{"a": ` + strings.Repeat(`[`, 60) + strings.Repeat(`"1",`, size/4) + `1` + strings.Repeat(`]`, 60) + `}`,
		"a long text":   `{"a": "[` + strings.Repeat("'x', ", size/5) + `]"}`,
		"Python":        `{'a': [` + strings.Repeat(`'1', None, `, size/11) + `]}`,
		"a long number": `{"a": [` + strings.Repeat("1", size) + `]}`,
	} {
		in := input(t, closed, args, mend.All())
		validate := in.Validate
		var validating time.Duration
		in.Validate = func(args string) []middleware.Issue {
			start := time.Now()
			defer func() { validating += time.Since(start) }()
			return validate(args)
		}
		start := time.Now()
		mend.Arguments(in)
		own := time.Since(start) - validating
		t.Logf("%s: %d issues, %v, and %v of validation", name, len(in.Issues), own, validating)
		require.Less(t, own, 3*time.Second, name)
	}
}

// TestOutOfBudgetIsAGuess: a result counts only if there was time to see that
// no smaller one is valid. Large arguments have eight candidates.
func TestOutOfBudgetIsAGuess(t *testing.T) {
	t.Parallel()
	for places, want := range map[int]bool{6: true, 8: false} {
		pad := strings.Repeat("x", 700_000)
		args := `{"pad": "` + pad + `"` + `, ` + repeated(places, func(i int) string { return fmt.Sprintf(`"p%d": "1"`, i) }) + `}`
		issues := at("type", places, func(i int) string { return fmt.Sprint("/p", i) })
		count := 0
		got, _, ok := mend.Arguments(mend.Input{Arguments: args, Issues: issues, Rules: only(mend.Coerce), Validate: func(args string) []middleware.Issue {
			if count++; strings.Contains(args, `: "1"`) {
				return issues
			}
			return nil
		}})
		require.LessOrEqual(t, count, 8)
		require.Equal(t, want, ok, "%d places, without each of which the call has to be seen invalid", places)
		if ok {
			require.NotContains(t, got, `"1"`)
		}
	}
}

// TestWalkingIsBounded: the fix of a key reads all members of its object.
func TestWalkingIsBounded(t *testing.T) {
	t.Parallel()
	for places, want := range map[int]bool{256: true, 257: false} {
		member := func(from int, value string) func(int) string {
			return func(i int) string { return fmt.Sprintf(`"p%d": %s`, from+i, value) }
		}
		args := `{` + repeated(places, member(0, `"1"`)) + `, ` + repeated(4096-places, member(places, `1`)) + `}`
		_, _, ok := mend.Arguments(input(t, `{"type": "object", "additionalProperties": {"type": "integer"}}`, args, only(mend.Coerce)))
		require.Equal(t, want, ok, "%d faults in an object of 4,096 members", places)
	}
}

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
