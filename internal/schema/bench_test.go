package schema_test

import (
	"strings"
	"testing"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/test/ratio"
)

const (
	flatSchema = `{"type":"object","properties":{"city":{"type":"string","minLength":1},"days":{"type":"integer","minimum":1,"maximum":14},
		"units":{"type":"string","enum":["metric","imperial"]},"hourly":{"type":"boolean"},"lang":{"type":"string"}},"required":["city","days"],"additionalProperties":false}`
	flatArgs = `{"city": "Springfield, IL", "days": 7, "units": "metric", "hourly": true, "lang": "en-US-ut"}`

	nestedSchema = `{"type":"object","properties":{
		"id":{"type":"string","pattern":"^[a-z]+-[0-9]+$"},"title":{"type":"string","maxLength":200},"priority":{"enum":["low","medium","high"]},"due":{"type":"string"},
		"owner":{"type":"object","properties":{"name":{"type":"string"},"email":{"type":"string"},"team":{"type":["string","null"]},"active":{"type":"boolean"}},"required":["name","email"]},
		"tags":{"type":"array","items":{"type":"string"},"maxItems":20},
		"steps":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"hours":{"type":"number","minimum":0},"done":{"type":"boolean"},"after":{"type":"array","items":{"type":"integer"}}},"required":["name"],"additionalProperties":false}},
		"limits":{"type":"object","properties":{"budget":{"type":"number"},"currency":{"type":"string","minLength":3,"maxLength":3},"hours":{"type":"integer"}},"required":["budget"]},
		"note":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["id","title","owner","steps"],"additionalProperties":false}`
	nestedArgs = `{"id": "task-4711", "title": "Move the billing service to the new cluster without downtime", "priority": "high", "due": "2026-11-30",
  "owner": {"name": "Ada Lovelace", "email": "ada@example.com", "team": "platform", "active": true},
  "tags": ["billing", "migration", "cluster", "zero-downtime"],
  "steps": [{"name": "Set up the replicas in the new cluster", "hours": 6.5, "done": true, "after": [0]},
    {"name": "Send one percent of the traffic there", "hours": 2, "done": false, "after": [1]},
    {"name": "Move everything and watch", "hours": 12.25, "done": false, "after": [1, 2]}],
  "limits": {"budget": 1250.5, "currency": "EUR", "hours": 40}, "note": "Nobody works on Friday."}`
	twoWrong = `{"city": "Springfield, IL", "days": "7", "unit": "metric", "hourly": true, "lang": "en-US"}`
	sixWrong = `{"city": "", "days": 70, "unit": "metrics", "hourly": "yes", "lang": 5, "units": "metrik"}`
)

func mustCompile(b *testing.B, text string) *schema.Schema {
	b.Helper()
	s, err := schema.Compile([]byte(text), schema.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkValid is the whole look at a valid call: scan, limits, duplicate
// keys, schema, and whether there is anything to strip.
func BenchmarkValid(b *testing.B) {
	large := func(n int) string {
		return `{"id":"a-1","title":"","owner":{"name":"","email":""},"steps":[` + strings.Repeat(`{"name": "Move everything and watch", "hours": 12.25, "done": false},`, n/68) + `{"name":"x"}]}`
	}
	for _, c := range []struct{ name, schema, args string }{
		{"flat5", flatSchema, flatArgs}, {"nested20", nestedSchema, nestedArgs}, {"100KB", nestedSchema, large(100 << 10)}, {"1MB", nestedSchema, large(1 << 20)}, {"10MB", nestedSchema, large(10 << 20)},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := mustCompile(b, c.schema)
			ratio.Run(b, c.args, func() {
				if !s.SurelyValid(c.args, rawjson.Limits{Bytes: -1}, schema.RefuseOptional, false) {
					b.Fatal("not surely valid")
				}
			})
		})
	}
}

// BenchmarkInvalid is an invalid call with all its issues: the first scan, parsing,
// and the scan for all faults.
func BenchmarkInvalid(b *testing.B) {
	for _, c := range []struct {
		name, args string
		issues     int
	}{{"2 issues", twoWrong, 2}, {"6 issues", sixWrong, 6}} {
		b.Run(c.name, func(b *testing.B) {
			s := mustCompile(b, flatSchema)
			ratio.Run(b, c.args, func() {
				if s.SurelyValid(c.args, rawjson.Limits{}, schema.RefuseOptional, false) {
					b.Fatal("surely valid")
				}
				doc, err := rawjson.Parse(c.args, rawjson.Limits{})
				if err != nil || len(s.Validate(doc.Root())) != c.issues {
					b.Fatal("other issues")
				}
			})
		})
	}
}

// BenchmarkCompile is what a tool costs once.
func BenchmarkCompile(b *testing.B) {
	for name, text := range map[string]string{"flat5": flatSchema, "nested20": nestedSchema} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustCompile(b, text)
			}
		})
	}
}
