package schema

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// A lone surrogate equals only itself, and is one character.
func TestLoneSurrogates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema, text string
		valid        bool
	}{
		{`{"properties":{"a":{"enum":["\ufffd"]}}}`, `{"a":"\ud800"}`, false},
		{`{"properties":{"a":{"enum":["\ufffd"]}}}`, `{"a":"\ufffd"}`, true},
		{`{"properties":{"a":{"minLength":2}}}`, `{"a":"\ud800"}`, false},
		{`{"properties":{"a":{"maxLength":1,"pattern":"^.$"}}}`, `{"a":"\ud800"}`, true},
		{`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":["\ud800","\udc00","\ufffd"]}`, true},
		{`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":["\ud800","\uD800"]}`, false},
		{`{"required":["\ufffd"]}`, `{"\ud800":1}`, false},
		{`{"patternProperties":{"^.$":{"type":"string"}}}`, `{"\ud800":1}`, false},
	} {
		s, err := Compile([]byte(c.schema), Options{})
		require.NoError(t, err)
		doc, err := rawjson.Parse(c.text, rawjson.Limits{})
		require.NoError(t, err)
		require.Empty(t, doc.Duplicates())
		require.Equal(t, c.valid, len(s.Validate(doc.Root())) == 0, "%s %s", c.schema, c.text)
		require.Equal(t, c.valid, s.SurelyValid(c.text, rawjson.Limits{}, AllowEmpty, false), "%s %s", c.schema, c.text)
	}
}

func TestSchemaWithAKeyTwice(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(`{"type":"object","properties":{"a":{"type":"string","type":"integer"}}}`), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"schema has a key more than once, and the last one applies: /properties/a/type"}, s.Notes())
	doc, err := rawjson.Parse(`{"a":5}`, rawjson.Limits{})
	require.NoError(t, err)
	require.Empty(t, s.Validate(doc.Root()))
}
