package rawjson_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// off are limits that refuse nothing.
var off = rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1}

func TestAnyBytes(t *testing.T) {
	t.Parallel()
	const text = "{\"\xff\":\"\xed\xa0\x80\\u00e9\xe9\"}"
	_, err := rawjson.Parse(text, rawjson.Limits{})
	require.Error(t, err)
	doc, err := rawjson.Parse(text, rawjson.Limits{AnyBytes: true})
	require.NoError(t, err)
	require.Equal(t, "\xed\xa0\x80é\xe9", doc.Root().Get("\xff").Str())
	_, err = rawjson.Parse("{\xff}", rawjson.Limits{AnyBytes: true})
	require.Error(t, err, "outside of strings")
}

func refusal(t *testing.T, text string, limits rawjson.Limits) *rawjson.Error {
	t.Helper()
	doc, err := rawjson.Parse(text, limits)
	require.Nil(t, doc)
	var e *rawjson.Error
	require.ErrorAs(t, err, &e)
	return e
}

func parse(t testing.TB, text string) rawjson.Value {
	t.Helper()
	doc, err := rawjson.Parse(text, off)
	require.NoError(t, err)
	require.Equal(t, text, doc.Text())
	return doc.Root()
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		code       rawjson.Code
		offset     int
		atEnd      bool
	}{
		{"nothing", "", rawjson.Syntax, 0, true},
		{"white space", " \n", rawjson.Syntax, 2, true},
		{"two values", "{} {}", rawjson.Trailing, 3, false},
		{"prose after", "{}\nDone.", rawjson.Trailing, 3, false},
		{"prose before", "Sure: {}", rawjson.Syntax, 0, false},
		{"byte order mark", "\ufeff{}", rawjson.Syntax, 0, false},
		{"open object", "{", rawjson.Syntax, 1, true},
		{"open array", "[ ", rawjson.Syntax, 2, true},
		{"key only", `{"a"`, rawjson.Syntax, 4, true},
		{"no value", `{"a":`, rawjson.Syntax, 5, true},
		{"no comma yet", `{"a":1`, rawjson.Syntax, 6, true},
		{"comma, then the end", `{"a":1,`, rawjson.Syntax, 7, true},
		{"trailing comma in an object", `{"a":1,}`, rawjson.Syntax, 7, false},
		{"trailing comma in an array", `[1,]`, rawjson.Syntax, 3, false},
		{"leading comma", `[,1]`, rawjson.Syntax, 1, false},
		{"missing comma", `[1 2]`, rawjson.Syntax, 3, false},
		{"wrong closer of an array", `[1}`, rawjson.Syntax, 2, false},
		{"wrong closer of an object", `{"a":1]`, rawjson.Syntax, 6, false},
		{"wrong closer of an empty object", `{]`, rawjson.Syntax, 1, false},
		{"bare key", `{a:1}`, rawjson.Syntax, 1, false},
		{"single quotes", `{'a':1}`, rawjson.Syntax, 1, false},
		{"no colon", `{"a" 1}`, rawjson.Syntax, 5, false},
		{"open string", `"abc`, rawjson.Syntax, 4, true},
		{"open key", `{"abc`, rawjson.Syntax, 5, true},
		{"open escape", `"ab\`, rawjson.Syntax, 4, true},
		{"open unicode escape", `"ab\u12`, rawjson.Syntax, 7, true},
		{"unknown escape", `"ab\x"`, rawjson.Syntax, 3, false},
		{"short unicode escape", `"ab\u12"`, rawjson.Syntax, 3, false},
		{"raw newline", "\"a\nb\"", rawjson.Syntax, 2, false},
		{"raw NUL in a key", "{\"\x00\":1}", rawjson.Syntax, 2, false},
		{"stray byte in a string", "\"a\xffb\"", rawjson.UTF8, 2, false},
		{"surrogate as UTF-8", "\"\xed\xa0\x80\"", rawjson.UTF8, 1, false},
		{"overlong form in a key", "{\"\xc0\xaf\":1}", rawjson.UTF8, 2, false},
		{"stray byte outside of a string", "[\xff]", rawjson.Syntax, 1, false},
		{"minus", "-", rawjson.Syntax, 1, true},
		{"minus and a letter", "-a", rawjson.Syntax, 1, false},
		{"plus", "+1", rawjson.Syntax, 0, false},
		{"leading zero", "[-01]", rawjson.Syntax, 1, false},
		{"no digit before the point", ".5", rawjson.Syntax, 0, false},
		{"no digit after the point", "[1.]", rawjson.Syntax, 3, false},
		{"no exponent", "1e", rawjson.Syntax, 2, true},
		{"sign without exponent", "[1e+]", rawjson.Syntax, 4, false},
		{"hexadecimal", "0x10", rawjson.Trailing, 1, false},
		{"NaN", "NaN", rawjson.Syntax, 0, false},
		{"half a literal", "tru", rawjson.Syntax, 3, true},
		{"misspelt literal", "[nul]", rawjson.Syntax, 1, false},
		{"Python literal", "[None]", rawjson.Syntax, 1, false},
		{"capital literal", "[True]", rawjson.Syntax, 1, false},
		{"longer literal", "nullx", rawjson.Trailing, 4, false},
		{"comment", "{} // x", rawjson.Trailing, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := refusal(t, c.text, rawjson.Limits{})
			require.Equal(t, c.code, e.Code)
			require.Equal(t, c.offset, e.Offset)
			require.Equal(t, c.atEnd, e.AtEnd)
			require.NotEmpty(t, e.What)
			require.Contains(t, e.Error(), " at offset ")
		})
	}
}

