package mend_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// validator returns a Validate function for the schema alone.
func validator(t testing.TB, params string) func(string) []middleware.Issue {
	s, err := schema.Compile([]byte(params), schema.Options{})
	require.NoError(t, err)
	return func(args string) []middleware.Issue {
		doc, err := rawjson.Parse(args, rawjson.Limits{})
		if err != nil {
			return []middleware.Issue{{Code: string(err.(*rawjson.Error).Code)}}
		}
		if doc.Root().Kind() != rawjson.Object {
			return []middleware.Issue{{Code: "not_object"}}
		}
		var issues []middleware.Issue
		for _, dup := range doc.Duplicates() {
			issues = append(issues, middleware.Issue{Code: "duplicate_key", Pointer: dup.Pointer()})
		}
		return append(issues, s.Validate(doc.Root())...)
	}
}

// input is an invalid call to a tool with these parameters.
func input(t testing.TB, params, args string, rules []mend.Rule) mend.Input {
	validate := validator(t, params)
	return mend.Input{
		Tool:      middleware.Tool{Name: "tool", Parameters: []byte(params)},
		Arguments: args, Issues: validate(args), Rules: rules, Validate: validate,
	}
}

// properties returns an object schema; names that end in ! are required.
func properties(closed bool, nameSchemas ...string) string {
	var props, required []string
	for i := 0; i < len(nameSchemas); i += 2 {
		name, must := strings.CutSuffix(nameSchemas[i], "!")
		if must {
			required = append(required, rawjson.Quote(name))
		}
		props = append(props, rawjson.Quote(name)+": "+nameSchemas[i+1])
	}
	s := `{"type": "object", "properties": {` + strings.Join(props, ", ") + `}, "required": [` + strings.Join(required, ", ") + `]`
	if closed {
		s += `, "additionalProperties": false`
	}
	return s + "}"
}

const (
	str     = `{"type": "string"}`
	integer = `{"type": "integer"}`
	number  = `{"type": "number"}`
	boolean = `{"type": "boolean"}`
	strs    = `{"type": "array", "items": {"type": "string"}}`
	ints    = `{"type": "array", "items": {"type": "integer"}}`
	point   = `{"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x", "y"]}`
)

// row is a call and what becomes of it; want "" means that nothing is repaired.
type row struct {
	name, params, args, want string
	aliases                  map[string]string
}

func check(t *testing.T, rules []mend.Rule, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			in := input(t, r.params, r.args, rules)
			in.Aliases = r.aliases
			got, changes, ok := mend.Arguments(in)
			if r.want == "" {
				require.False(t, ok, "mended to %s", got)
				require.Empty(t, got)
				require.Empty(t, changes)
				return
			}
			require.True(t, ok)
			require.Equal(t, r.want, got)
			require.NotEmpty(t, changes)
			for _, c := range changes {
				require.Contains(t, c.By, "mend.")
				require.NotEqual(t, c.Before, c.After)
			}
			in.Arguments, in.Issues = got, in.Validate(got)
			require.Empty(t, in.Issues, "the result must be valid")
			_, _, again := mend.Arguments(in)
			require.False(t, again, "what is valid is left alone")
		})
	}
}

