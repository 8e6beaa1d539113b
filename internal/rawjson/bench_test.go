package rawjson_test

import (
	"strings"
	"testing"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/test/ratio"
)

// benchTexts are arguments of the sizes that tool calls have.
var benchTexts = map[string]string{
	"small": `{"city": "Zürich", "days": 3, "units": "metric", "filter": null, "tags": [], "near": {"lat": 47.37, "lon": 8.54}}`,
	"strings": `{"path": "main.go", "content": "` +
		strings.Repeat(`package main\n\nfunc main() { println(\"hello, world\") }\n`, 200) + `"}`,
	"records": `{"rows": [` + strings.Repeat(`{"id": 9007199254740993, "name": "Ada", "score": 1.5e2, "ok": true, "note": null}, `, 500) + `{}]}`,
}

// BenchmarkParse reports how many times the time of json.Valid a Parse takes
// on the same bytes, which builds no tree.
func BenchmarkParse(b *testing.B) {
	for name, text := range benchTexts {
		b.Run(name, func(b *testing.B) {
			ratio.Run(b, text, func() {
				if _, err := rawjson.Parse(text, rawjson.Limits{}); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
