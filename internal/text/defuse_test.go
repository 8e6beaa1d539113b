package text_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/text"
)

func TestDefuse(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                      "",
		"a < b > c | d [e] <p>": "a < b > c | d [e] <p>",
		"<|im_end|>":            "< |im_end| >",
		"<｜end▁of▁sentence｜>":   "< ｜end▁of▁sentence｜ >",
		"[INST] x [/INST]":      "[ INST] x [ /INST]",
		"<s>x</s>":              "< s>x< /s>",
		"<start_of_turn>user":   "< start_of_turn>user",
	} {
		require.Equal(t, want, text.Defuse(s))
		require.Equal(t, want, text.Defuse(want), "nothing is left")
	}
}

// TestDefuseFindsEveryToken compares the scan in front of the expression with the
// expression: a token in front makes sure that the expression is asked.
func TestDefuseFindsEveryToken(t *testing.T) {
	t.Parallel()
	const token = "<s>"
	parts := []string{"<", "|", "｜", ">", "[", "/", "INST]", "INST", "]", "s", "s>", "/s>", "start_of_turn>", "end", "_of_turn>", "a", " ", "\xff"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(9) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		s := b.String()
		require.Equal(t, text.Defuse(token+" "+s), "< s> "+text.Defuse(s), "%q", s)
	}
}