func TestCoerce(t *testing.T) {
	t.Parallel()
	check(t, only(mend.Coerce), []row{
		{name: "integer", params: properties(false, "n", integer), args: `{"n": "5" , "o":1.50}`, want: `{"n": 5 , "o":1.50}`},
		{name: "negative", params: properties(false, "n", integer), args: `{"n": "-5"}`, want: `{"n": -5}`},
		{name: "whole fraction for an integer", params: properties(false, "n", integer), args: `{"n": "5.00"}`, want: `{"n": 5}`},
		{name: "number keeps its spelling", params: properties(false, "n", number), args: `{"n": "5.00"}`, want: `{"n": 5.00}`},
		{name: "either number", params: properties(false, "n", `{"type": ["integer", "number"]}`), args: `{"n": "5.0"}`, want: `{"n": 5.0}`},
		{name: "exponent", params: properties(false, "n", number), args: `{"n": "1e3"}`, want: `{"n": 1e3}`},
		{name: "boolean", params: properties(false, "b", boolean), args: `{"b": "true"}`, want: `{"b": true}`},
		{name: "Python's boolean", params: properties(false, "b", boolean), args: `{"b": "False"}`, want: `{"b": false}`},
		{name: "number to string keeps its spelling", params: properties(false, "s", str), args: `{"s": 1.50}`, want: `{"s": "1.50"}`},
		{name: "boolean to string", params: properties(false, "s", str), args: `{"s": true}`, want: `{"s": "true"}`},
		{name: "every element", params: properties(false, "a", ints), args: `{"a": ["1", 2, "3"]}`, want: `{"a": [1, 2, 3]}`},
		{name: "many elements are one round", params: properties(false, "a", ints),
			args: `{"a": [` + strings.Repeat(`"1",`, 200) + `2]}`, want: `{"a": [` + strings.Repeat(`1,`, 200) + `2]}`},
		{name: "several properties", params: properties(false, "a", integer, "b", boolean, "c", str),
			args: `{"a":"1","b":"true","c":2}`, want: `{"a":1,"b":true,"c":"2"}`},
		{name: "nested, by reference", params: `{"type": "object", "properties": {"p": {"$ref": "#/$defs/p"}}, "$defs": {"p": ` + point + `}}`,
			args: `{"p": {"x": "1", "y": 2}}`, want: `{"p": {"x": 1, "y": 2}}`},
		{name: "nullable", params: properties(false, "n", `{"anyOf": [{"type": "integer"}, {"type": "null"}]}`), args: `{"n": "5"}`, want: `{"n": 5}`},
		{name: "within an enum of numbers", params: properties(false, "n", `{"type": "integer", "enum": [1, 2]}`), args: `{"n": "2"}`, want: `{"n": 2}`},
		{name: "types of another system", params: properties(false, "n", `{"type": "INTEGER"}`), args: `{"n": "5"}`, want: `{"n": 5}`},

		{name: "fraction for an integer", params: properties(false, "n", integer), args: `{"n": "5.5"}`},
		{name: "no rounding", params: properties(false, "n", integer), args: `{"n": 5.5}`},
		{name: "unit", params: properties(false, "n", integer), args: `{"n": "5 apples"}`},
		{name: "thousands", params: properties(false, "n", integer), args: `{"n": "5,000"}`},
		{name: "leading zero", params: properties(false, "n", integer), args: `{"n": "007"}`},
		{name: "plus sign", params: properties(false, "n", integer), args: `{"n": "+5"}`},
		{name: "white space", params: properties(false, "n", integer), args: `{"n": " 5"}`},
		{name: "hexadecimal", params: properties(false, "n", integer), args: `{"n": "0x10"}`},
		{name: "not a number", params: properties(false, "n", number), args: `{"n": "NaN"}`},
		{name: "huge exponent", params: properties(false, "n", number), args: `{"n": "1e999999"}`},
		{name: "word for null", params: properties(false, "n", `{"type": ["integer", "null"]}`), args: `{"n": "null"}`},
		{name: "null to string", params: properties(false, "s!", str), args: `{"s": null}`},
		{name: "yes is not a boolean", params: properties(false, "b", boolean), args: `{"b": "yes"}`},
		{name: "1 is not a boolean", params: properties(false, "b", boolean), args: `{"b": 1}`},
		{name: "out of range", params: properties(false, "n", `{"type": "integer", "maximum": 4}`), args: `{"n": "5"}`},
		{name: "another issue stays", params: properties(false, "n", integer, "m!", str), args: `{"n": "5"}`},
		{name: "two results", params: properties(false, "x", `{"oneOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "string"}}]}`), args: `{"x": 5}`},
	})
}

