package codec_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func parse(t require.TestingT, text string) rawjson.Value {
	doc, err := codec.Parse(text)
	require.NoError(t, err, text)
	return doc.Root()
}

func apply(t require.TestingT, text string, edits ...rawjson.Edit) string {
	out, err := codec.Apply(text, edits)
	require.NoError(t, err)
	return out
}

func raws(v rawjson.Value) []string {
	out := []string{}
	for e := range v.Each() {
		out = append(out, e.Raw())
	}
	return out
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, key, raw, want string }{
		{"replaces", `{ "a" : 1 , "b":2}`, "a", `"x"`, `{ "a" : "x" , "b":2}`},
		{"replaces null", `{"a":null}`, "a", `{}`, `{"a":{}}`},
		{"adds", `{"a":1 }`, "b", `2`, `{"a":1,"b":2 }`},
		{"adds to nothing", `{ }`, "b", `2`, `{ "b":2}`},
		{"quotes the key", `{}`, `"<`, `2`, `{"\"<":2}`},
		{"knows an escaped key", `{"\u0061":1}`, "a", `2`, `{"\u0061":2}`},
		{"twice", `{"a":1,"a":2}`, "a", `3`, ""},
		{"another one twice", `{"a":1,"b":1,"a":2}`, "b", `3`, `{"a":1,"b":3,"a":2}`},
		{"of an array", `[]`, "a", `3`, ""},
		{"of a string", `"a"`, "a", `3`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			edits, err := put(parse(t, c.text), codec.Member{Key: c.key, Raw: c.raw})
			if c.want == "" {
				require.ErrorIs(t, err, codec.ErrUnencodable)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, apply(t, c.text, edits...))
		})
	}
	_, err := put(rawjson.Value{}, codec.Member{Key: "a", Raw: "1"})
	require.ErrorIs(t, err, codec.ErrUnencodable, "what is absent holds nothing")
}

func TestOnly(t *testing.T) {
	t.Parallel()
	o := parse(t, `{"a":1,"b":2,"b":3}`)
	v, err := codec.Only(o, "a")
	require.NoError(t, err)
	require.Equal(t, "1", v.Raw())
	v, err = codec.Only(o, "c")
	require.NoError(t, err)
	require.False(t, v.Exists())
	_, err = codec.Only(o, "b")
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = codec.Only(o.Get("a"), "b")
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

func TestUnset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`{"a":1}`, `{}`},
		{`{"a":1, "b":2}`, `{"b":2}`},
		{`{"b":2 , "a":1 }`, `{"b":2 }`},
		{`{"a":1,"b":2,"a":3}`, `{"b":2}`},
		{`{"b":2}`, `{"b":2}`},
		{`[1]`, `[1]`},
	} {
		edits, err := put(parse(t, c.text), codec.Member{Key: "a"})
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, apply(t, c.text, edits...))
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, raw, want string }{
		{`[]`, `1`, `[1]`},
		{"[\n]", `1`, "[\n1]"},
		{`[ 0 ]`, `1`, `[ 0,1 ]`},
		{`{"a":[] }`, `"b":1`, `{"a":[],"b":1 }`},
	} {
		require.Equal(t, c.want, apply(t, c.text, codec.Append(parse(t, c.text), c.raw)), c.text)
	}
}

