package codec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
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

// TestKnownPrefix: of each beginning of a list of messages that has come before, all is known up to
// the last mark in it, whatever follows.
func TestKnownPrefix(t *testing.T) {
	t.Parallel()
	k := &Known{}
	end := func(body string) int {
		in := &Input{Raw: body, Known: k, Client: "c", Defer: true}
		require.NoError(t, in.Borrow("d", "messages", func(object rawjson.Value) error {
			in.Keep(object.Get("messages"), nil, nil)
			return nil
		}))
		return in.lists[0].end
	}
	var elements []string
	for i := range 200 {
		elements = append(elements, fmt.Sprintf(`{"role":"user","content":"%d %s"}`, i, strings.Repeat("x", 37*i%400)))
	}
	const open = `{"messages":[`
	require.Zero(t, end(open+strings.Join(elements, ",")+`]}`))
	for n := range len(elements) + 1 {
		prefix, want := "["+strings.Join(elements[:n], ","), 0
		for at, last := 1, 0; last < n; last++ {
			if at += len(elements[last]); at <= len(prefix)/markEach*markEach-1 {
				want = at
			}
			at++
		}
		got := end(open + prefix[1:] + strings.Repeat(" ", 60*markEach) + `]}`) // the steps go too far
		require.GreaterOrEqual(t, got, want, n)
		require.LessOrEqual(t, got, len(prefix), n)
	}
}
