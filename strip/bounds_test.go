package strip_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/strip"
)

// Very many removals in one array take linear time.
func TestManyRemovals(t *testing.T) {
	t.Parallel()
	const n = 150_000
	args := `{"a":[1` + strings.Repeat(",null", n) + `]}`
	got, removed, err := strip.JSON(args, nil, strip.All)
	require.NoError(t, err)
	require.Equal(t, `{"a":[1]}`, got)
	require.Len(t, removed, n)
	require.Equal(t, "/a/150000", removed[n-1].Pointer)
}
