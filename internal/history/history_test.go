package history_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
)

func call(id, name, args string) middleware.ToolCall {
	return middleware.ToolCall{ID: id, Name: name, Arguments: args}
}

func TestEcho(t *testing.T) {
	t.Parallel()
	tools := []middleware.Tool{{Name: "known tool.v1"}}
	for name, c := range map[string]struct{ sent, want middleware.ToolCall }{
		"an object stays":           {call("1", "a", ` {"b" : 1.0}`), call("1", "a", ` {"b" : 1.0}`)},
		"an array":                  {call("1", "a", `[1]`), call("1", "a", "{}")},
		"text":                      {call("1", "a", `"x"`), call("1", "a", "{}")},
		"nothing":                   {call("1", "a", ""), call("1", "a", "{}")},
		"cut off":                   {call("1", "a", `{"b": `), call("1", "a", "{}")},
		"two":                       {call("1", "a", `{} {}`), call("1", "a", "{}")},
		"not UTF-8":                 {call("1", "a", "{\"b\": \"\xff\"}"), call("1", "a", "{}")},
		"cut behind a member":       {call("1", "a", `{"b": 1.0, "c": [2], "d": "x`), call("1", "a", `{"b": 1.0, "c": [2]}`)},
		"a number that may go on":   {call("1", "a", `{"b": 1, "c": 3`), call("1", "a", `{"b": 1}`)},
		"broken behind a member":    {call("1", "a", `{"b": 1, "c": 3 "d": 4}`), call("1", "a", `{"b": 1}`)},
		"broken and repeated":       {call("1", "a", `{"b": 1, "c": 2, "b": 3, "d`), call("1", "a", `{"b": 1, "c": 2}`)},
		"more than 8 KiB":           {call("1", "a", `{"b": 1, "c": "`+strings.Repeat("x", 9000)+`", "d": 1`), call("1", "a", `{"b": 1}`)},
		"a declared name stays":     {call("1", "known tool.v1", "{}"), call("1", "known tool.v1", "{}")},
		"an undeclared one":         {call("1", "ls<|channel|>", "{}"), call("1", "ls__channel__", "{}")},
		"no name":                   {call("1", "", "{}"), call("1", "unnamed", "{}")},
		"a long one":                {call("1", strings.Repeat("n", 100), "{}"), call("1", strings.Repeat("n", 64), "{}")},
		"custom calls stay":         {middleware.ToolCall{Kind: middleware.KindCustom, Name: "p q", Arguments: "free"}, middleware.ToolCall{Kind: middleware.KindCustom, Name: "p q", Arguments: "free"}},
		"foreign calls stay":        {middleware.ToolCall{Kind: middleware.KindBuiltin, Name: "c"}, middleware.ToolCall{Kind: middleware.KindBuiltin, Name: "c"}},
		"duplicate keys are no bar": {call("1", "a", `{"b": 1, "b": 2}`), call("1", "a", `{"b": 1, "b": 2}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			native := &middleware.Native{Dialect: "d", Raw: "r"}
			m := middleware.Assistant("text", c.sent)
			m.Native = native
			before := m.Clone()
			echo := history.Echo(m, tools)
			require.Equal(t, []middleware.ToolCall{c.want}, echo.ToolCalls)
			require.Equal(t, "text", echo.Text())
			require.Same(t, native, echo.Native)
			require.Equal(t, before, m, "the message itself is not changed")
		})
	}
}

// What is sent back of a message is bounded; ordinary calls stay whole.
func TestEchoIsBounded(t *testing.T) {
	t.Parallel()
	large := `{"a":1,"b":"` + strings.Repeat("x", 600<<10) + `"}`
	m := middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "t", Arguments: large}, middleware.ToolCall{ID: "2", Name: "t", Arguments: large},
		middleware.ToolCall{ID: "3", Name: "t", Arguments: `{"c":2}`})
	echo := history.Echo(m, nil)
	require.Equal(t, large, echo.ToolCalls[0].Arguments)
	require.Equal(t, `{"a":1}`, echo.ToolCalls[1].Arguments)
	require.Equal(t, `{"c":2}`, echo.ToolCalls[2].Arguments)
}

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
		for _, turn := range history.Recent(turns, limit) {
			got += turn[0].ToolCalls[0].Name
		}
		require.Equal(t, want, got, "limit %d", limit)
	}
	require.Empty(t, history.Recent(nil, 10))
}

// TestEchoOfLongText: what is sent back of a message's text is bounded.
func TestEchoOfLongText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 1<<20)
	m := middleware.Message{Role: middleware.RoleAssistant, Parts: []middleware.Part{
		{Kind: middleware.PartReasoning, Text: long}, {Text: "short"}, {Text: long}, {Text: long}}}
	echo := history.Echo(m, nil)
	require.Equal(t, m.Parts[:2], echo.Parts[:2], "reasoning is signed")
	require.LessOrEqual(t, len(echo.Text()), 64<<10+2*len("…"))
	require.Greater(t, len(echo.Text()), 60<<10)
	require.True(t, utf8.ValidString(echo.Text()))
	require.Len(t, m.Parts[2].Text, 2<<20, "the message itself is not changed")
}
