package strip_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/ratio"
	"github.com/toolmend/toolmend/strip"
)

// BenchmarkJSON reports how many times the time of json.Valid on the same bytes
// a Stripper takes.
func BenchmarkJSON(b *testing.B) {
	schema := json.RawMessage(`{"properties":{"city":{"type":"string"},"days":{"type":"integer"},"tags":{"type":"array"},
		"near":{"type":"object","properties":{"lat":{},"lon":{},"alt":{}}}},"required":["city"]}`)
	for name, args := range map[string]string{
		"nothing": `{"city": "Oslo", "days": 3, "tags": ["a"], "near": {"lat": 59.9, "lon": 10.75}}`,
		"some":    `{"city": "Oslo", "days": null, "tags": [], "near": {"lat": 59.9, "lon": 10.75, "alt": null}}`,
	} {
		b.Run(name, func(b *testing.B) {
			s, err := strip.New(schema, strip.Options{})
			require.NoError(b, err)
			ratio.Run(b, args, func() {
				if _, _, err := s.JSON(args); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
