package schema_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/schema"
)

// A compiled schema keeps its text, its nodes and nothing of jsonschema/v5's tree. The test
// does not run in parallel with others, which would change the heap.
func TestHeapOfSchemas(t *testing.T) {
	const count = 500
	for _, c := range []struct {
		name, text string
		most       int // bytes for each schema
	}{{"flat5", flatSchema, 9_000}, {"nested20", nestedSchema, 38_000}} {
		kept := make([]*schema.Schema, count)
		before := heap()
		for i := range kept {
			s, err := schema.Compile([]byte(strings.Replace(c.text, "}", `,"title":"`+strconv.Itoa(i)+`"}`, 1)), schema.Options{})
			require.NoError(t, err)
			kept[i] = s
		}
		each := int(heap()-before) / count
		runtime.KeepAlive(kept)
		t.Logf("%s: %d bytes of heap for each of %d schemas", c.name, each, count)
		require.Less(t, each, c.most, c.name)
	}
}

// heap returns the bytes of all reachable objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
