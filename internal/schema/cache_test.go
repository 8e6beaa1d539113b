package schema_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/schema"
)

func TestCacheMakesOnce(t *testing.T) {
	t.Parallel()
	var made atomic.Int32
	c := schema.NewCache(4, func(raw []byte) *schema.Schema {
		made.Add(1)
		s, _ := schema.Compile(raw, schema.Options{})
		return s
	})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			s := c.Get([]byte(`{"type":"object"}`))
			if len(s.Validate(s.Source())) != 0 {
				t.Error("an object is refused")
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, made.Load())
}

func TestCacheIsBoundedAndForgetsTheOldest(t *testing.T) {
	t.Parallel()
	made := map[string]int{}
	c := schema.NewCache(2, func(raw []byte) string { made[string(raw)]++; return "made " + string(raw) })
	for _, name := range []string{"a", "b", "a", "c", "a", "b"} {
		require.Equal(t, "made "+name, c.Get([]byte(name)))
	}
	require.Equal(t, map[string]int{"a": 1, "b": 2, "c": 1}, made)
}

// The key is the content: a changed schema is another one, and the caller's
// bytes are its own.
func TestCacheKeepsNoBytes(t *testing.T) {
	t.Parallel()
	c := schema.NewCache(0, func(raw []byte) string { return string(raw) })
	raw := []byte("x")
	require.Equal(t, "x", c.Get(raw))
	raw[0] = 'y'
	require.Equal(t, "y", c.Get(raw))
	require.Equal(t, "x", c.Get([]byte("x")))
}

func TestCacheConcurrently(t *testing.T) {
	t.Parallel()
	c := schema.NewCache(8, func(raw []byte) string { return string(raw) })
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				want := fmt.Sprint((g + i) % 20)
				if got := c.Get([]byte(want)); got != want {
					t.Errorf("got %s for %s", got, want)
				}
			}
		})
	}
	wg.Wait()
}
