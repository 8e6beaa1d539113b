package mend_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mend"
)

const open = `{"type": "object"}`

func TestSyntax(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{'a':`, 30) + `1` + strings.Repeat("}", 30)
	rows := []row{
		{name: "fence", args: "```json\n{\"a\": 1}\n```\n", want: "\n{\"a\": 1}\n"},
		{name: "fence on one line", args: "```{\"a\": 1}```", want: "{\"a\": 1}"},
		{name: "trailing comma", args: `{"a": [1, 2 , ], "b": 3,}`, want: `{"a": [1, 2  ], "b": 3}`},
		{name: "comments", args: "{ // what\n\"a\": 1, # why\n/* how */ \"b\": 2}", want: "{ \n\"a\": 1, \n \"b\": 2}"},
		{name: "comment marks in strings", args: `{'a': "// # /* "}`, want: `{"a": "// # /* "}`},
		{name: "single quotes", args: `{'a': 'b', "c": 'd'}`, want: `{"a": "b", "c": "d"}`},
		{name: "quotes in quotes", args: `{'a': 'say "hi"', 'b': 'it\'s'}`, want: `{"a": "say \"hi\"", "b": "it's"}`},
		{name: "escapes are kept", args: `{'a': '\\d\n\u00e9'}`, want: `{"a": "\\d\n\u00e9"}`},
		{name: "Python literals", args: `{"a": True, "b": False, "c": None}`, want: `{"a": true, "b": false, "c": null}`},
		{name: "words in strings", args: `{'a': 'True None'}`, want: `{"a": "True None"}`},
		{name: "bare keys", args: `{a: 1, b_2: 2, $c: 3}`, want: `{"a": 1, "b_2": 2, "$c": 3}`},
		{name: "empty object before the arguments", args: `{} {"a": 1}`, want: ` {"a": 1}`},
		{name: "quote behind the last number", args: `{"a": {"b": -2.50"}} `, want: `{"a": {"b": -2.50}} `},
		{name: "keys without their opening quote", args: `{city": "Rome", "a": [{b_1" : 2}]}`, want: `{"city": "Rome", "a": [{"b_1" : 2}]}`},
		{name: "surplus closers", args: `{"a": 1}]}`, want: `{"a": 1}`},
		{name: "raw control characters", args: "{\"a\": \"x\n\ty\x01\"}", want: `{"a": "x\n\ty\u0001"}`},
		{name: "escaped apostrophe", args: `{"a": "it\'s"}`, want: `{"a": "it's"}`},
		{name: "white space of the web", args: "\ufeff{\u00a0\"a\": 1}", want: `{"a": 1}`},
		{name: "numbers keep their spelling", args: `{'a': 1.50, 'b': -0.0e+5}`, want: `{"a": 1.50, "b": -0.0e+5}`},
		{name: "deep", args: nested, want: strings.ReplaceAll(nested, "'", `"`)},

		{name: "missing closers", args: `{"a": [{"b": "c"}`},
		{name: "two empty objects before the arguments", args: `{}{}{"a": 1}`},
		{name: "an empty object behind the arguments", args: `{"a": 1}{}`},
		{name: "an empty object before two", args: `{}{"a": 1}{"b": 2}`},
		{name: "an object that is not empty before the arguments", args: `{"a": 1}{"a": 2}`},
		{name: "an empty object before a list", args: `{}["a"]`},
		{name: "quote behind a number that is not the last", args: `{"a": 1", "b": 2}`},
		{name: "quote behind a number at the end", args: `{"a": 1"`},
		{name: "text behind a number", args: `{"a": 5'2"}`},
		{name: "quote behind a literal", args: `{"a": true"}`},
		{name: "quote in the middle of a key", args: `{ci"ty": 1}`},
		{name: "words before a quote", args: `{the city": 1}`},
		{name: "value without its opening quote", args: `{"a": Rome"}`},

		{name: "cut inside a string", args: `{"a": "b`},
		{name: "cut after an escape", args: `{"a": "b\`},
		{name: "closer inside the last string", args: `{"a": "b", "c": "f(x)}"`},
		{name: "cut after a literal", args: `{"a": true`},
		{name: "cut after a number", args: `{"a": 12`},
		{name: "cut inside a literal", args: `{"a": tru`},
		{name: "cut after a comma", args: `{"a": "b",`},
		{name: "cut after a key", args: `{"a"`},
		{name: "cut after a colon", args: `{"a":`},
		{name: "cut after an opener", args: `{"a": [`},
		{name: "comment up to the end", args: `{"a": "b" // and so on }`},
		{name: "arithmetic", args: `{"a": 1/6}`},
		{name: "product", args: `{"a": 2 * 3.14159}`},
		{name: "half a number", args: `{"a": .5}`},
		{name: "hexadecimal", args: `{"a": 0x10}`},
		{name: "leading zero", args: `{"a": 007}`},
		{name: "bare word", args: `{"a": north}`},
		{name: "undefined", args: `{"a": undefined}`},
		{name: "NaN", args: `{"a": NaN}`},
		{name: "missing comma", args: `{"a": "b" "c": 1}`},
		{name: "missing colon", args: `{"a" 1}`},
		{name: "missing value", args: `{"a": , "b": 1}`},
		{name: "two commas", args: `{"a": 1,, "b": 2}`},
		{name: "only a comma", args: `{,}`},
		{name: "quotes inside", args: `{"a": "say "hi" to"}`},
		{name: "apostrophe inside", args: `{'a': 'it's'}`},
		{name: "three quotes", args: `{"a": '''b'''}`},
		{name: "unknown escape", args: `{"a": "\d"}`},
		{name: "wrong closer", args: `{"a": 1]}`},
		{name: "prose before", args: `Here it is: {"a": 1}`},
		{name: "prose after", args: `{"a": 1} as you asked`},
		{name: "prose and fence", args: "Sure:\n```json\n{\"a\": 1}\n```"},
		{name: "fence without end", args: "```json\n{\"a\": 1}"},
		{name: "two objects", args: `{"a": 1}{"b": 2}`},
		{name: "the same object twice", args: `{"a": 1}{"a": 1}`},
		{name: "key twice", args: `{'a': 1, 'a': 2}`},
		{name: "endless comment", args: `{"a": 1 /* }`},
		{name: "not UTF-8", args: "{'a': '\xff'}"},
		{name: "nested too deep", args: strings.Repeat("[", 100000)},
		{name: "array", args: `['a']`},
		{name: "nothing", args: "```\n```"},
	}
	for i := range rows {
		rows[i].params = open
	}
	check(t, only(mend.Syntax), rows)
	check(t, only(mend.Close), []row{
		{name: "closers", params: open, args: `{"a": [{"b": "c"}`, want: `{"a": [{"b": "c"}]}`},
		{name: "nothing but closers", params: open, args: `{'a': 'b'`},
		{name: "no closer is missing", params: open, args: `{'a': 'b'}`},
	})
	check(t, only(mend.Syntax, mend.Close), []row{
		{name: "both", params: open, args: "```{'a': ['b']```", want: `{"a": ["b"]}`},
		{name: "quote behind the last number, and no closer", params: open, args: `{"a": 1"`},
	})
	check(t, only(mend.Unwrap), []row{{name: "text that lacks its closer", params: properties(false, "a", strs), args: `{"a": "[\"x\""}`}})
	check(t, only(mend.Unwrap, mend.Close), []row{{name: "text that lacks its closer, added", params: properties(false, "a", strs), args: `{"a": "[\"x\""}`, want: `{"a": ["x"]}`}})
	check(t, only(mend.Syntax, mend.Coerce), []row{
		{name: "then coerced", params: properties(false, "n", integer), args: `{'n': '5',}`, want: `{"n": 5}`},
	})
	check(t, only(mend.Syntax, mend.Wrap), []row{
		{name: "then wrapped", params: properties(false, "s!", str), args: `'myCoolButton'`, want: `{"s": "myCoolButton"}`},
	})
}

func TestSyntaxReportsEveryEdit(t *testing.T) {
	t.Parallel()
	_, changes, ok := mend.Arguments(input(t, open, `{'a': True, }`, only(mend.Syntax)))
	require.True(t, ok)
	var said []string
	for _, c := range changes {
		require.Equal(t, "mend.syntax", c.By)
		said = append(said, c.Before+" -> "+c.After)
	}
	require.Equal(t, []string{`'a' -> "a"`, `True -> true`, `, -> `}, said)

	_, changes, ok = mend.Arguments(input(t, open, "{"+strings.Repeat(`'a': [True],`, 1)+`'b': [`+strings.Repeat("True,", 40)+"]}", only(mend.Syntax)))
	require.True(t, ok)
	require.Len(t, changes, 1, "many edits are told as one")
	require.True(t, json.Valid([]byte(changes[0].After)))
}

// TestSyntaxIsLinear has texts on which repairers are known to be quadratic.
func TestSyntaxIsLinear(t *testing.T) {
	t.Parallel()
	const n = 200_000
	for _, unit := range []string{`{"a":`, `[`, `'`, `"`, `/*`, `//`, `\`, `,`, `{'a':'b'},`, "`", `#`, `True `, "\u00a0", `]`} {
		in := input(t, open, "{"+strings.Repeat(unit, n/len(unit)), mend.All())
		if len(in.Issues) > 0 {
			mend.Arguments(in) // the test's own time limit is the assertion
		}
	}
}
