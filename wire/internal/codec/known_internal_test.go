package codec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// TestShardIsBounded: large marks are not kept, and the last one before a rotation counts.
func TestShardIsBounded(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]mark{
		"a large tool": {text: strings.Repeat("x", 1<<20)}, "a tool of 100 KB": {text: strings.Repeat("x", 100<<10)},
		"many small tools": {text: "{}", tools: make([]middleware.Tool, 300)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sh shard
			for i := range uint64(200) {
				sh.put(sum{i}, m)
			}
			bytes := 0
			for _, kept := range []map[sum]mark{sh.young, sh.old} {
				for _, m := range kept {
					bytes += 3*len(m.text) + 512*len(m.tools)
				}
			}
			require.LessOrEqual(t, bytes, 2*maxShard)
		})
	}
}
