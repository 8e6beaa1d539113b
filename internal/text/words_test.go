package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/text"
)

func TestWords(t *testing.T) {
	t.Parallel()
	words := text.Words{1: "slow", 2: "fast"}
	for constant, want := range map[uint8]string{0: "default", 1: "slow", 2: "fast", 3: "3"} {
		require.Equal(t, want, words.Of(constant))
	}
	var got uint8
	require.NoError(t, words.Parse([]byte("fast"), &got))
	require.Equal(t, uint8(2), got)
	for _, word := range []string{"", "default", "Fast"} {
		require.EqualError(t, words.Parse([]byte(word), &got), `must be one of "fast", "slow", got "`+word+`"`)
	}
	require.Equal(t, uint8(2), got)
}
