package mend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

func TestOmit(t *testing.T) {
	t.Parallel()
	nullable := `{"anyOf": [{"type": "integer"}, {"type": "null"}]}`
	check(t, only(mend.Omit), []row{
		{name: "Python's word", params: properties(false, "q!", str, "a", strs), args: `{"q": "x", "a": "None"}`, want: `{"q": "x"}`},
		{name: "JSON's word", params: properties(false, "a", point), args: `{"a": "null" }`, want: `{ }`},
		{name: "not a number", params: properties(false, "n", number, "m", integer), args: `{"n": "NaN", "m": 1}`, want: `{"m": 1}`},
		{name: "boolean", params: properties(false, "b", boolean), args: `{"b": " none "}`, want: `{}`},
		{name: "several", params: properties(false, "a", strs, "b", ints, "c", boolean), args: `{"a":"None","b":"","c":true}`, want: `{"c":true}`},
		{name: "below", params: properties(false, "o", properties(false, "a!", str, "b", ints)), args: `{"o": {"a": "x", "b": ""}}`, want: `{"o": {"a": "x"}}`},
		{name: "null is allowed", params: properties(false, "n", nullable), args: `{"n": "None"}`, want: `{"n": null}`},
		{name: "empty text for an enumerated value", params: properties(false, "e", `{"type": "string", "enum": ["a", "b"]}`), args: `{"e": ""}`, want: `{}`},
		{name: "empty text that is too short", params: properties(false, "e", `{"type": "string", "minLength": 1}`), args: `{"e": ""}`, want: `{}`},
		{name: "empty text that does not match", params: properties(false, "e", `{"type": "string", "pattern": "^a"}`), args: `{"e": ""}`, want: `{}`},
		{name: "word for an enumerated value", params: properties(false, "e", `{"type": "string", "enum": ["a", "b"]}`), args: `{"e": "None"}`, want: `{}`},

		{name: "required", params: properties(false, "a!", strs), args: `{"a": "None"}`},
		{name: "required and nullable", params: properties(false, "n!", nullable), args: `{"n": "None"}`},
		{name: "not declared", params: properties(true, "a", strs), args: `{"b": ""}`},
		{name: "an element", params: properties(false, "a", ints), args: `{"a": ["None"]}`},
		{name: "another word", params: properties(false, "a", strs), args: `{"a": "unknown"}`},
		{name: "not a number, where none is wanted", params: properties(false, "a", strs), args: `{"a": "nan"}`},
		{name: "a word that does not match", params: properties(false, "e", `{"type": "string", "minLength": 9}`), args: `{"e": "None"}`},
		{name: "another issue stays", params: properties(false, "a", strs, "n!", integer), args: `{"a": "None"}`},
	})
	check(t, only(mend.Omit, mend.Enum), []row{
		{name: "an enumerated word", params: properties(false, "e", `{"enum": ["none", "all"]}`), args: `{"e": "None"}`, want: `{"e": "none"}`},
	})
	check(t, mend.All(), []row{
		{name: "and not wrapped", params: properties(false, "o", properties(false, "id!", str)), args: `{"o": "None"}`, want: `{}`},
	})
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	check(t, only(mend.Duplicates), []row{
		{name: "twice", params: open, args: `{"a": 1, "b": 2, "a": 1}`, want: `{"a": 1, "b": 2}`},
		{name: "side by side, and a third", params: open, args: `{"a":[1],"a":[1],"a":[1]}`, want: `{"a":[1]}`},
		{name: "two keys", params: open, args: `{"a":1,"b":2,"a":1,"b":2,"c":3}`, want: `{"a":1,"b":2,"c":3}`},
		{name: "escaped", params: open, args: `{"a":1,"\u0061":1}`, want: `{"a":1}`},
		{name: "below", params: open, args: `{"l":[{"a":1},{"a":1,"a":1}]}`, want: `{"l":[{"a":1},{"a":1}]}`},
		{name: "in each other", params: open, args: `{"o":{"a":1,"a":1},"o":{"a":1,"a":1}}`, want: `{"o":{"a":1}}`},

		{name: "values differ", params: open, args: `{"a": 1, "a": 2}`},
		{name: "one of three differs", params: open, args: `{"a": 1, "a": 1, "a": 2}`},
		{name: "spellings differ", params: open, args: `{"a": 1, "a": 1.0}`},
		{name: "one of two keys", params: open, args: `{"a": 1, "a": 1, "b": 1, "b": 2}`},
		{name: "then invalid", params: properties(false, "a", str), args: `{"a": 1, "a": 1}`},
	})
	_, changes, ok := mend.Arguments(input(t, open, `{"a":1,"a":1,"a":1}`, only(mend.Duplicates)))
	require.True(t, ok)
	one := middleware.Change{By: "mend.duplicates", Pointer: "/a", Before: "1"}
	require.Equal(t, []middleware.Change{one, one}, changes)
	check(t, only(mend.Duplicates, mend.Coerce), []row{
		{name: "then coerced", params: properties(false, "a", str), args: `{"a": 1, "a": 1}`, want: `{"a": "1"}`},
	})
}

