package strip_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/strip"
)

// TestWhatRemovalWouldBreakStays: without these empties the arguments would no
// longer be valid.
func TestWhatRemovalWouldBreakStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, args string }{
		"elements become equal": {`{"properties":{"l":{"type":"array","uniqueItems":true,"items":{"properties":{"a":{"type":["string","null"]}}}}}}`,
			`{"l":[{"a":null},{}]}`},
		"both branches of a oneOf hold": {`{"properties":{"a":{}},"oneOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"type":"null"}}}]}`,
			`{"a":null}`},
	} {
		got, removed, err := strip.JSON(c.args, []byte(c.schema), strip.Optional)
		require.NoError(t, err, name)
		require.Equal(t, c.args, got, name)
		require.Empty(t, removed, name)
	}
	got, _, err := strip.JSON(`{"l":[{"a":null},{}]}`, []byte(`{"properties":{"l":{"type":"array","items":{"properties":{"a":{"type":["string","null"]}}}}}}`), strip.Optional)
	require.NoError(t, err)
	require.Equal(t, `{"l":[{},{}]}`, got, "equal elements are fine elsewhere")
}

// TestAnchorIsNoBase: up to draft 7 an $id of "#name" gives a schema a name. A
// reference beside it is still into the whole document.
func TestAnchorIsNoBase(t *testing.T) {
	t.Parallel()
	const schema = `{"properties":{"o":{"$id":%q,"required":["b"],"properties":{"a":{"$ref":"#/definitions/a"},"b":{}}}},"definitions":{"a":{"properties":{"c":{"type":"string"}}}}}`
	for id, want := range map[string]string{"#o": `{"o":{"a":{"d":1},"b":1}}`, "http://x/o": `{"o":{"a":{"c":null,"d":1},"b":1}}`} {
		got, _, err := strip.JSON(`{"o":{"a":{"c":null,"d":1},"b":1}}`, fmt.Appendf(nil, schema, id), strip.Optional)
		require.NoError(t, err)
		require.Equal(t, want, got, id)
	}
}

// TestPointersAreBounded: 16 MiB of pointers in all, and not one more.
func TestPointersAreBounded(t *testing.T) {
	t.Parallel()
	const bound = 16 << 20
	key := strings.Repeat("k", 1<<14-1)
	args := func(nulls int) string { // each pointer is "/", key and "/…", with 1<<14 bytes behind the first
		return `{"` + key + `":[` + strings.Repeat("null,", nulls) + `1]}`
	}
	size := len("/") + len(key) + len("/")
	got, removed, err := strip.JSON(args(bound/size), nil, strip.All)
	require.NoError(t, err)
	require.Len(t, removed, bound/size)
	require.Equal(t, `{"`+key+`":[1]}`, got)
	_, _, err = strip.JSON(args(bound/size+1), nil, strip.All)
	require.ErrorIs(t, err, strip.ErrTooMany)
}

type text string

func (t text) Text() string { return string(t) }

// Parsed strips like JSON, and does not scan a document again.
//
// Not parallel: nothing else may scan while the hook is set.
func TestParsed(t *testing.T) {
	const args = `{"a": 1, "note": null}`
	s, err := strip.New([]byte(`{"properties": {"note": {}}}`), strip.Options{})
	require.NoError(t, err)
	doc, err := rawjson.Parse(args, rawjson.Limits{})
	require.NoError(t, err)
	for want, sent := range []interface{ Text() string }{doc, text(args)} {
		scans := 0
		rawjson.OnScan = func(string) { scans++ }
		out, removals, err := s.Parsed(sent)
		rawjson.OnScan = nil
		require.NoError(t, err)
		require.Equal(t, `{"a": 1}`, out)
		require.Len(t, removals, 1)
		require.Equal(t, want, scans)
	}
	_, _, err = s.Parsed(text("["))
	require.ErrorIs(t, err, strip.ErrNotObject)
}

// Very many removals in one array take linear time.
func TestManyRemovals(t *testing.T) {
	t.Parallel()
	const n = 150_000
	args := `{"a":[1` + strings.Repeat(",null", n) + `]}`
	got, removed, err := strip.JSON(args, nil, strip.All)
	require.NoError(t, err)
	require.Equal(t, `{"a":[1]}`, got)
	require.Len(t, removed, n)
	require.Equal(t, "/a/150000", removed[n-1].Pointer)
}

// Not parallel: AllocsPerRun counts what other tests allocate as well.
func TestNothingToStripAllocatesNothing(t *testing.T) {
	args := `{"city": "Oslo", "days": 3, "near": {"lat": 59.9, "on": true, "tags": ["a", 1e2]}}`
	for _, mode := range []strip.Mode{strip.Optional, strip.WhenInvalid, strip.All, strip.Off} {
		s, err := strip.New([]byte(`{"properties":{"city":{"type":"string"},"days":{},"near":{"properties":{"lat":{}}}}}`), strip.Options{Mode: mode})
		require.NoError(t, err)
		allocs := testing.AllocsPerRun(100, func() {
			if got, removed, err := s.JSON(args); got != args || removed != nil || err != nil {
				t.Error("nothing was to be stripped")
			}
		})
		require.Zero(t, allocs, "%s", mode)
	}
}
