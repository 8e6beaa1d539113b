package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/text"
)

func TestClip(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		n    int
		want string
	}{
		"short":                  {"abc", 3, "abc"},
		"long":                   {"abcdef", 5, "ab…"},
		"between two characters": {"aéé", 4, "a…"},
		"within a character":     {"ééé", 4, "…"},
		"only the ellipsis":      {"abcdef", 3, "…"},
		"no room":                {"abcdef", 2, ""},
		"empty":                  {"", 0, ""},
		"not UTF-8":              {"\x80\x80\x80\x80\x80", 4, "…"},
	} {
		got := text.Clip(c.in, c.n)
		require.Equal(t, c.want, got, name)
		require.LessOrEqual(t, len(got), c.n, name)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		require.Equal(t, want, text.Number(n))
	}
}

func TestPlural(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 calls", 1: "1 call", 2: "2 calls", 1000: "1,000 calls"} {
		require.Equal(t, want, text.Plural(n, "call"))
	}
}
