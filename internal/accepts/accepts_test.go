package accepts_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/accepts"
	"github.com/toolmend/toolmend/internal/rawjson"
)

func TestRecursive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema string
		want   []string
	}{
		"none":         {`{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`, nil},
		"to the root":  {`{"properties":{"child":{"$ref":"#"}}}`, []string{"#"}},
		"to itself":    {`{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/A"}]}}}`, []string{"#/$defs/A"}},
		"two":          {`{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":{"items":{"$ref":"#/$defs/A"}}}}`, []string{"#/$defs/A"}},
		"escaped":      {`{"properties":{"a":{"$ref":"#/$defs/A~1B"}},"$defs":{"A/B":{"items":{"$ref":"#/$defs/A~1B"}}}}`, []string{"#/$defs/A~1B"}},
		"other places": {`{"properties":{"a":{"$ref":"https://example.com/a"},"b":{"$ref":"#/$defs/none"},"$ref":{"type":"string"}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := rawjson.Parse(c.schema, rawjson.Limits{})
			require.NoError(t, err)
			var got []string
			for _, ref := range accepts.Recursive(doc.Root()) {
				got = append(got, ref.Str())
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	doc, err := rawjson.Parse(`{"minimum":0,"exclusiveMinimum":true,"items":[{}],"required":true,"type":"any","anyOf":[],"enum":[],"additionalProperties":false,"x":1,"pattern":1}`, rawjson.Limits{})
	require.NoError(t, err)
	var got []string
	for m := range doc.Root().Each() {
		if accepts.Malformed(m) {
			got = append(got, m.Key())
		}
	}
	require.Equal(t, []string{"exclusiveMinimum", "items", "required", "type", "anyOf", "pattern"}, got)
	doc, err = rawjson.Parse(`{"type":["string","null"]}`, rawjson.Limits{})
	require.NoError(t, err)
	require.False(t, accepts.Malformed(doc.Root().At("/type")))
}
