package mend_test

import (
	"testing"

	"github.com/toolmend/toolmend/mend"
)

// TestBelowAUnion: validation says which objects are allowed, not what is wrong
// inside of the one that was sent.
func TestBelowAUnion(t *testing.T) {
	t.Parallel()
	union := func(a, b string) string {
		return properties(true, "o!", `{"anyOf": [`+a+`, `+b+`]}`)
	}
	other := properties(false, "other!", integer)
	check(t, only(mend.Unwrap, mend.Coerce), []row{
		{name: "a list", params: union(properties(false, "l!", strs), other), args: `{"o": {"l": "[\"x\"]"}}`, want: `{"o": {"l": ["x"]}}`},
		{name: "and what it holds", params: union(properties(false, "l!", ints), other), args: `{"o": {"l": "[\"1\"]"}}`, want: `{"o": {"l": [1]}}`},
		{name: "two values", params: union(properties(false, "l!", strs, "n!", integer), other), args: `{"o": {"l": "[]", "n": "5"}}`, want: `{"o": {"l": [], "n": 5}}`},

		{name: "one branch has a string there", params: union(properties(false, "l!", strs, "a!", str), properties(false, "l!", str, "b!", str)), args: `{"o": {"l": "[]"}}`},
		{name: "either of two values would do", params: union(properties(true, "l!", strs, "n", `{}`), properties(true, "l", `{}`, "n!", integer)), args: `{"o": {"l": "[]", "n": "5"}}`},
		{name: "each of two values makes it valid", params: union(properties(false, "l!", strs), properties(false, "n!", integer)), args: `{"o": {"l": "[]", "n": "5"}}`},
		{name: "each of two values makes it valid, once what it holds is fixed", params: union(properties(false, "l!", ints), properties(false, "m!", ints)),
			args: `{"o": {"l": "[\"1\"]", "m": "[\"2\"]"}}`},
		{name: "a value that nothing fixes", params: union(properties(false, "l!", strs, "n", integer), other), args: `{"o": {"l": "[]", "n": "many"}}`},
	})
}
