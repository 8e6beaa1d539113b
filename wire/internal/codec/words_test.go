package codec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestMayHold(t *testing.T) {
	t.Parallel()
	utf16 := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			b.Write([]byte{c, 0})
		}
		return b.String()
	}
	found := map[string]string{
		"plain":                      `{"tool_calls":[]}`,
		"upper case":                 `{"TOOL_CALLS":[]}`,
		"escapes":                    `{"\u0074ool\u005fcall\u0073":[]}`,
		"escapes of upper case":      `{"\u0054ool_\u0043alls":[]}`,
		"the long s":                 "{\"tool_call\u017f\":[]}",
		"the long s as an escape":    `{"tool_call\u017F":[]}`,
		"UTF-16":                     utf16(`{"tool_calls":[]}`),
		"UTF-32":                     utf16(utf16(`{"tool_calls":[]}`)),
		"beside invalid UTF-8":       "\xff\xc5tool_calls\xe2",
		"over the edge of a window":  strings.Repeat("x", 32<<10-5) + "tool_calls",
		"over the edge, with length": strings.Repeat("x", 64<<10-14) + "tool_calls",
	}
	for name, body := range found {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.True(t, codec.MayHold([]byte(body), "nothing", "tool_calls"))
		})
	}
	for _, body := range []string{"", `{"content":"hi"}`, "tool_call", `tool\u_calls`, `tool\u00_calls`, "tool\u0160_calls", "to\\u4141ol_calls"} {
		require.False(t, codec.MayHold([]byte(body), "tool_calls"), body)
	}
	require.True(t, codec.MayHold([]byte("\u212aey \\u212aey"), "key"))
}

func BenchmarkMayHold(b *testing.B) {
	body := []byte(strings.Repeat(`{"content":"some text of an answer"},`, 30_000))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if codec.MayHold(body, "tool_calls", "function_call") {
			b.Fatal("found")
		}
	}
}

func TestStatusOf(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"": 0, "rate": 0, "429": 429, "399": 0, "600": 0, "400": 400, "599": 599} {
		require.Equal(t, want, codec.StatusOf(code), code)
	}
}