func TestEcho(t *testing.T) {
	t.Parallel()
	check(t, only(mend.Echo), []row{
		{name: "number", params: properties(false, "n!", number), args: `{"n": {"type": "float", "value": 40}}`, want: `{"n": 40}`},
		{name: "list", params: properties(false, "a", ints), args: `{"a": {"value": [1, 2], "type": "array"}}`, want: `{"a": [1, 2]}`},
		{name: "arguments", params: point, args: `{"properties": {"x": 1, "y": 2}}`, want: `{"x": 1, "y": 2}`},
		{name: "arguments beside their type", params: point, args: `{"type": "object", "properties": {"x": 1, "y": 2}, "required": ["x", "y"]}`, want: `{"x": 1, "y": 2}`},
		{name: "both", params: point, args: `{"properties": {"x": {"type": "integer", "value": 1}, "y": 2}}`, want: `{"x": 1, "y": 2}`},

		{name: "an object is wanted", params: properties(false, "o", `{"type": ["object", "integer"], "required": ["x"]}`), args: `{"o": {"type": "integer", "value": 1}}`},
		{name: "one of two objects or a number is wanted", params: properties(false, "o", `{"anyOf": [{"type": "object", "required": ["x"]}, {"type": "object", "required": ["y"]}, {"type": "integer"}]}`),
			args: `{"o": {"type": "integer", "value": 1}}`},
		{name: "more than type and value", params: properties(false, "n", number), args: `{"n": {"type": "float", "value": 40, "unit": "km"}}`},
		{name: "no type", params: properties(false, "n", number), args: `{"n": {"type": "price", "value": 40}}`},
		{name: "no value", params: properties(false, "n", number), args: `{"n": {"type": "float"}}`},
		{name: "value does not fit", params: properties(false, "n", integer), args: `{"n": {"type": "float", "value": 4.5}}`},
		{name: "the schema itself", params: `{"type": "object", "properties": {"x": {}, "y": {}}, "required": ["x"]}`,
			args: `{"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}`},
		{name: "beside an argument", params: point, args: `{"properties": {"x": 1, "y": 2}, "x": 1}`},
	})
	check(t, only(mend.Echo, mend.Encode), []row{
		{name: "and not encoded", params: properties(false, "s", str), args: `{"s": {"type": "string", "value": "a"}}`, want: `{"s": "a"}`},
	})
}

func TestEnvelopeBesideTheName(t *testing.T) {
	t.Parallel()
	check(t, only(mend.Unwrap), []row{
		{name: "name first", params: point, args: `{"function": "tool", "parameters": {"x": 1, "y": 2}}`, want: `{"x": 1, "y": 2}`},
		{name: "name last", params: point, args: `{"args": {"x": 1, "y": 2}, "name": "tool"}`, want: `{"x": 1, "y": 2}`},
		{name: "in a string", params: point, args: `{"name": "tool", "arguments": "{\"x\": 1, \"y\": 2}"}`, want: `{"x": 1, "y": 2}`},
		{name: "in a string alone", params: point, args: `{"arguments": "{\"x\": 1, \"y\": 2}"}`, want: `{"x": 1, "y": 2}`},

		{name: "another tool's name", params: point, args: `{"function": "other", "parameters": {"x": 1, "y": 2}}`},
		{name: "a declared name", params: properties(false, "name", str, "x!", integer), args: `{"name": "tool", "arguments": {"x": 1}}`},
		{name: "three keys", params: point, args: `{"type": "tool", "function": "tool", "parameters": {"x": 1, "y": 2}}`},
		{name: "the name alone", params: point, args: `{"function": "tool"}`},
	})
}

func TestSplit(t *testing.T) {
	t.Parallel()
	check(t, only(mend.Split), []row{
		{name: "words", params: properties(false, "a", strs), args: `{"a": "sea, two words,sun"}`, want: `{"a": ["sea", "two words", "sun"]}`},
		{name: "optional list", params: properties(false, "a", `{"anyOf": [`+strs+`, {"type": "null"}]}`), args: `{"a": "x,y"}`, want: `{"a": ["x", "y"]}`},

		{name: "no comma", params: properties(false, "a", strs), args: `{"a": "sea"}`},
		{name: "numbers", params: properties(false, "a", ints), args: `{"a": "1, 2"}`},
		{name: "elements of any type", params: properties(false, "a", `{"type": "array"}`), args: `{"a": "x, y"}`},
		{name: "an empty part", params: properties(false, "a", strs), args: `{"a": "x,, y"}`},
		{name: "a quoted part", params: properties(false, "a", strs), args: `{"a": "'x, y', z"}`},
		{name: "a string is wanted too", params: properties(false, "a", `{"anyOf": [{"type": "string", "maxLength": 1}, `+strs+`]}`), args: `{"a": "x, y"}`},
	})
}

