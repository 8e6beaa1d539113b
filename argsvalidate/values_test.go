package argsvalidate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/strip"
)

func TestArgumentsAreNotTouched(t *testing.T) {
	t.Parallel()
	open := tool("open", `{"type": "object", "properties": {"n": {"type": "number"}, "s": {"type": "string"}}}`)
	for name, args := range map[string]string{
		"big integer":    `{"n": 9007199254740993}`,
		"many digits":    `{"n": 0.1000000000000000055511151231257827}`,
		"spelling":       `{"n": 1.0, "x": 1e2, "y": -0, "z": 1E+2}`,
		"key order":      `{"z": 1, "s": "a", "n": 2, "a": 3}`,
		"white space":    " {\n\t\"s\" :\"a\" , \"n\":1 }\n",
		"escapes":        `{"s": "\u0061\/\ud83d\ude00"}`,
		"falsy scalars":  `{"s": "", "n": 0, "x": false, "y": "  "}`,
		"free-form null": `{"x": null, "y": [null, {}], "z": {"a": null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, argsvalidate.Options{}, request(open), middlewaretest.Calls("open", args))
			require.Equal(t, []string{args}, out.arguments())
			require.Empty(t, out.report.Attempts[0].Verdicts[0].Changes)
		})
	}
	t.Run("beside a strip", func(t *testing.T) {
		t.Parallel()
		out := run(t, argsvalidate.Options{}, request(open), middlewaretest.Calls("open", `{"z": 1.0, "s":null, "a" : 9007199254740993}`))
		require.Equal(t, []string{`{"z": 1.0, "a" : 9007199254740993}`}, out.arguments())
		require.Equal(t, []middleware.Change{{By: "strip", Pointer: "/s", Before: "null"}}, out.report.Attempts[0].Verdicts[0].Changes)
	})
}

func TestStrictTypes(t *testing.T) {
	t.Parallel()
	for args, ok := range map[string]bool{`{"i": 5}`: true, `{"i": 5.0}`: true, `{"i": 5.5}`: false, `{"i": "5"}`: false, `{"i": true}`: false} {
		v := verdictOf(t, argsvalidate.Options{}, tool("t", `{"properties": {"i": {"type": "integer"}}}`), args)
		require.Equal(t, ok, v.OK(), args)
	}
}

func TestStripIsTakenBackWhereItWouldBreakTheCall(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"minProperties":      `{"properties": {"a": {}}, "minProperties": 1}`,
		"not":                `{"properties": {"a": {}}, "not": {"properties": {"a": false}}}`,
		"not, maxProperties": `{"properties": {"a": {}}, "not": {"maxProperties": 0}}`,
		"if/then":            `{"properties": {"a": {}}, "if": {"properties": {"a": false}}, "then": {"required": ["b"]}}`,
		"anyOf":              `{"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []strip.Mode{strip.Optional, strip.All} { // All does not ask the schema
				v := verdictOf(t, argsvalidate.Options{Strip: mode}, tool("t", schema), `{"a": null}`)
				require.Empty(t, v.Issues, mode)
				require.Equal(t, `{"a": null}`, v.Call.Arguments)
				require.Empty(t, v.Changes)
			}
		})
	}
}

