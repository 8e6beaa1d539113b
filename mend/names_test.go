package mend_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mend"
)

func TestName(t *testing.T) {
	t.Parallel()
	tools := []string{"ls", "get_weather", "sports.team-roster", "Search", "a_b", "a.b", "math_sin"}
	for sent, want := range map[string]string{
		"ls<|channel|>commentary":                    "ls",
		"ls<|channel|>":                              "ls",
		"get_weather <|constrain|>json":              "get_weather",
		"functions.ls":                               "ls",
		"tool.get_weather":                           "get_weather",
		"functions.get_weather<|channel|>commentary": "get_weather",
		"default_api:ls":                             "ls",
		"server/search":                              "Search",
		"  `ls`\n":                                   "ls",
		`"get_weather"`:                              "get_weather",
		"getWeather":                                 "get_weather",
		"GET-WEATHER":                                "get_weather",
		"sports_team_roster":                         "sports.team-roster",
		"search":                                     "Search",
		"math.sin":                                   "math_sin",

		"ls -l":                 "",
		"get_the_weather":       "",
		"get_weathe":            "",
		"ls()":                  "",
		"ab":                    "", // two tools
		"A_B":                   "",
		"":                      "",
		"<|channel|>commentary": "",
		"...":                   "",
		"_":                     "",
		"ls":                    "", // is available
		"a_b":                   "",
		"ls.unknown":            "",
		strings.Repeat("functions.", 200_000) + "ls": "",
	} {
		got, ok := mend.Name(sent, tools)
		require.Equal(t, want, got, "%.40q", sent)
		require.Equal(t, want != "", ok, "%.40q", sent)
	}
	_, ok := mend.Name("ls", nil)
	require.False(t, ok)
}

// Names longer than any tool could have are no variant; each is read once.
func TestNameIsBounded(t *testing.T) {
	long := strings.Repeat("a", 512)
	got, ok := mend.Name(strings.ToUpper(long), []string{long})
	require.True(t, ok)
	require.Equal(t, long, got)
	_, ok = mend.Name(strings.ToUpper(long), []string{long[:256] + "_" + long[256:]})
	require.False(t, ok, "513 bytes")
	_, ok = mend.Name("a.b.c.", []string{""})
	require.False(t, ok, "an empty name is none")

	available := []string{"A", strings.Repeat("x_", 10<<20)}
	require.Less(t, testing.AllocsPerRun(10, func() { mend.Name("p.q.r.a", available) }), 20.0)
	start := time.Now()
	for range 100 {
		mend.Name("p.q.r.a", available)
	}
	require.Less(t, time.Since(start), time.Second)
}