func TestUnwrap(t *testing.T) {
	t.Parallel()
	check(t, only(mend.Unwrap), []row{
		{name: "array", params: properties(false, "a", strs), args: `{"a": "[\"x\", \"y\"]"}`, want: `{"a": ["x", "y"]}`},
		{name: "object", params: properties(false, "p!", point), args: `{"p": "{\"x\":1,\"y\":2}"}`, want: `{"p": {"x":1,"y":2}}`},
		{name: "number spelling", params: properties(false, "a", `{"type": "array"}`), args: `{"a": " [1.50]\n"}`, want: `{"a": [1.50]}`},
		{name: "one of several types", params: properties(false, "a", `{"type": ["array", "null"]}`), args: `{"a": "[]"}`, want: `{"a": []}`},
		{name: "arguments in a string", params: point, args: `"{\"x\":1,\"y\":2}"`, want: `{"x":1,"y":2}`},
		{name: "envelope", params: point, args: `{"arguments": {"x": 1, "y": 2}}`, want: `{"x": 1, "y": 2}`},
		{name: "envelope of the tool's name", params: point, args: `{"tool": {"x": 1, "y": 2}}`, want: `{"x": 1, "y": 2}`},
		{name: "envelope of a closed tool without parameters", params: properties(true), args: `{"parameters": {}}`, want: `{}`},

		{name: "object for an array", params: properties(false, "a", strs), args: `{"a": "{\"x\":1}"}`},
		{name: "a string is wanted too", params: properties(false, "a", `{"anyOf": [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^x"}, `+strs+`]}`), args: `{"a": "[\"x\"]"}`},
		{name: "elements do not fit", params: properties(false, "a", ints), args: `{"a": "[\"x\"]"}`},
		{name: "plain text", params: properties(false, "a", strs), args: `{"a": "x, y"}`},
		{name: "cut off", params: properties(false, "a", strs), args: `{"a": "[\"x\", "}`},
		{name: "any other key is not an envelope", params: point, args: `{"point": {"x": 1, "y": 2}}`},
		{name: "envelope beside another key", params: point, args: `{"arguments": {"x": 1, "y": 2}, "z": 3}`},
	})
	check(t, only(mend.Unwrap, mend.Coerce), []row{
		{name: "then its elements", params: properties(false, "a", ints), args: `{"a": "[\"1\", \"2\"]"}`, want: `{"a": [1, 2]}`},
	})
	check(t, only(mend.Unwrap, mend.Wrap), []row{
		{name: "JSON text is not wrapped", params: properties(false, "a", strs), args: `{"a": "[\"x\"]"}`, want: `{"a": ["x"]}`},
	})
	check(t, only(mend.Unwrap), []row{
		{name: "Python list", params: properties(false, "a", strs), args: `{"a": "['x', 'y']"}`, want: `{"a": ["x", "y"]}`},
	})
}