// Every proper prefix of an object ends too early, and says so.
func TestParseSaysThatTheTextEndsTooEarly(t *testing.T) {
	t.Parallel()
	const text = ` {"a\"é": [-1.5e+3, true, null, "x\u00e9\n"], "b": {}, "c": false}`
	for n := range len(text) {
		if n > 0 && text[n-1] >= 0x80 && text[n] >= 0x80 {
			continue // inside a character
		}
		e := refusal(t, text[:n], off)
		require.True(t, e.AtEnd, "%q: %v", text[:n], e)
		require.Equal(t, n, e.Offset)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		name, ok, bad string
		limits        rawjson.Limits
		code          rawjson.Code
		offset        int
	}{
		{"bytes", "[1]", "[12]", rawjson.Limits{Bytes: 3}, rawjson.Size, 3},
		{"bytes by default", `"` + strings.Repeat("x", rawjson.DefaultBytes-2) + `"`,
			strings.Repeat("x", rawjson.DefaultBytes+1), rawjson.Limits{}, rawjson.Size, rawjson.DefaultBytes},
		{"depth", "[[1]]", `[{"a":[]}]`, rawjson.Limits{Depth: 2}, rawjson.Depth, 6},
		{"depth counts what is open", "[[],[],[[]]]", "[[],[],[[[]]]]", rawjson.Limits{Depth: 3}, rawjson.Depth, 9},
		{"depth by default", nested(64), nested(65), rawjson.Limits{}, rawjson.Depth, 64},
		{"number", "[-1.5]", "[-1.55]", rawjson.Limits{Number: 4}, rawjson.Digits, 1},
		{"number by default", strings.Repeat("1", 1000), strings.Repeat("1", 1001), rawjson.Limits{}, rawjson.Digits, 0},
		{"exponent", "1e20", "1e21", rawjson.Limits{Exponent: 20}, rawjson.Digits, 0},
		{"exponent with a plus", "1E+20", "1E+21", rawjson.Limits{Exponent: 20}, rawjson.Digits, 0},
		{"negative exponent", "1e-20", "1e-21", rawjson.Limits{Exponent: 20}, rawjson.Digits, 0},
		{"exponent by default", "[1e400,1e-400]", "[1e400,1e-401]", rawjson.Limits{}, rawjson.Digits, 7},
		{"exponent is what is written", "1e0000000000000000000020", "0e21", rawjson.Limits{Exponent: 20}, rawjson.Digits, 0},
		{"exponent past any integer", "1", "1e99999999999999999999", rawjson.Limits{}, rawjson.Digits, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := rawjson.Parse(c.ok, c.limits)
			require.NoError(t, err)
			e := refusal(t, c.bad, c.limits)
			require.Equal(t, c.code, e.Code)
			require.Equal(t, c.offset, e.Offset)
			require.False(t, e.AtEnd)
		})
	}
}

// Regression: an exponent past int32 was refused although there was no limit.
func TestNegativeLimitsRefuseNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1e99999999999999999999", "1e-2147483647", strings.Repeat("9", 5000),
		strings.Repeat("[", 5000) + strings.Repeat("]", 5000), `"` + strings.Repeat("x", 2<<20) + `"`,
	} {
		_, err := rawjson.Parse(text, off)
		require.NoError(t, err)
	}
}

func TestLimitsWithDefaults(t *testing.T) {
	t.Parallel()
	require.Equal(t, rawjson.Limits{Bytes: 1 << 20, Depth: 64, Number: 1000, Exponent: 400, Values: off.WithDefaults().Values},
		rawjson.Limits{}.WithDefaults())
	l := rawjson.Limits{Bytes: 1, Depth: 2, Number: 3, Exponent: 4, Values: 5}
	require.Equal(t, l, l.WithDefaults())
	require.Equal(t, off.WithDefaults(), off.WithDefaults().WithDefaults())
}

// Ten megabytes of '[': refused by length before a byte is read, then by
// depth, and without limits only for want of an end.
func TestParseIsSafeOnOpeners(t *testing.T) { // not parallel: it counts allocations
	text := strings.Repeat("[", 10<<20)
	require.Equal(t, rawjson.Size, refusal(t, text, rawjson.Limits{}).Code)
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { _, _ = rawjson.Parse(text, rawjson.Limits{}) }), 10.0)

	e := refusal(t, text, rawjson.Limits{Bytes: -1})
	require.Equal(t, rawjson.Depth, e.Code)
	require.Equal(t, rawjson.DefaultDepth, e.Offset)

	e = refusal(t, text, off)
	require.Equal(t, rawjson.Syntax, e.Code)
	require.True(t, e.AtEnd)
	require.Equal(t, len(text), e.Offset)
}

func TestParseCountsValues(t *testing.T) {
	t.Parallel()
	e := refusal(t, `[1,{"a":[2]}]`, rawjson.Limits{Values: 4})
	require.Equal(t, rawjson.Size, e.Code)
	_, err := rawjson.Parse(`[1,{"a":[2]}]`, rawjson.Limits{Values: 5})
	require.NoError(t, err)
}

func TestSizeIsCheckedBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	e := refusal(t, "\xff not JSON at all", rawjson.Limits{Bytes: 4})
	require.Equal(t, rawjson.Size, e.Code)
}

func TestErrorsDoNotHoldTheText(t *testing.T) {
	t.Parallel()
	_, err := rawjson.Parse(`{"password": "hunter2" oops`, rawjson.Limits{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
	require.NotContains(t, err.Error(), "oops")
	var e *rawjson.Error
	require.True(t, errors.As(err, &e))
}
