package schema_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
	"github.com/toolmend/toolmend/middleware"
)

// allocated returns the bytes that f allocates, less what others allocate
// beside it: the least of a few runs.
func allocated(f func()) uint64 {
	least := ^uint64(0)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

func quotedNames(n int, name func(i int) string) string {
	names := make([]string, n)
	for i := range names {
		names[i] = rawjson.Quote(name(i))
	}
	return "[" + strings.Join(names, ",") + "]"
}

func validate(t *testing.T, text, args string) (func(), *[]middleware.Issue) {
	t.Helper()
	s, err := schema.Compile([]byte(text), schema.Options{})
	require.NoError(t, err)
	doc, err := rawjson.Parse(args, rawjson.Limits{})
	require.NoError(t, err)
	issues := new([]middleware.Issue)
	return func() { *issues = s.Validate(doc.Root()) }, issues
}

// No more issues are made than are returned.
func TestMissingNamesAreBounded(t *testing.T) {
	const n = 60_000
	run, issues := validate(t, `{"type":"object","required":`+quotedNames(n, func(i int) string { return fmt.Sprintf("name %d", i) })+`}`, `{}`)
	bytes := allocated(run)
	require.Len(t, *issues, schema.MaxIssues)
	require.Equal(t, "required", (*issues)[0].Code)
	require.Less(t, bytes, uint64(n*300), "bytes allocated")
}

// The pointers of a thousand issues below one long key take a bounded part of
// memory each.
func TestPointersOfIssuesAreBounded(t *testing.T) {
	key := strings.Repeat("k", 500_000)
	names := quotedNames(1000, func(i int) string { return fmt.Sprintf("name%d", i) })
	unknown := make([]string, 1000)
	for i := range unknown {
		unknown[i] = fmt.Sprintf(`"u%d":1`, i)
	}
	for name, c := range map[string]struct{ schema, args, ends string }{
		"missing": {`{"additionalProperties":{"required":` + names + `}}`, `{"` + key + `":{}}`, "/name0"},
		"unknown": {`{"additionalProperties":{"properties":{"a":{}},"additionalProperties":false}}`, `{"` + key + `":{` + strings.Join(unknown, ",") + `}}`, "/u0"},
	} {
		t.Run(name, func(t *testing.T) {
			run, issues := validate(t, c.schema, c.args)
			bytes := allocated(run)
			require.Len(t, *issues, 1000)
			for _, i := range *issues {
				require.LessOrEqual(t, len(i.Pointer), rawjson.MaxPointer)
				require.Contains(t, i.Pointer, "…")
			}
			require.True(t, slices.ContainsFunc(*issues, func(i middleware.Issue) bool { return strings.HasSuffix(i.Pointer, c.ends) }), "the name is not cut")
			require.Less(t, bytes, uint64(32*len(c.args)), "bytes allocated")
		})
	}
	t.Run("undeclared", func(t *testing.T) {
		root, err := rawjson.Parse(`{"additionalProperties":{"properties":{"a":{}}}}`, rawjson.Limits{})
		require.NoError(t, err)
		args, err := rawjson.Parse(`{"`+key+`":{`+strings.Join(unknown, ",")+`}}`, rawjson.Limits{})
		require.NoError(t, err)
		var issues []middleware.Issue
		bytes := allocated(func() { issues = schema.Undeclared(view.New(root), args.Root(), "undeclared") })
		require.Len(t, issues, 1000)
		require.Less(t, bytes, uint64(8*len(key)), "bytes allocated")
	})
}

// A schema that many properties refer to is put into words once.
func TestReferredSchemasAreReadOnce(t *testing.T) {
	properties := func(n int) string {
		members := make([]string, n)
		for i := range members {
			members[i] = fmt.Sprintf(`"name%d":{"$ref":"#/$defs/d"}`, i)
		}
		return `{"properties":{` + strings.Join(members, ",") + `},"required":` + quotedNames(n, func(i int) string { return fmt.Sprintf("name%d", i) }) +
			`,"$defs":{"d":{"enum":` + longEnum(5000) + `}}}`
	}
	few, _ := validate(t, properties(10), `{}`)
	many, issues := validate(t, properties(500), `{}`)
	require.Less(t, allocated(many), 20*allocated(few), "50 times the properties")
	require.Len(t, *issues, 500)
	require.Contains(t, (*issues)[0].Message, "wanted: one of")
}

// The values of an enum are read once, not for each invalid call.
func TestEnumsAreReadOnce(t *testing.T) {
	run, issues := validate(t, `{"properties":{"a":{"enum":`+longEnum(20_000)+`}}}`, `{"a":"value"}`)
	first := allocated(run)
	require.Contains(t, (*issues)[0].Message, "wanted one of")
	require.Less(t, first, uint64(20_000*120), "bytes allocated")
}

// The calls of one message share a number of issues; each still gets a few.
func TestIssuesAreShared(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(`{"required":`+quotedNames(300, func(i int) string { return fmt.Sprintf("name%d", i) })+`}`), schema.Options{})
	require.NoError(t, err)
	doc, err := rawjson.Parse(`{}`, rawjson.Limits{})
	require.NoError(t, err)
	left := &schema.Budget{Work: 1250, Issues: 400}
	var made []int
	for range 4 {
		made = append(made, len(s.ValidateWithin(t.Context(), doc.Root(), left)))
	}
	require.Equal(t, []int{300, 100, 50, 1}, made, "the last one is unchecked")
	require.Len(t, s.Validate(doc.Root()), 300)
}

// TestSuggestionsShareABudget: the values of one message have suggestions until they have compared
// what a budget allows.
func TestSuggestionsShareABudget(t *testing.T) {
	t.Parallel()
	var values []string
	for i := range 4000 {
		values = append(values, fmt.Sprintf(`"value_%04d"`, i))
	}
	s, err := schema.Compile([]byte(`{"enum": [`+strings.Join(values, ",")+`]}`), schema.Options{})
	require.NoError(t, err)
	doc, err := rawjson.Parse(`"value-0007"`, rawjson.Limits{})
	require.NoError(t, err)
	left := schema.NewBudget(0)
	suggested := 0
	for range 200 {
		issues := s.ValidateWithin(t.Context(), doc.Root(), &left)
		require.Len(t, issues, 1)
		if strings.Contains(issues[0].Message, `did you mean "value_0007"?`) {
			suggested++
		}
	}
	require.Greater(t, suggested, 8)
	require.Less(t, suggested, 100)
}
