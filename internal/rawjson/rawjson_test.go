package rawjson_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

func TestValues(t *testing.T) {
	t.Parallel()
	root := parse(t, ` {"a": [1.0, "x\n", true, null], "o" : {"k":{}} , "e":[ ], "s":"plain"} `)
	require.Equal(t, rawjson.Object, root.Kind())
	require.Equal(t, 4, root.Len())
	require.False(t, root.IsMember())
	require.False(t, root.Parent().Exists())
	require.Equal(t, "", root.Key())

	a := root.Get("a")
	require.True(t, a.IsMember())
	require.Equal(t, "a", a.Key())
	require.Equal(t, `[1.0, "x\n", true, null]`, a.Raw())
	require.Equal(t, root, a.Parent())
	start, end := a.Span()
	require.Equal(t, a.Raw(), ` {"a": [1.0, "x\n", true, null], "o"`[start:end])

	var kinds []string
	for e := range a.Each() {
		kinds = append(kinds, e.Kind().String())
	}
	require.Equal(t, []string{"number", "string", "boolean", "null"}, kinds)
	require.Equal(t, "x\n", a.At("/1").Str())
	require.Equal(t, "plain", root.Get("s").Str())
	require.Equal(t, "", a.Str())
	for range root.Each() { // stops when told to
		break
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"null": true, "{}": true, "[ ]": true, "{\n}": true,
		"0": false, "false": false, `""`: false, "[null]": false, `{"a":{}}`: false,
	} {
		require.Equal(t, want, parse(t, text).Empty(), text)
	}
}