func TestWrap(t *testing.T) {
	t.Parallel()
	check(t, only(mend.Wrap), []row{
		{name: "scalar for an array", params: properties(false, "a", strs), args: `{"a": "x y"}`, want: `{"a": ["x y"]}`},
		{name: "number for an array", params: properties(false, "a", ints), args: `{"a": 5}`, want: `{"a": [5]}`},
		{name: "object for an array of such", params: properties(false, "a", `{"type": "array", "items": `+point+`}`),
			args: `{"a": {"x":1,"y":2}}`, want: `{"a": [{"x":1,"y":2}]}`},
		{name: "value for an object of one property", params: properties(false, "o", properties(false, "id!", str, "note", str)),
			args: `{"o": "x"}`, want: `{"o": {"id": "x"}}`},
		{name: "the article's bare string", params: properties(false, "selector!", str), args: `"myCoolButton"`, want: `{"selector": "myCoolButton"}`},
		{name: "the article's bare text", params: properties(false, "selector!", str), args: `myCoolButton`, want: `{"selector": "myCoolButton"}`},
		{name: "bare number", params: properties(false, "n!", integer), args: `5`, want: `{"n": 5}`},
		{name: "bare array", params: properties(false, "a!", ints, "o", str), args: `[1, 2]`, want: `{"a": [1, 2]}`},
		{name: "only property, optional", params: properties(false, "q", str), args: `"x"`, want: `{"q": "x"}`},
		{name: "path as text", params: properties(false, "path!", str), args: "src/main.go\n", want: `{"path": "src/main.go"}`},

		{name: "perhaps a list", params: properties(false, "a", strs), args: `{"a": "x, y"}`},
		{name: "word for nothing", params: properties(false, "a", strs), args: `{"a": "None"}`},
		{name: "empty string", params: properties(false, "a", strs), args: `{"a": ""}`},
		{name: "null", params: properties(false, "a!", strs), args: `{"a": null}`},
		{name: "element does not fit", params: properties(false, "a", ints), args: `{"a": "x"}`},
		{name: "two required properties", params: point, args: `5`},
		{name: "two optional properties", params: properties(false, "a", str, "b", str), args: `"x"`},
		{name: "wrong type", params: properties(false, "n!", integer), args: `"x"`},
		{name: "prose", params: properties(false, "selector!", str), args: `I cannot do that`},
		{name: "broken JSON", params: properties(false, "selector!", str), args: `{"selector`},
		{name: "bare text for a number", params: properties(false, "n!", integer), args: `five`},
	})
	check(t, only(mend.Wrap, mend.Coerce), []row{
		{name: "then its element", params: properties(false, "a", ints), args: `{"a": "5"}`, want: `{"a": [5]}`},
		{name: "scalar or array", params: properties(false, "x", `{"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}`), args: `{"x": 5}`},
	})
}

func TestRename(t *testing.T) {
	t.Parallel()
	check(t, only(mend.Rename), []row{
		{name: "letter case", params: properties(false, "userId!", str), args: `{"userid": "x"}`, want: `{"userId": "x"}`},
		{name: "underscore", params: properties(false, "_from!", str), args: `{"to": "y", "from": "x"}`, want: `{"to": "y", "_from": "x"}`},
		{name: "two variants at once", params: properties(false, "X-Key!", str, "X-Host!", str),
			args: `{"X_Host": "h", "X_Key": "k"}`, want: `{"X-Host": "h", "X-Key": "k"}`},
		{name: "escaped key", params: properties(false, "user_id!", str), args: `{ "o" : 1 , "user\u0049d" : "x" }`, want: `{ "o" : 1 , "user_id" : "x" }`},
		{name: "optional, closed", params: properties(true, "user_id", str), args: `{"userId": "x"}`, want: `{"user_id": "x"}`},
		{name: "alias", params: properties(false, "selector!", str), args: `{"element": "x"}`, want: `{"selector": "x"}`, aliases: map[string]string{"element": "selector"}},
		{name: "alias beside another stray", params: properties(false, "selector!", str), args: `{"element": "x", "why": "y"}`,
			want: `{"selector": "x", "why": "y"}`, aliases: map[string]string{"element": "selector"}},
		{name: "alias already there", params: properties(false, "selector!", str, "n!", str), args: `{"selector": "a", "element": "x"}`, aliases: map[string]string{"element": "selector"}},
		{name: "part of the name is not a variant", params: properties(false, "payment_id!", str), args: `{"id" : "x"}`},
		{name: "two variants of one name", params: properties(false, "user_id!", str), args: `{"userId": "x", "UserID": "y"}`},
	})
	check(t, only(mend.RenameClose), []row{
		{name: "part of the name", params: properties(false, "payment_id!", str), args: `{"id" : "x"}`, want: `{"payment_id" : "x"}`},
		{name: "similar", params: properties(false, "contents!", str, "path!", str), args: `{"content":"x", "path":"y"}`, want: `{"contents":"x", "path":"y"}`},
		{name: "misspelled", params: properties(false, "ignitionMode!", str), args: `{"ignignitionMode": "START"}`, want: `{"ignitionMode": "START"}`},
		{name: "below", params: properties(false, "files", `{"type": "array", "items": `+properties(false, "path!", str)+`}`),
			args: `{"files": [{"path": "a"}, {"file_path": "b"}]}`, want: `{"files": [{"path": "a"}, {"path": "b"}]}`},

		{name: "type does not fit", params: properties(false, "payment_id!", str), args: `{"id": 5}`},
		{name: "two strays", params: properties(false, "payment_id!", str), args: `{"id": "x", "payment": "y"}`},
		{name: "two missing", params: properties(false, "start!", str, "startTime!", str), args: `{"start_": "x"}`},
		{name: "names far apart", params: properties(false, "selector!", str), args: `{"zoom": "x"}`},
		{name: "declared for another", params: properties(false, "file_name!", str, "name", str), args: `{"name": "x"}`},
		{name: "two declared names alike", params: properties(true, "start_date", str, "end_date", str), args: `{"date": "x"}`},
		{name: "free-form object", params: `{"type": "object", "properties": {"user_id": {"type": "string"}}, "required": ["user_id"], "additionalProperties": {"type": "string"}}`,
			args: `{"id": "x"}`},
		{name: "optional, open: nothing is wrong", params: properties(false, "user_id", str, "n!", integer), args: `{"id": "x", "n": "y"}`},
	})
	check(t, only(mend.Rename, mend.Coerce), []row{
		{name: "then its value", params: properties(false, "user_id!", integer), args: `{"userId": "5"}`, want: `{"user_id": 5}`},
	})
}

