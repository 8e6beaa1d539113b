package batch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
)

func TestKnown(t *testing.T) {
	t.Parallel()
	require.True(t, batch.ReissueAll.Known())
	require.True(t, batch.KeepValid.Known())
	require.False(t, batch.Policy(3).Known())
}