func TestSplice(t *testing.T) {
	t.Parallel()
	const text = `[ 1 , 2, 3 ]`
	for _, c := range []struct {
		name  string
		items []string
		want  string
	}{
		{"nothing", []string{"1", "2", "3"}, text},
		{"at the end", []string{"1", "2", "3", "4", "5"}, `[ 1 , 2, 3,4,5 ]`},
		{"at the front", []string{"0", "1", "2", "3"}, `[ 0,1 , 2, 3 ]`},
		{"in the middle", []string{"1", "0", "2", "3"}, `[ 1,0 , 2, 3 ]`},
		{"one goes", []string{"1", "3"}, `[ 1, 3 ]`},
		{"the first goes", []string{"2", "3"}, `[ 2, 3 ]`},
		{"all go", nil, `[  ]`},
		{"one changes", []string{"1", "0", "3"}, `[ 1 , 0, 3 ]`},
		{"all change", []string{"7"}, `[ 7 ]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, apply(t, text, codec.Splice(parse(t, text), c.items)...))
		})
	}
	require.Equal(t, `[ 1,2]`, apply(t, `[ ]`, codec.Splice(parse(t, `[ ]`), []string{"1", "2"})...))
}

// What goes together in one pass.
func TestEditsBesideEachOther(t *testing.T) {
	t.Parallel()
	const text = `{"list":[{"a":1}, {"a":2}],"model":"m"}`
	root := parse(t, text)
	list := root.Get("list")
	model := codec.Replace(root.Get("model"), `"n"`)
	edits := []rawjson.Edit{codec.Append(root, `"more":true`), codec.Append(list, `{"a":3}`), model}
	for e := range list.Each() {
		edits = append(edits, codec.Append(e, `"b":0`))
	}
	require.Equal(t, `{"list":[{"a":1,"b":0}, {"a":2,"b":0},{"a":3}],"model":"n","more":true}`, apply(t, text, edits...))

	t.Run("the last element replaced and one appended", func(t *testing.T) {
		t.Parallel()
		edits := append(codec.Splice(list, []string{`{"a":1}`, `{"a":2}`, `{}`}), codec.Replace(list.At("/1"), "0"))
		require.Equal(t, `{"list":[{"a":1}, 0,{}],"model":"m"}`, apply(t, text, edits...))
	})
	t.Run("one thing in two edits", func(t *testing.T) {
		t.Parallel()
		_, err := codec.Apply(text, []rawjson.Edit{model, model})
		require.ErrorIs(t, err, codec.ErrUnencodable)
		_, err = codec.Apply(text, append(codec.Splice(list, []string{"1"}), codec.Replace(list.At("/0/a"), "2")))
		require.ErrorIs(t, err, codec.ErrUnencodable)
	})
}

func TestWithinAndShift(t *testing.T) {
	t.Parallel()
	const text = `{"x": {"a":1 }, "y":[1]}`
	x := parse(t, text).Get("x")
	edits := []rawjson.Edit{codec.Replace(x.Get("a"), "22")}
	got, err := codec.Within(x, edits)
	require.NoError(t, err)
	require.Equal(t, `{"a":22 }`, got)
	_, err = codec.Within(x, []rawjson.Edit{codec.Replace(parse(t, text).Get("y"), "2")})
	require.ErrorIs(t, err, codec.ErrUnencodable, "an edit outside")

	moved := codec.Shift(edits, 2)
	require.Equal(t, "- "+`{"x": {"a":22 }, "y":[1]}`, apply(t, "- "+text, moved...))
	require.Equal(t, codec.Replace(x.Get("a"), "22"), edits[0], "what was given stays")
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{  "a": "\n" }`, codec.OneLine("{\r\n\"a\": \"\\n\"\n}"))
	require.Equal(t, `{"a": 1}`, codec.OneLine(`{"a": 1}`))
}

func TestParse(t *testing.T) {
	t.Parallel()
	_, err := codec.Parse(`{"a":}`)
	require.ErrorIs(t, err, codec.ErrShape)
	var why *rawjson.Error
	require.ErrorAs(t, err, &why)
	require.NotContains(t, err.Error(), `"a"`, "no content")
	_, err = codec.ParseObject(`[1]`)
	require.ErrorIs(t, err, codec.ErrShape)
	o, err := codec.ParseObject(` {"n":` + "123456789012345678901234567890123456789012345678901234567890e999999" + `} `)
	require.NoError(t, err, "numbers are text, of any size")
	require.Equal(t, 1, o.Len())
	for text, want := range map[string]bool{`{}`: true, ` {} `: true, `[]`: false, ``: false, `{} {}`: false, `{"a":"` + "\xff" + `"}`: false} {
		require.Equal(t, want, codec.IsObject(text), text)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{`12`: 12, `12.0`: 12, `1.2e1`: 12, `-3`: -3, `0`: 0, `12.5`: 0, `"12"`: 0, `null`: 0, `[]`: 0, `1e400`: 0,
		`9223372036854775807`: math.MaxInt64, `9223372036854775808`: 0, `1e18`: 1e18, `1e19`: 0} {
		require.Equal(t, want, codec.Int(parse(t, text)), text)
	}
	require.Zero(t, codec.Int(rawjson.Value{}))
	half := codec.Float(parse(t, `0.50`))
	require.NotNil(t, half)
	require.InDelta(t, 0.5, *half, 0)
	for _, text := range []string{`"1"`, `null`, `true`, `1e999`} {
		require.Nil(t, codec.Float(parse(t, text)), text)
	}
	require.Nil(t, codec.Float(rawjson.Value{}))
	for f, want := range map[float64]string{0.7: "0.7", 1: "1", 1e21: "1e+21", -0.25: "-0.25", math.Inf(1): "null", math.Inf(-1): "null"} {
		require.Equal(t, want, codec.Number(f))
		parse(t, codec.Number(f))
	}
	require.Equal(t, "null", codec.Number(math.NaN()))
	require.Equal(t, "-9223372036854775808", codec.Count(math.MinInt64))
}
