package mend_test

import (
	"strings"
	"testing"

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
