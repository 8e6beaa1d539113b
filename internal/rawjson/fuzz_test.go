package rawjson_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// stdLimits refuse only what encoding/json does: it has a depth limit too.
var stdLimits = rawjson.Limits{Bytes: -1, Depth: 10_000, Number: -1, Exponent: -1}

var seeds = []string{
	`{}`, `null`, ` [1, -0, 1.5E+3, 9007199254740993, 1e99999999999] `, `{"a":{"b":[null,{},[]]},"c":"x"}`,
	`{"a":1,"\u0061":2}`, `"\ud800\udc00 \ud800 \udc00\ud800"`, "\"\\u00e9\\n\x7f\u2028\"", `{"a/b":{"~1":[0]},"":1}`,
	`[1,]`, `{"a":}`, `tru`, `"\x"`, "\"\x01\"", "\"\xff\"", `01`, `[] []`, "\ufeff1", `{"a" : 1 , "b":[ ] }`,
	`{"\ud800":1,"\udc00":2}`, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"a":10}`,
}

// decode is encoding/json with UseNumber.
func decode(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF)
	return v
}

// FuzzParse holds Parse to encoding/json: it accepts the same texts, reads the
// same values, and its spans, pointers and quotes are right.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := rawjson.Parse(text, stdLimits)
		want := json.Valid([]byte(text)) && utf8.ValidString(text)
		require.Equal(t, want, err == nil, "%v", err)
		quoteRoundTrips(t, text)
		if err != nil {
			var e *rawjson.Error
			require.ErrorAs(t, err, &e)
			require.LessOrEqual(t, e.Offset, len(text))
			require.True(t, !e.AtEnd || e.Offset == len(text))
			return
		}
		require.Equal(t, decode(t, text), doc.Root().Any())
		duplicated := map[rawjson.Value]bool{}
		for _, d := range doc.Duplicates() {
			duplicated[d] = true
		}
		walk(t, doc.Root(), doc, len(duplicated) == 0)
		require.Equal(t, duplicated, slowDuplicates(doc.Root(), map[rawjson.Value]bool{}))
	})
}

func quoteRoundTrips(t *testing.T, s string) {
	quoted := rawjson.Quote(s)
	var back string
	require.NoError(t, json.Unmarshal([]byte(quoted), &back))
	require.Equal(t, string([]rune(s)), back) // []rune makes U+FFFD of what is not UTF-8
	doc, err := rawjson.Parse(quoted, stdLimits)
	require.NoError(t, err)
	require.Equal(t, back, doc.Root().Str())
}

// walk checks v and all it holds. Pointers are unique without duplicates only.
func walk(t *testing.T, v rawjson.Value, doc *rawjson.Doc, unique bool) {
	start, end := v.Span()
	require.Equal(t, doc.Text()[start:end], v.Raw())
	require.True(t, json.Valid([]byte(v.Raw())))
	require.Equal(t, v.IsMember(), v.Parent().Kind() == rawjson.Object)
	if unique {
		require.Equal(t, v, doc.Root().At(v.Pointer()))
	}
	n := 0
	for child := range v.Each() {
		require.Equal(t, v, child.Parent())
		walk(t, child, doc, unique)
		n++
	}
	require.Equal(t, n, v.Len())
	require.Equal(t, v.Empty(), v.Kind() == rawjson.Null ||
		n == 0 && (v.Kind() == rawjson.Array || v.Kind() == rawjson.Object))
}

func slowDuplicates(v rawjson.Value, into map[rawjson.Value]bool) map[rawjson.Value]bool {
	seen := map[string]bool{}
	for child := range v.Each() {
		if child.IsMember() {
			if seen[child.Key()] {
				into[child] = true
			}
			seen[child.Key()] = true
		}
		slowDuplicates(child, into)
	}
	return into
}

// FuzzCut cuts any subset of the root's children: what is left is JSON that
// holds exactly the others, spelled as they were, and the text outside of the
// children is only shortened by commas and the space beside them.
func FuzzCut(f *testing.F) {
	for i, s := range seeds {
		f.Add(s, uint64(i))
		f.Add(s, ^uint64(0))
	}
	f.Fuzz(func(t *testing.T, text string, mask uint64) {
		doc, err := rawjson.Parse(text, stdLimits)
		if err != nil {
			return
		}
		root := doc.Root()
		var kept []string
		i := 0
		edits := root.Cut(func(child rawjson.Value) bool {
			i++
			if mask>>(i%64)&1 == 1 {
				return true
			}
			kept = append(kept, spelled(child))
			return false
		})
		require.Equal(t, root.Len(), i)
		got, err := rawjson.Apply(text, edits)
		require.NoError(t, err)
		if len(kept) == i {
			require.Equal(t, text, got)
		}
		after, err := rawjson.Parse(got, stdLimits)
		require.NoError(t, err, got)
		var left []string
		for child := range after.Root().Each() {
			left = append(left, spelled(child))
		}
		require.Equal(t, kept, left)

		// What stands before and after the root's children stays.
		rs, re := root.Span()
		as, ae := after.Root().Span()
		require.Equal(t, text[:rs], got[:as])
		require.Equal(t, text[re:], got[ae:])
		for n, e := range edits {
			require.Less(t, e.Start, e.End)
			require.True(t, n == 0 || edits[n-1].End <= e.Start)
		}
		if n := len(edits); n > 0 {
			again := append(edits[:n:n], rawjson.Edit{Start: edits[0].Start, End: edits[0].End})
			_, err = rawjson.Apply(text, again)
			require.ErrorIs(t, err, rawjson.ErrEdits)
		}
	})
}

// spelled is a child as it is written: its key, if it has one, and its value.
func spelled(v rawjson.Value) string {
	if v.IsMember() {
		return rawjson.Quote(v.Key()) + ":" + v.Raw()
	}
	return v.Raw()
}
