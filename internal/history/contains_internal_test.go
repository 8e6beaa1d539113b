package history

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestContains: contains is strings.Contains.
func TestContains(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"", ""}, {"a", ""}, {"", "a"}, {"a1", "1"}, {"1", "a1"}, {"xa1", "a1"}, {"11", "a1"}, {"A1", "1A"}, {strings.Repeat("a", 200), strings.Repeat("a", 100)}, {"1a1b", "1b"}} {
		require.Equal(t, strings.Contains(c[0], c[1]), contains(c[0], c[1]), "%q", c)
	}
	text := rapid.StringOfN(rapid.SampledFrom([]rune("aA1")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		in, word := text.Draw(t, "in"), text.Draw(t, "word")
		if len(word) > 3 {
			word = word[:3]
		}
		require.Equal(t, strings.Contains(in, word), contains(in, word))
	})
}