func TestDropUnknown(t *testing.T) {
	t.Parallel()
	closed := properties(true, "path!", str, "limit", integer)
	check(t, only(mend.DropUnknown), []row{
		{name: "first", params: closed, args: `{"why": "x", "path": "a"}`, want: `{"path": "a"}`},
		{name: "last", params: closed, args: `{"path": "a", "why": "x"}`, want: `{"path": "a"}`},
		{name: "all", params: properties(true), args: `{"a": 1, "b": 2, "c": 3}`, want: `{}`},
		{name: "several between", params: closed, args: `{"a":1,"path":"p","b":2,"c":3,"limit":4,"d":5}`, want: `{"path":"p","limit":4}`},
		{name: "below", params: properties(false, "o", closed), args: `{"o": {"path": "a", "why": 1}}`, want: `{"o": {"path": "a"}}`},

		{name: "perhaps misspelled", params: closed, args: `{"path": "a", "limits": 5}`},
		{name: "another issue stays", params: closed, args: `{"why": "x"}`},
	})
	check(t, only(mend.DropUnknown, mend.RenameClose), []row{
		{name: "renamed rather than dropped", params: closed, args: `{"path": "a", "limits": 5}`, want: `{"path": "a", "limit": 5}`},
		{name: "one renamed, one dropped", params: closed, args: `{"file_path": "a", "why": "x"}`, want: `{"path": "a"}`},
		{name: "two for one name", params: closed, args: `{"file_path": "a", "filepath": "x"}`},
	})
}