func TestEnumWords(t *testing.T) {
	t.Parallel()
	period := `{"type": "string", "enum": ["six_months", "oneYear", "year"]}`
	check(t, only(mend.EnumWords), []row{
		{name: "among others", params: properties(false, "p", period), args: `{"p": "last six months"}`, want: `{"p": "six_months"}`},
		{name: "in another spelling", params: properties(false, "p", period), args: `{"p": "the last (Six-Months)."}`, want: `{"p": "six_months"}`},

		{name: "inside a name", params: properties(false, "p", `{"enum": ["sql", "csv"]}`), args: `{"p": "PostgreSQL"}`},
		{name: "inside a name with a hyphen", params: properties(false, "p", `{"enum": ["sql", "csv"]}`), args: `{"p": "use T-SQL"}`},
		{name: "inside a name with a slash", params: properties(false, "p", `{"enum": ["sql", "csv"]}`), args: `{"p": "PL/SQL"}`},
		{name: "of two values", params: properties(false, "p", period), args: `{"p": "one year"}`},
		{name: "not in one piece", params: properties(false, "p", period), args: `{"p": "six or more months"}`},
		{name: "turned around", params: properties(false, "p", period), args: `{"p": "not six months"}`},
		{name: "some of the words", params: properties(false, "p", period), args: `{"p": "six weeks"}`},
	})
}

func TestFillDefaults(t *testing.T) {
	t.Parallel()
	url := `{"type": "string", "default": "http://x"}`
	check(t, only(mend.FillDefaults), []row{
		{name: "default", params: properties(false, "url!", url), args: `{"q": 1}`, want: `{"q": 1, "url": "http://x"}`},
		{name: "no arguments", params: properties(false, "url!", url), args: `{ }`, want: `{ "url": "http://x"}`},
		{name: "const and enum", params: properties(false, "k!", `{"const": "a"}`, "e!", `{"enum": [5]}`), args: `{}`, want: `{"k": "a", "e": 5}`},
		{name: "below, beside a reference", params: `{"type": "object", "properties": {"o": {"type": "object", "properties": {"u": {"$ref": "#/$defs/u"}}, "required": ["u"]}}, "$defs": {"u": ` + url + `}}`,
			args: `{"o": {}}`, want: `{"o": {"u": "http://x"}}`},

		{name: "optional", params: properties(false, "url", url, "n!", integer), args: `{}`},
		{name: "the default does not fit", params: properties(false, "n!", `{"type": "integer", "default": "None"}`), args: `{}`},
		{name: "several values", params: properties(false, "e!", `{"enum": [5, 6]}`), args: `{}`},
		{name: "another property stays missing", params: properties(false, "url!", url, "n!", integer), args: `{}`},
		{name: "perhaps sent under another name", params: properties(false, "url!", url), args: `{"url_": "http://y"}`},
	})
	check(t, only(mend.FillDefaults, mend.Rename), []row{
		{name: "renamed rather than filled", params: properties(false, "url!", url), args: `{"URL": "http://y"}`, want: `{"url": "http://y"}`},
	})
	require.NotContains(t, mend.Default(), mend.FillDefaults)
	for _, risky := range only(mend.FillDefaults, mend.Wrap, mend.Encode) {
		require.NotContains(t, mend.Extended(), risky)
	}
}

// TestDestructive: what a destructive tool gets was sent, and sent whole.
func TestDestructive(t *testing.T) {
	t.Parallel()
	for _, rules := range [][]mend.Rule{nil, only(mend.Close, mend.FillDefaults), mend.All()} {
		for args, params := range map[string]string{`{"a": "b"`: open, `{}`: properties(false, "k!", `{"const": 1}`)} {
			in := input(t, params, args, rules)
			_, _, ok := mend.Arguments(in)
			require.Equal(t, args[:2] == `{"` || rules != nil, ok, "%s under %s", args, rules)
			in.Tool.Destructive = true
			_, _, ok = mend.Arguments(in)
			require.False(t, ok, "%s under %s", args, rules)
		}
	}
	in := input(t, properties(false, "n", integer), `{'n': '5'}`, nil)
	in.Tool.Destructive = true
	got, _, ok := mend.Arguments(in)
	require.True(t, ok, "the other rules stay on")
	require.Equal(t, `{"n": 5}`, got)
}
