package text_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/text"
)

func TestLabel(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"call_1":                  "call_1",
		"wétter":                  "wétter",
		"a\nb\x1b[31m\u202e":      `a\nb\u001b[31m\u202e`,
		"\xff":                    "\uFFFD",
		strings.Repeat("é", 1000): strings.Repeat("é", 64) + "…",
		"<|im_end|>":              text.Defuse("<|im_end|>"),
		"":                        "",
	} {
		require.Equal(t, want, text.Label(in))
	}
}