func TestEnum(t *testing.T) {
	t.Parallel()
	genre := `{"type": "string", "enum": ["Pop", "Hip-Hop"]}`
	check(t, only(mend.Enum), []row{
		{name: "letter case", params: properties(false, "g", genre), args: `{"g": "pop"}`, want: `{"g": "Pop"}`},
		{name: "separator", params: properties(false, "g", genre), args: `{"g": "hip hop"}`, want: `{"g": "Hip-Hop"}`},
		{name: "element", params: properties(false, "g", `{"type": "array", "items": `+genre+`}`), args: `{"g": ["Pop", "HIP_HOP"]}`, want: `{"g": ["Pop", "Hip-Hop"]}`},
		{name: "constant", params: properties(false, "k", `{"const": "fixed"}`), args: `{"k": "Fixed"}`, want: `{"k": "fixed"}`},
		{name: "a lone surrogate is no other character", params: properties(false, "g", `{"enum": ["\ufffd"]}`), args: `{"g": "\ud800"}`},
		{name: "similar is not enough", params: properties(false, "g", genre), args: `{"g": "pops"}`},
		{name: "two", params: properties(false, "g", `{"enum": ["a_b", "A-B"]}`), args: `{"g": "ab"}`},
	})
}

func TestEncode(t *testing.T) {
	t.Parallel()
	check(t, only(mend.Encode), []row{
		{name: "array", params: properties(false, "s", str), args: `{"s": ["a", 1.50]}`, want: `{"s": "[\"a\", 1.50]"}`},
		{name: "object", params: properties(false, "s", str), args: `{"s": {"a":1}}`, want: `{"s": "{\"a\":1}"}`},
		{name: "not among the values", params: properties(false, "s", `{"enum": ["a"]}`), args: `{"s": ["a"]}`},
	})
}

func TestNotMended(t *testing.T) {
	t.Parallel()
	params := properties(false, "n!", integer)
	_, _, ok := mend.Arguments(mend.Input{Tool: middleware.Tool{Parameters: []byte(params)}, Arguments: `{"n": "5"}`, Rules: mend.All()})
	require.False(t, ok, "without issues nothing is wrong")

	in := input(t, params, `{"n": "5"}`, mend.All())
	in.Issues = append(in.Issues, middleware.Issue{Code: "truncated"})
	_, _, ok = mend.Arguments(in)
	require.False(t, ok, "cut off")

	for _, rules := range [][]mend.Rule{mend.Off(), only(mend.Wrap), {mend.Rule(200)}} {
		_, _, ok = mend.Arguments(input(t, params, `{"n": "5"}`, rules))
		require.False(t, ok, rules)
	}
	in = input(t, params, `{"n": "5"}`, mend.All())
	in.Validate = func(string) []middleware.Issue { return []middleware.Issue{{Code: "decode"}} }
	_, _, ok = mend.Arguments(in)
	require.False(t, ok, "the whole validation counts, not the schema alone")

	in = input(t, params, `{"n": "5"}`, mend.All())
	in.Tool.Parameters = nil
	args, _, ok := mend.Arguments(in)
	require.True(t, ok, "without a schema the issues lead")
	require.Equal(t, `{"n": 5}`, args)
}

func TestCombinations(t *testing.T) {
	t.Parallel()
	check(t, mend.All(), []row{
		{name: "everything at once", params: properties(true, "path!", str, "limit", integer, "tags", strs, "at", point),
			args: "{'file_path': 'a', 'Limit': '5', 'tags': 'x', 'at': '{\"x\": \"1\", \"y\": 2}', 'why': None,}",
			want: `{"path": "a", "limit": 5, "tags": ["x"], "at": {"x": 1, "y": 2}}`},
		{name: "one issue that nothing mends", params: properties(false, "a", integer, "b", integer), args: `{"a": "1", "b": "many"}`},
	})
}

func TestChanges(t *testing.T) {
	t.Parallel()
	params := properties(true, "path!", str, "limit", integer, "a/b", ints)
	_, changes, ok := mend.Arguments(input(t, params, `{"Path": "x", "limit": "5", "a/b": ["1"], "why": [1]}`, mend.All()))
	require.True(t, ok)
	require.ElementsMatch(t, []middleware.Change{
		{By: "mend.rename", Pointer: "/Path", Before: `"Path"`, After: `"path"`},
		{By: "mend.coerce", Pointer: "/limit", Before: `"5"`, After: `5`},
		{By: "mend.coerce", Pointer: "/a~1b/0", Before: `"1"`, After: `1`},
		{By: "mend.drop_unknown", Pointer: "/why", Before: `[1]`},
	}, changes)
}

