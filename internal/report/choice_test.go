package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
)

// A fault of a call as a whole has no place in the arguments.
func TestAtOfForbiddenCalls(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"tool_choice", "parallel_calls"} {
		require.Equal(t, "the call", report.At(code, ""))
	}
}