func TestStripModes(t *testing.T) {
	t.Parallel()
	required := tool("t", `{"properties": {"tags": {"type": "array"}, "m": {"type": ["string", "null"]}, "o": {"type": "string"}}, "required": ["tags", "m"]}`)
	const args = `{"tags": [], "m": null, "o": null}`
	v := verdictOf(t, argsvalidate.Options{}, required, args)
	require.Equal(t, `{"tags": [], "m": null}`, v.Call.Arguments, "required empties stay")
	require.True(t, v.OK())

	require.False(t, verdictOf(t, argsvalidate.Options{Strip: strip.Off}, required, args).OK())
	require.Equal(t, `{"l": [1, 3]}`, verdictOf(t, argsvalidate.Options{Strip: strip.All}, tool("t", "{}"), `{"l": [1, null, 3], "o": {}}`).Call.Arguments)

	optional := tool("t", `{"properties": {"o": {"type": ["string", "null"]}}}`)
	require.Equal(t, `{"o": null}`, verdictOf(t, argsvalidate.Options{Strip: strip.WhenInvalid}, optional, `{"o": null}`).Call.Arguments)
	require.Equal(t, `{}`, verdictOf(t, argsvalidate.Options{}, optional, `{"o": null}`).Call.Arguments)

	list := tool("t", `{"properties": {"l": {"type": "array", "items": {"type": ["integer", "null"]}}}}`)
	require.Equal(t, `{"l": [1, null, 3]}`, verdictOf(t, argsvalidate.Options{}, list, `{"l": [1, null, 3]}`).Call.Arguments, "positions do not shift")

	place := tool("t", `{"properties": {"o": {"type": "string"}, "e": {"enum": ["none", "all"]}}}`)
	o := argsvalidate.Options{Advanced: argsvalidate.Advanced{Placeholders: []string{"NONE"}}}
	require.Equal(t, `{"e": "none"}`, verdictOf(t, o, place, `{"o": " None ", "e": "none"}`).Call.Arguments, "an allowed value stays")
}

func TestEmptyArgumentsAreAnObject(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "  ", "null"} {
		v := verdictOf(t, argsvalidate.Options{}, note, args)
		require.Equal(t, []string{"required"}, codes(v))
		require.Equal(t, args, v.Call.Arguments)
		v = verdictOf(t, argsvalidate.Options{}, tool("free", ""), args)
		require.Equal(t, "{}", v.Call.Arguments)
		require.Equal(t, []middleware.Change{{By: "empty", Before: args, After: "{}"}}, v.Changes)
	}
}

func TestNotOneObject(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return `{"a": ` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }
	for _, c := range []struct{ name, args, code, pointer string }{
		{"cut", `{"a": 1`, "syntax", ""},
		{"array", `[1]`, "not_object", ""},
		{"text", `"x"`, "not_object", ""},
		{"number", `5`, "not_object", ""},
		{"two", `{}{}`, "trailing_data", ""},
		{"duplicate key", `{"b": {"a": 1, "a": 2}}`, "duplicate_key", "/b/a"},
		{"not UTF-8", "{\"a\": \"\xff\"}", "utf8", ""},
		{"deep", deep(64), "depth", ""},
		{"10 MB of openers", strings.Repeat("[", 10<<20), "size", ""},
		{"huge exponent", `{"a": 1e3000000}`, "number", ""},
		{"long number", `{"a": ` + strings.Repeat("1", 1001) + `}`, "number", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, schema := range []string{"", `{"properties": {"a": {}, "b": {}}}`} {
				v := verdictOf(t, argsvalidate.Options{}, tool("t", schema), c.args)
				require.Equal(t, []string{c.code}, codes(v))
				require.Equal(t, []string{c.pointer}, pointers(v))
				require.Equal(t, c.args, v.Call.Arguments)
			}
		})
	}
	require.True(t, verdictOf(t, argsvalidate.Options{}, tool("t", ""), deep(63)).OK())
	v := verdictOf(t, argsvalidate.Options{}, note, `{"text": `)
	require.Contains(t, v.Issues[0].Message, "offset 9")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for code, c := range map[string]struct {
		limits    argsvalidate.Limits
		good, bad string
	}{
		"size":   {argsvalidate.Limits{Bytes: 10}, `{"a": 123}`, `{"a": 1234}`},
		"depth":  {argsvalidate.Limits{Depth: 2}, `{"a": []}`, `{"a": [[]]}`},
		"number": {argsvalidate.Limits{Number: 3}, `{"a": 123}`, `{"a": 1234}`},
	} {
		o := argsvalidate.Options{Limits: c.limits, Strip: strip.Off}
		require.True(t, verdictOf(t, o, tool("t", ""), c.good).OK())
		require.Equal(t, []string{code}, codes(verdictOf(t, o, tool("t", ""), c.bad)))
	}
	o := argsvalidate.Options{Limits: argsvalidate.Limits{Exponent: 3}}
	require.True(t, verdictOf(t, o, tool("t", ""), `{"a": 1e3}`).OK())
	require.Equal(t, []string{"number"}, codes(verdictOf(t, o, tool("t", ""), `{"a": 1e-4}`)))
}

