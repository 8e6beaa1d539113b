package mend_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

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

// TestLookingIsBounded: finding each place takes a walk through the arguments.
func TestLookingIsBounded(t *testing.T) {
	t.Parallel()
	for places, want := range map[int]bool{8: true, 9: false} {
		args := `{"pad": "` + strings.Repeat("x", 1_000_000) + `", "l": [` + repeated(places, func(int) string { return `"1"` }) + `]}`
		got, _, ok := mend.Arguments(input(t, properties(false, "pad", str, "l", ints), args, only(mend.Coerce)))
		require.Equal(t, want, ok, "%d faults in a megabyte", places)
		if ok {
			require.Contains(t, got, `[1, 1,`)
		}
	}
}
