package mend_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// repeated joins what f makes of 0, 1, … n-1.
func repeated(n int, f func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ", ")
}

// at returns an issue of that code at each of n pointers.
func at(code string, n int, pointer func(int) string) []middleware.Issue {
	issues := make([]middleware.Issue, n)
	for i := range issues {
		issues[i] = middleware.Issue{Code: code, Pointer: pointer(i)}
	}
	return issues
}

// TestCost has schemas and arguments that make the names and values which the
// rules compare many, or long. What was quadratic took seconds or minutes.
// Validation, which finds the same faults again, costs nothing here.
func TestCost(t *testing.T) {
	const most = 30 * time.Second // also on a machine under load; what is not bounded takes hours
	enum := `{"enum": [` + repeated(90_000, func(i int) string { return fmt.Sprintf(`"v%06d"`, i) }) + `]}`
	declared := func(n int) string {
		return repeated(n, func(i int) string { return fmt.Sprintf(`"name_%05d": {}`, i) })
	}
	long := `"` + strings.Repeat("Ab_", 100_000)
	stray := func(i int) string { return fmt.Sprintf("nome_%05dx", i) }
	strays := func(n int) string { return repeated(n, func(i int) string { return `"` + stray(i) + `": 1` }) }
	worded := strings.Repeat("a_", 120)
	for _, c := range []struct {
		name, params, args string
		issues             []middleware.Issue
	}{
		{"a long string for one of many values", `{"properties": {"a": ` + enum + `}}`, `{"a": "` + strings.Repeat("V", 200_000) + `"}`,
			at("enum", 1, func(int) string { return "/a" })},
		{"a wrong type for one of many values", `{"properties": {"a": ` + enum + `}}`, `{"a": "` + strings.Repeat("V", 200_000) + `"}`,
			at("type", 1, func(int) string { return "/a" })},
		{"many strings for one of many values", `{"items": ` + enum + `}`, `[` + repeated(500, func(int) string { return `"V"` }) + `]`,
			at("enum", 500, func(i int) string { return fmt.Sprint("/", i) })},
		{"two long keys", `{"properties": {` + declared(2000) + `}}`, "{" + long + `1": 1, ` + long + `2": 1}`,
			at("additionalProperties", 2, func(i int) string { return fmt.Sprint("/", long[1:], i+1) })},
		{"long names", `{"properties": {` + long + `1": 1, ` + long + `2": 1}}`, `{` + strays(500) + `}`,
			at("additionalProperties", 500, func(i int) string { return "/" + stray(i) })},
		{"many keys for many names", `{"properties": {` + declared(40_000) + `}}`, `{` + strays(500) + `}`,
			at("additionalProperties", 500, func(i int) string { return "/" + stray(i) })},
		{"many keys for many missing names", `{"properties": {` + declared(20_000) + `}, "required": [` +
			repeated(20_000, func(i int) string { return fmt.Sprintf(`"name_%05d"`, i) }) + `]}`, `{` + strays(800) + `}`,
			at("required", 500, func(i int) string { return fmt.Sprintf("/name_%05d", i) })},
		{"as many keys as names", `{"properties": {` + declared(40_000) + `}}`, `{` + strays(40_000) + `}`,
			at("additionalProperties", 8, func(i int) string { return "/" + stray(i) })},
		{"names of many words", `{"properties": {` + repeated(4000, func(i int) string { return fmt.Sprintf(`"%s%d": {}`, worded, i) }) + `}}`,
			`{` + repeated(60, func(i int) string { return fmt.Sprintf(`"%sb%d": {}`, worded, i) }) + `}`,
			at("additionalProperties", 60, func(i int) string { return fmt.Sprintf("/%sb%d", worded, i) })},
		{"values for objects of many names", `{"items": {"type": "object", "properties": {` + declared(40_000) + `}}}`,
			`[` + repeated(500, func(int) string { return "1" }) + `]`, at("type", 500, func(i int) string { return fmt.Sprint("/", i) })},
		{"values below a union of many objects", `{"properties": {"o": {"anyOf": [` + repeated(2000, func(i int) string {
			return fmt.Sprintf(`{"required": ["x"], "properties": {"a": {"anyOf": [{"type": "array"}, {"$ref": "#/properties/o/anyOf/%d"}]}}}`, i)
		}) + `]}}}`, `{"o": ` + strings.Repeat(`{"a": `, 60) + `[` + repeated(60, func(int) string { return `"[]"` }) + `]` + strings.Repeat(`}`, 60) + `}`,
			at("anyOf", 1, func(int) string { return "/o" })},
		{"a value for one of many schemas", `{"properties": {"a": {"anyOf": [` + repeated(80_000, func(int) string { return `{}` }) + `]}}}`,
			`{"a": "1"}`, at("anyOf", 1, func(int) string { return "/a" })},
	} {
		for _, rules := range [][]mend.Rule{mend.Default(), mend.All()} {
			in := mend.Input{
				Tool: middleware.Tool{Name: "tool", Parameters: []byte(c.params)}, Arguments: c.args, Issues: c.issues, Rules: rules,
				Validate: func(string) []middleware.Issue { return c.issues },
			}
			start := time.Now()
			mend.Arguments(in)
			took := time.Since(start)
			t.Logf("%-40s default %5v: %v", c.name, len(rules) == len(mend.Default()), took)
			require.Less(t, took, most, c.name)
		}
	}
}

// TestTooLongOrTooMany: what is past the bounds stays as it is, and what is
// just inside them does not.
func TestTooLongOrTooMany(t *testing.T) {
	t.Parallel()
	mended := func(params, args string) (string, bool) {
		got, _, ok := mend.Arguments(input(t, params, args, mend.All()))
		return got, ok
	}
	for length, want := range map[int]bool{256: true, 257: false} {
		name := strings.Repeat("a", length)
		got, ok := mended(properties(true, name+"!", str), `{"`+strings.ToUpper(name)+`": "x"}`)
		require.Equal(t, want, ok, "a key of %d bytes", length)
		if ok {
			require.Equal(t, `{"`+name+`": "x"}`, got)
		}
	}
	for length, want := range map[int]bool{512: true, 513: false} {
		value := strings.Repeat("a", length)
		got, ok := mended(properties(true, "v!", `{"enum": ["`+value+`", "b"]}`), `{"v": "`+strings.ToUpper(value)+`"}`)
		require.Equal(t, want, ok, "a value of %d bytes", length)
		if ok {
			require.Equal(t, `{"v": "`+value+`"}`, got)
		}
	}
	for names, want := range map[int]bool{100: true, 2900: false} { // not dropped where nobody knows whether it is misspelled
		var declared []string
		for i := range names {
			declared = append(declared, fmt.Sprintf("%s%04d", strings.Repeat("zy", 50), i), str)
		}
		_, ok := mended(properties(true, declared...), `{"`+strings.Repeat("abc_", 14)+`": "x"}`)
		require.Equal(t, want, ok, "%d names", names)
	}
}