// Regression: the absent Value panicked in Key, Parent, Span and IsMember.
func TestAbsentValue(t *testing.T) {
	t.Parallel()
	var v rawjson.Value
	require.False(t, v.Exists())
	require.Equal(t, rawjson.Invalid, v.Kind())
	require.Equal(t, "invalid", v.Kind().String())
	require.Empty(t, v.Raw()+v.Key()+v.Str()+v.Pointer())
	require.False(t, v.Empty() || v.IsMember() || v.Parent().Exists() || v.Get("a").Exists() || v.At("/a").Exists())
	require.Zero(t, v.Len())
	require.Nil(t, v.Any())
	require.Nil(t, v.Cut(func(rawjson.Value) bool { return true }))
	start, end := v.Span()
	require.Zero(t, start+end)
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	many := func(last string) string {
		var b strings.Builder
		for i := range 12 {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		return "{" + b.String() + last + "}"
	}
	for _, c := range []struct {
		name, text string
		want       []string // the members' raw text
	}{
		{"none", `{"a":1,"b":{"a":2},"c":[{"a":3}]}`, nil},
		{"two", `{"a":1,"a":2}`, []string{"2"}},
		{"three", `{"a":1,"b":0,"a":2,"a":3}`, []string{"2", "3"}},
		{"escaped spelling", `{"a":1,"\u0061":2}`, []string{"2"}},
		{"escaped spelling first", `{"\u0061":1,"a":2}`, []string{"2"}},
		{"other case is another key", `{"a":1,"A":2}`, nil},
		{"lone surrogates are different keys", `{"\ud800":1,"\udfff":2,"\ufffd":3}`, nil},
		{"a lone surrogate twice", `{"\ud800":1,"\uD800":2}`, []string{"2"}},
		{"ninth member", `{"a":0,"b":1,"c":2,"d":3,"e":4,"f":5,"g":6,"h":7,"a":8}`, []string{"8"}},
		{"many, at the end", many(`"k3":"x"`), []string{`"x"`}},
		{"many, escaped", many(`"\u006b3":"x"`), []string{`"x"`}},
		{"many, early and late", `{"k0":"e",` + many(`"k0":"x"`)[1:], []string{"0", `"x"`}},
		{"many, none", many(`"z":"x"`), nil},
		{"in an inner object", `[{"a":1},{"a":1,"a":2}]`, []string{"2"}},
		// Regression: the inner one came first, because it ends first.
		{"in text order", `{"a":1,"a":{"b":2,"b":3}}`, []string{`{"b":2,"b":3}`, "3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc, err := rawjson.Parse(c.text, off)
			require.NoError(t, err)
			var got []string
			for _, d := range doc.Duplicates() {
				got = append(got, d.Raw())
			}
			require.Equal(t, c.want, got)
			require.True(t, slices.IsSortedFunc(doc.Duplicates(), func(a, b rawjson.Value) int {
				x, _ := a.Span()
				y, _ := b.Span()
				return x - y
			}))
		})
	}
}

func TestGetTakesTheLastDuplicate(t *testing.T) {
	t.Parallel()
	root := parse(t, `{"a":1,"\u0061":2,"b":3}`)
	require.Equal(t, "2", root.Get("a").Raw())
	require.Equal(t, map[string]any{"a": json.Number("2"), "b": json.Number("3")}, root.Any())
	require.False(t, root.Get("c").Exists())
	require.False(t, root.Get("a").Get("a").Exists())
}

func TestPointers(t *testing.T) {
	t.Parallel()
	root := parse(t, `{"a/b":{"~1":[10,{"":"x"}]},"é\n":1}`)
	for pointer, want := range map[string]string{
		"":               root.Raw(),
		"/a~1b/~01/0":    "10",
		"/a~1b/~01/1":    `{"":"x"}`,
		"/a~1b/~01/1/":   `"x"`,
		"/é\n":           "1",
		"/a~1b/~01/2":    "",
		"/a~1b/~01/00":   "",
		"/a~1b/~01/-":    "",
		"/a~1b/~01/-1":   "", // regression: this was the first element
		"/a~1b/~01/+1":   "",
		"/a~1b/~01/0/0":  "",
		"/a~1b/~01/1e0":  "",
		"/a":             "",
		"/":              "",
		"/a~1b/~01/1//x": "",
	} {
		v := root.At(pointer)
		require.Equal(t, want, v.Raw(), pointer)
		require.Equal(t, want != "", v.Exists(), pointer)
		if v.Exists() {
			require.Equal(t, pointer, v.Pointer())
		}
	}
	require.Nil(t, rawjson.Segments(""))
	require.Equal(t, []string{""}, rawjson.Segments("/"))
	require.Equal(t, []string{"a/b", "~1"}, rawjson.Segments("/a~1b/~01"))
	require.Equal(t, "a~1b~01", rawjson.Escape("a/b~1"))
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                `""`,
		"a\"b\\c/":        `"a\"b\\c/"`,
		"\n\r\t\b\x00":    `"\n\r\t\u0008\u0000"`,
		"<é&\u2028😀\x7f>": "\"<é&\u2028😀" + `\u007f>"`,
		"a\xffb":          "\"a\ufffdb\"",
		"é\ufffdé\xff":    "\"é\ufffdé\ufffd\"",
	} {
		require.Equal(t, want, rawjson.Quote(in))
	}
}

func TestStrReadsEscapes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"\"\\\/\b\f\n\r\t"`:     "\"\\/\b\f\n\r\t",
		`"\u00e9\u00E9"`:         "éé",
		`"\ud83d\ude00"`:         "😀",
		`"\ud83d"`:               "\ufffd",
		`"\ude00\ud83d"`:         "\ufffd\ufffd",
		`"\ud83d\ud83d\ude00"`:   "\ufffd😀",
		`"\ud83d\u0041"`:         "\ufffdA",
		`"\ud83d\\ude00"`:        "\ufffd\\ude00",
		`"plain é"`:              "plain é",
		"\"\ufffd\"":             "\ufffd",
		`"\ud83dx\ude00 \u0000"`: "\ufffdx\ufffd \x00",
	} {
		require.Equal(t, want, parse(t, in).Str(), in)
		var std string
		require.NoError(t, json.Unmarshal([]byte(in), &std))
		require.Equal(t, want, std, in)
	}
}
