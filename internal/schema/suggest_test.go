package schema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/schema"
)

func TestSuggestTool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, candidates, want string }{
		{"nope", "computer", ""},
		{"create_file", "delete_file", ""},
		{"a", "bash", ""},
		{"get_time", "get_weather", ""},

		{"get_wether", "get_weather get_time", "get_weather"},
		{"getWeather", "get_weather2 get_weather", "get_weather"},
		{"GET.WEATHER", "get_weather", "get_weather"},
		{"search", "search_web", "search_web"},
		{"search_the_web_now", "search_web search_the_web", "search_the_web"},
		{"weather", "get_weather", "get_weather"},
		{"search", "search_all_of_the_web", ""}, // less than half of it
		{"run", "run_it", ""},                   // fewer than four characters
		{"ls", "LS", "LS"},
		{"set_weather", "get_weather", ""}, // another first letter, but Jaro 0.93
		{"weather_get", "get_weather", ""},
		{"größe", "GRÖSSE GRÖẞE", "GRÖẞE"},
		{"_", "- _", ""},
		{"", "bash", ""},
		{strings.Repeat("a", 129), strings.Repeat("a", 129), ""},
		{strings.Repeat("a", 127), strings.Repeat("a", 129), ""},
		{"read_file", "Read-File read.file", "Read-File"},
	} {
		require.Equal(t, c.want, schema.SuggestTool(c.name, strings.Fields(c.candidates)), "%.40s", c.name)
	}
	require.Empty(t, schema.SuggestTool("bash", nil))
}

// Names that are as long and as alike as they can be.
func TestSuggestToolIsBounded(t *testing.T) {
	const most = 500 * time.Millisecond // 20 times what it takes, with -race too
	for name, c := range map[string]struct {
		of     string
		suffix string
	}{
		"all alike":     {strings.Repeat("ab", 62) + "abcd", "%04d"},
		"of one letter": {strings.Repeat("a", 127) + "b", "%04d"},
		"usual":         {"list_all_the_thinks", "%04d"},
	} {
		candidates := make([]string, 5000)
		for i := range candidates {
			candidates[i] = c.of[:min(len(c.of), 124)] + fmt.Sprintf(c.suffix, i)
		}
		start := time.Now()
		for range 10 {
			schema.SuggestTool(c.of, candidates)
		}
		took := time.Since(start) / 10
		t.Logf("%s: %v", name, took)
		require.Less(t, took, most, name)
	}
	far := append(make([]string, 0, 5001), candidatesOf(5000)...)
	require.Equal(t, "Wanted-Tool", schema.SuggestTool("wanted_tool", append(far, "Wanted-Tool")), "the last of many")
}

func candidatesOf(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("w%0126d", i)
	}
	return names
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		want string
	}{
		{"file_path", "path"}, {"patern", "pattern"}, {"lim", "limit"}, {"PATH", "path"}, {"query", ""}, {"", ""}, {"x", ""},
	} {
		require.Equal(t, c.want, schema.Suggest(c.name, []string{"path", "pattern", "limit"}), c.name)
	}
	require.Empty(t, schema.Suggest("query", []string{"path"}))
	require.Empty(t, schema.Suggest("name", nil))
	require.Equal(t, "ab", schema.Suggest("ab", []string{"AB", "ab"}[1:]), "the first of equals")
}
