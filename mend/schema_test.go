package mend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

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
