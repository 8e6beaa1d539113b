package argsvalidate_test

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
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

func anyTool(name string) middleware.Tool {
	return middleware.Tool{Name: name, Parameters: []byte(`{"type":"object"}`)}
}

// Issues for duplicate keys are bounded in number and in size: 412 KB of
// arguments took 2.3 GB, and a megabyte killed the process.
func TestDuplicateKeysBelowALongKey(t *testing.T) {
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	args := `{"` + strings.Repeat("k", 300_000) + `":[` + strings.Repeat(`{"a":1,"a":2},`, 7_000) + `{}]}`
	var verdicts []middleware.Verdict
	bytes := allocated(func() {
		verdicts, _ = v.Validate(t.Context(), []middleware.Tool{anyTool("t")}, middleware.ToolCall{ID: "1", Name: "t", Arguments: args})
	})
	issues := verdicts[0].Issues
	require.Len(t, issues, schema.MaxIssues)
	for _, i := range issues {
		require.Equal(t, "duplicate_key", i.Code)
		require.LessOrEqual(t, len(i.Pointer), rawjson.MaxPointer)
	}
	require.True(t, strings.HasSuffix(issues[999].Pointer, "/999/a"), "the end of the pointer stays")
	require.Contains(t, issues[0].Pointer, "…")
	require.Less(t, bytes, uint64(64*len(args)), "bytes allocated")
}

// The pointers of duplicates in an array take one walk through it, not one
// each: a megabyte took nine seconds.
func TestDuplicateKeysInALongArray(t *testing.T) {
	args := `{"z":[` + strings.Repeat("1,", 400_000) + strings.Repeat(`{"a":1,"a":2},`, 1_000) + `{}]}`
	single := strings.Replace(args, `"a":1,"a":2`, `"b":1,"a":2`, 999)
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	took := func(args string) time.Duration {
		return quickest(func() {
			_, err := v.Validate(t.Context(), []middleware.Tool{anyTool("t")}, middleware.ToolCall{ID: "1", Name: "t", Arguments: args})
			require.Error(t, err)
		})
	}
	require.Less(t, took(args), 5*took(single), "a thousand duplicates instead of one")
}

// quickest returns how long f takes at best, of a few runs.
func quickest(f func()) time.Duration {
	best := time.Hour
	for range 4 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

// Rules make a bounded number of issues with bounded pointers, in one walk.
func TestRulesOnManyValues(t *testing.T) {
	key := strings.Repeat("k", 200_000)
	args := `{"` + key + `":[` + strings.Repeat(`"x",`, 100_000) + `"x"]}`
	for name, rule := range map[string]argsvalidate.Rule{
		"FieldRule": argsvalidate.FieldRule[string]{Path: "/*/*", Valid: func(string) bool { return false }, Message: "no"},
		"Forbid":    argsvalidate.ForbidPattern(regexp.MustCompile("x"), "no"),
		"own": argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
			return make([]middleware.Issue, 50_000), nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			v := argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{rule, rule}})
			var verdicts []middleware.Verdict
			bytes := allocated(func() {
				verdicts, _ = v.Validate(t.Context(), []middleware.Tool{anyTool("t")}, middleware.ToolCall{ID: "1", Name: "t", Arguments: args})
			})
			require.Len(t, verdicts[0].Issues, schema.MaxIssues)
			for _, i := range verdicts[0].Issues {
				require.LessOrEqual(t, len(i.Pointer), rawjson.MaxPointer)
			}
			require.Less(t, bytes, uint64(100*len(args)), "bytes allocated")
		})
	}
}
