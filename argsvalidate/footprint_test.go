package argsvalidate_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// The estimate by which the cache of schemas is bounded is not below what a
// schema takes in a Validator.
func TestFootprint(t *testing.T) {
	join := func(n int, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, ",")
	}
	properties := func(n int) string {
		return `{"properties":{` + join(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer","minimum":%d}`, i, i) }) + `}}`
	}
	for name, text := range map[string]string{
		"small":           `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["city"]}`,
		"20 properties":   properties(20),
		"400 properties":  properties(400),
		"2500 properties": properties(2500),
		"short schemas":   `{"properties":{` + join(2500, func(i int) string { return fmt.Sprintf(`"%d":{}`, i) }) + `}}`,
		"references":      `{"properties":{` + join(400, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d%d"}`, i, i) }) + `},"$defs":{` + join(400, func(i int) string { return fmt.Sprintf(`"d%d":{"type":"string"}`, i) }) + `}}`,
		"enum":            `{"properties":{"p":{"enum":[` + join(5000, func(i int) string { return fmt.Sprintf(`"v%d"`, i) }) + `]}}}`,
		"enum of digits":  `{"properties":{"p":{"enum":[` + join(20_000, func(i int) string { return fmt.Sprint(i) }) + `]}}}`,
		"required":        `{"required":[` + join(20_000, func(i int) string { return fmt.Sprintf(`"n%d"`, i) }) + `]}`,
		"description":     `{"description":"` + strings.Repeat("words ", 30_000) + `"}`,
		"patterns":        `{"patternProperties":{` + join(100, func(i int) string { return fmt.Sprintf(`"(x%d+y){1,20}":{}`, i) }) + `}}`,
		"unknown":         `{` + join(5000, func(i int) string { return fmt.Sprintf(`"k%d":{}`, i) }) + `}`,
		"default":         `{"default":[` + join(50_000, func(i int) string { return "[]" }) + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			const copies = 4
			heap := func() uint64 {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			v := argsvalidate.NewValidator(argsvalidate.Options{})
			tools := make([]middleware.Tool, copies)
			for i := range tools {
				tools[i] = tool(fmt.Sprint("t", i), strings.Replace(text, "{", fmt.Sprintf(`{"$comment":"%d",`, i), 1))
			}
			before := heap()
			for _, tool := range tools {
				for _, args := range []string{`{"p":"v"}`, `{"p1":"x"}`, `{"p":null}`} {
					_, _ = v.Validate(t.Context(), []middleware.Tool{tool}, call("1", tool.Name, args))
				}
			}
			held := (heap() - before) / copies
			t.Logf("%d bytes: %d held, %.1f a byte, estimated %d", len(text), held, float64(held)/float64(len(text)), v.Footprint([]byte(text)))
			require.Less(t, held, uint64(v.Footprint([]byte(text))))
			runtime.KeepAlive(v)
		})
	}
}
