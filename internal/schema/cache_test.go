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
	c := schema.NewCache(1<<20, func(raw []byte) (*schema.Schema, int) {
		made.Add(1)
		s, _ := schema.Compile(raw, schema.Options{})
		return s, 1
	})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			s := c.Get([]byte(`{"type":"object"}`))
			if len(s.Validate(s.View().Root().Value)) != 0 {
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
	c := schema.NewCache(2, func(raw []byte) (string, int) { made[string(raw)]++; return "made " + string(raw), 1 })
	for _, name := range []string{"a", "b", "a", "c", "a", "b"} {
		require.Equal(t, "made "+name, c.Get([]byte(name)))
	}
	require.Equal(t, map[string]int{"a": 1, "b": 2, "c": 1}, made)
}

// The key is the content: a changed schema is another one, and the caller's
// bytes are its own.
func TestCacheKeepsNoBytes(t *testing.T) {
	t.Parallel()
	c := schema.NewCache(0, func(raw []byte) (string, int) { return string(raw), 1 })
	raw := []byte("x")
	require.Equal(t, "x", c.Get(raw))
	raw[0] = 'y'
	require.Equal(t, "y", c.Get(raw))
	require.Equal(t, "x", c.Get([]byte("x")))
}

func TestCacheConcurrently(t *testing.T) {
	t.Parallel()
	c := schema.NewCache(8, func(raw []byte) (string, int) { return string(raw), 1 })
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

// What is kept is bounded by bytes: a large value takes the place of many small
// ones, and one past the bound is not kept.
func TestCacheIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	made := map[string]int{}
	c := schema.NewCache(10, func(raw []byte) (string, int) { made[string(raw)]++; return string(raw), len(raw) })
	for _, name := range []string{"a", "b", "c", "d", "123456789", "d", "a", "a", "12345678901", "12345678901", "a"} {
		require.Equal(t, name, c.Get([]byte(name)))
	}
	require.Equal(t, map[string]int{"a": 3, "b": 1, "c": 1, "d": 1, "123456789": 1, "12345678901": 2}, made)
}