// placedError says where it found fault.
type placedError struct{}

func (placedError) Error() string { return "not told" }

func (placedError) Issues() []middleware.Issue {
	return []middleware.Issue{{Code: "mine", Pointer: "/text", Message: "no place"}}
}

func TestDecodeIsTheLastCondition(t *testing.T) {
	t.Parallel()
	decoded := 0
	typed := note
	typed.Decode = func(args string) error {
		decoded++
		switch {
		case strings.Contains(args, "bad"):
			return fmt.Errorf("text: %w", errors.New("not a good one"))
		case strings.Contains(args, "place"):
			return fmt.Errorf("wrapped: %w", placedError{})
		case strings.Contains(args, "panic"):
			panic("hunter2")
		}
		return nil
	}
	for args, want := range map[string]struct {
		issues  []middleware.Issue
		decoded int
	}{
		`{"text": "a", "tags": null}`: {nil, 1},
		`{"text": 5}`:                 {nil, 0}, // not after a failed schema
		`{"text": "bad"}`:             {[]middleware.Issue{{Code: "decode", Message: "text: not a good one"}}, 1},
		`{"text": "place"}`:           {[]middleware.Issue{{Code: "decode", Pointer: "/text", Message: "no place"}}, 1},
		`{"text": "panic"}`:           {[]middleware.Issue{{Code: "undecided", Message: "this call could not be checked, so it was not executed"}}, 1},
	} {
		decoded = 0
		v := verdictOf(t, argsvalidate.Options{}, typed, args)
		require.Equal(t, want.decoded, decoded, args)
		if want.decoded > 0 {
			require.Equal(t, want.issues, v.Issues, args)
		}
	}
}

func TestUndeclaredProperties(t *testing.T) {
	t.Parallel()
	const args = `{"text": "a", "tag": ["b"]}`
	require.True(t, verdictOf(t, argsvalidate.Options{}, note, args).OK())

	v := verdictOf(t, argsvalidate.Options{Properties: argsvalidate.RejectUndeclared}, note, args)
	require.Equal(t, []middleware.Issue{{Code: "undeclared", Pointer: "/tag", Message: `this property is not declared; did you mean "tags"?`}}, v.Issues)

	out := run(t, argsvalidate.Options{Properties: argsvalidate.NoteUndeclared}, request(), middlewaretest.Calls("note", args))
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Equal(t, []string{"tool note: 1 undeclared properties: tag"}, out.report.Notes)

	free := tool("free", `{"type": "object"}`)
	require.True(t, verdictOf(t, argsvalidate.Options{Properties: argsvalidate.RejectUndeclared}, free, args).OK(), "nothing is declared")
}

func TestFormats(t *testing.T) {
	t.Parallel()
	dated := tool("t", `{"properties": {"d": {"type": "string", "format": "date"}}}`)
	require.True(t, verdictOf(t, argsvalidate.Options{}, dated, `{"d": "tomorrow"}`).OK())
	require.Equal(t, []string{"format"}, codes(verdictOf(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{Formats: true}}, dated, `{"d": "tomorrow"}`)))
}

func TestDialects(t *testing.T) {
	t.Parallel()
	const rest = `"properties": {"l": {"prefixItems": [{"type": "integer"}], "items": false}}}`
	require.False(t, verdictOf(t, argsvalidate.Options{}, tool("t", "{"+rest), `{"l": ["a"]}`).OK(), "2020-12 without a word")
	old := `{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"l": {"items": [{"type": "integer"}], "additionalItems": false}}}`
	require.Equal(t, []string{"additionalItems", "type"}, codes(verdictOf(t, argsvalidate.Options{}, tool("t", old), `{"l": ["a", 1]}`)))
	unknown := `{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"l": {"prefixItems": [{"type": "integer"}]}}}`
	require.True(t, verdictOf(t, argsvalidate.Options{}, tool("t", unknown), `{"l": ["a"]}`).OK(), "draft 7 does not know prefixItems")
}
