package batch_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

func TestRecent(t *testing.T) {
	t.Parallel()
	turn := func(name string, size int) []middleware.Message { // of size bytes
		half := size / 2
		return []middleware.Message{middleware.Assistant("", middleware.ToolCall{Name: name, Arguments: strings.Repeat("a", half-1)}),
			middleware.ToolReply(middleware.ToolCall{}, strings.Repeat("b", size-half))}
	}
	turns := [][]middleware.Message{turn("1", 100), turn("2", 50), turn("3", 60)}
	for limit, want := range map[int]string{0: "3", 59: "3", 109: "3", 110: "23", 209: "23", 210: "123", 1000: "123"} {
		got := ""
		for _, turn := range batch.Recent(turns, limit) {
			got += turn[0].ToolCalls[0].Name
		}
		require.Equal(t, want, got, "limit %d", limit)
	}
	require.Empty(t, batch.Recent(nil, 10))
}

// TestEchoOfLongText: what is sent back of a message's text is bounded.
func TestEchoOfLongText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 1<<20)
	m := middleware.Message{Role: middleware.RoleAssistant, Parts: []middleware.Part{
		{Kind: middleware.PartReasoning, Text: long}, {Text: "short"}, {Text: long}, {Text: long}}}
	echo := batch.Echo(m, nil)
	require.Equal(t, m.Parts[:2], echo.Parts[:2], "reasoning is signed")
	require.LessOrEqual(t, len(echo.Text()), 64<<10+2*len("…"))
	require.Greater(t, len(echo.Text()), 60<<10)
	require.True(t, utf8.ValidString(echo.Text()))
	require.Len(t, m.Parts[2].Text, 2<<20, "the message itself is not changed")
}
