package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPythonLiteral(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`'it\'s'`: `"it's"`, `"a\n\u00e9"`: `"a\né"`, `[1, 2.50, -3,]`: `[1,2.50,-3]`, `{'a': True, 'b': None,}`: `{"a":true,"b":null}`, `[]`: `[]`, `{}`: `{}`,
	} {
		v, ok := pythonLiteral(text)
		require.True(t, ok, text)
		b, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, want, string(b))
	}
	for _, text := range []string{``, `'a`, `[1`, `[1 2]`, `{'a'}`, `{1: 2}`, `1/6`, `name`, `1 2`, `'\q'`, `nan`, `{"a": 1`} {
		_, ok := pythonLiteral(text)
		require.False(t, ok, text)
	}
}

// TestSentLiteral: what a model sent is read without package mend.
func TestSentLiteral(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a": {"b": [1, "x"`: `{"a":{"b":[1,"x"]}}`, "{'a': 1, // b\n 'c': 2 # d\n}": `{"a":1,"c":2}`, `{"a": "// # {"}}`: `{"a":"// # {"}`,
		`{}{"a": 1}`: `{"a":1}`, `{a: 1, b": 2}`: `{"a":1,"b":2}`, `{"a": 1, "b": 2"}`: `{"a":1,"b":2}`, ` {} `: `{}`,
	} {
		v, ok := sentLiteral(text)
		require.True(t, ok, text)
		b, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, want, string(b), text)
	}
	for _, text := range []string{`{"a": "x`, `{"a": 1 2}`, `{"a": 1} and`, `{"a"`, `// x`, `{a}`} {
		_, ok := sentLiteral(text)
		require.False(t, ok, text)
	}
	require.Equal(t, map[string]any{"a": "b"}, sentArguments(`{}{"a": "b"`))
}

func TestPythonCall(t *testing.T) {
	t.Parallel()
	name, args, ok := pythonCall(`post(content='a, b (c)=d', tags=['#x', '#y'], n=1)`)
	require.True(t, ok)
	require.Equal(t, "post", name)
	require.Equal(t, map[string]any{"content": "a, b (c)=d", "tags": []any{"#x", "#y"}, "n": json.Number("1")}, args)
	_, args, ok = pythonCall(`ls()`)
	require.True(t, ok)
	require.Empty(t, args)
	for _, call := range []string{`ls`, `ls(`, `ls('a')`, `ls(a=1) + 1`, `ls(a=1 b=2)`, `ls(a=b)`} {
		_, _, ok := pythonCall(call)
		require.False(t, ok, call)
	}
}

func TestDiffering(t *testing.T) {
	t.Parallel()
	known := truths([]byte(`{"sports.team_1": {"name": ["New York, NY", "NYC"], "n": [2, ""], "list": [["a", "b"]], "o": [{"x": [1], "y": ["", 2]}]}}`), nil, nil)
	require.Len(t, known, 1)
	require.True(t, known[0].of("sports_team"))
	require.False(t, known[0].of("sports"))
	for args, want := range map[string][]string{
		`{"name": "new york ny", "list": ["A", "b"], "o": {"x": 1.0}}`:              nil,
		`{"name": "NYC", "n": 2.0, "list": ["a", "b"], "o": {"x": 1, "y": 2}}`:      nil,
		`{"name": "NYC", "n": 3, "list": ["a", "b"], "o": {"x": 1}}`:                {"n"},
		`{"name": "NYC", "list": ["b", "a"], "o": {"x": 1}}`:                        {"list"},
		`{"name": "NYC", "list": ["a", "b"], "o": {"y": 2}}`:                        {"o"},
		`{"name": "NYC", "list": ["a", "b"], "o": {"x": 1, "z": 2}}`:                {"o"},
		`{"name": "NYC", "list": ["a", "b"], "o": {"x": 1}, "extra": true}`:         {"extra"},
		`{"list": ["a", "b"], "o": {"x": 1}}`:                                       {"name"},
		`{"name": 5, "list": ["a", "b"], "o": {"x": "1"}}`:                          {"name", "o"},
		`{"name": "NYC", "list": "a b", "o": [{"x": 1}]}`:                           {"list", "o"},
		`{"name": "NYC", "n": null, "list": ["a", "b"], "o": {"x": 1, "y": false}}`: {"n", "o"},
	} {
		var m map[string]any
		require.NoError(t, decode([]byte(args), &m))
		require.ElementsMatch(t, want, known[0].differing(m), args)
	}
	require.Equal(t, map[string]any{"name": "New York, NY", "list": []any{"a", "b"}, "o": map[string]any{"x": json.Number("1")}}, known[0].example())
}

func TestSaysTheSame(t *testing.T) {
	t.Parallel()
	number := json.Number("5")
	for _, same := range [][2]any{{"5", number}, {number, "5"}, {"True", true}, {`["a", 5]`, []any{"a", number}}, {`['a']`, []any{"a"}},
		{map[string]any{"x": "5"}, `{"x": 5}`}, {[]any{"5"}, []any{number}}} {
		require.True(t, isEqual(same[0], same[1]), same)
	}
	for _, other := range [][2]any{{"5", json.Number("6")}, {"a", []any{"a"}}, {[]any{"a"}, "a"}, {[]any{"a"}, []any{"a", "b"}},
		{map[string]any{"x": "5"}, map[string]any{"x": number, "y": number}}, {"[not a list", []any{}}} {
		require.False(t, isEqual(other[0], other[1]), other)
	}
}
