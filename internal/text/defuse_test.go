package text_test

import (
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