func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	var names []string
	args := make([]string, 0, 40)
	for i := range 40 { // two ways to mend each, and no end in sight
		name := "p" + strings.Repeat("x", i)
		names = append(names, name, `{"oneOf": [{"type": "boolean"}, {"type": "array"}, {"type": "object", "required": ["a"], "properties": {"a": {}}}]}`)
		args = append(args, rawjson.Quote(name)+`: 5`)
	}
	in := input(t, properties(false, names...), "{"+strings.Join(args, ",")+"}", mend.All())
	count, validate := 0, in.Validate
	in.Validate = func(args string) []middleware.Issue { count++; return validate(args) }
	_, _, ok := mend.Arguments(in)
	require.False(t, ok)
	require.LessOrEqual(t, count, 64)
}

func TestRules(t *testing.T) {
	t.Parallel()
	require.Equal(t, "drop_unknown", mend.DropUnknown.String())
	require.Equal(t, "Rule(200)", mend.Rule(200).String())
	require.False(t, mend.Rule(0).Known())
	require.Equal(t, "[coerce unwrap rename syntax tool_name enum close omit duplicates echo]", fmt.Sprint(mend.Default()))
	require.Len(t, mend.All(), 17)
	require.Subset(t, mend.All(), mend.Extended())
	require.NotNil(t, mend.Off(), "nil means Default")
	page, err := os.ReadFile("../docs/mending.md")
	require.NoError(t, err)
	for _, r := range mend.All() {
		require.True(t, r.Known())
		require.NotEmpty(t, r.String())
		require.Contains(t, string(page), r.String(), "docs/mending.md has a row for each rule")
	}
}

// only returns the rules as options take them.
func only(rules ...mend.Rule) []mend.Rule { return rules }

// A schema that was read before gives the same repair as the text of the schema.
func TestReadSchema(t *testing.T) {
	t.Parallel()
	in := mend.Input{Tool: middleware.Tool{Parameters: []byte(`{"properties":{"a":{"type":"integer"}}}`)}, Arguments: `{"a":"1"}`,
		Issues:   []middleware.Issue{{Code: "type", Pointer: "/a"}},
		Rules:    []mend.Rule{mend.Coerce},
		Validate: func(string) []middleware.Issue { return nil }}
	fixed, _, ok := mend.Arguments(in)
	require.True(t, ok)
	in.Schema = mend.ReadSchema(in.Tool.Parameters)
	in.Tool = middleware.Tool{}
	again, _, ok := mend.Arguments(in)
	require.True(t, ok)
	require.Equal(t, fixed, again)
}

// A parsed document is not scanned again, and changes no result.
//
// Not parallel: nothing else may scan while the hook is set.
func TestParsed(t *testing.T) {
	in := mend.Input{Tool: middleware.Tool{Parameters: []byte(`{"properties":{"a":{"type":"integer"}}}`)}, Arguments: `{"a":"1"}`,
		Issues:   []middleware.Issue{{Code: "type", Pointer: "/a"}},
		Validate: func(string) []middleware.Issue { return nil }}
	doc, err := rawjson.Parse(in.Arguments, rawjson.Limits{})
	require.NoError(t, err)
	for scans, parsed := range []interface{ Text() string }{doc, nil} {
		in.Parsed = parsed
		got := 0
		rawjson.OnScan = func(text string) {
			if text == in.Arguments {
				got++
			}
		}
		fixed, _, ok := mend.Arguments(in)
		rawjson.OnScan = nil
		require.True(t, ok)
		require.Equal(t, `{"a":1}`, fixed)
		require.Equal(t, scans, got)
	}
}
