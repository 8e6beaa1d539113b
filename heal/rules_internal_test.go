package heal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A refusal is known by a fixed text near its beginning, and not by what it quotes.
func TestTexts(t *testing.T) {
	t.Parallel()
	refuses := texts(`call \d+ has no result`, "(?i:no call)")
	for said, want := range map[string]bool{
		"call 7 has no result":                                  true,
		"messages.3: No Call for this result":                   true,
		"call x has no result":                                  false,
		strings.Repeat("ü", 200) + "no call":                    true,
		strings.Repeat("ü", 201) + "no call":                    false,
		`the prompt "no call" was refused`:                      false,
		"the prompt “no call” was refused":                      false,
		`no call for "a": its text says "call 7 has no result"`: true,
	} {
		require.Equal(t, want, refuses(said), said)
	}
	for r, row := range rows { // the patterns are compiled when they are needed first
		require.True(t, row.refuses == nil && Rule(r) == Arguments || !row.refuses(""), Rule(r))
	}
}
