package transport

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// TestMemoryIsBounded looks inside: from outside a full memory and an empty one
// differ only in how often a hostile client may try again.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i := range uint64(5 * mostFailed) {
		m.keep(i, 3)
		require.Equal(t, 3, m.recall(i))
	}
	require.Len(t, m.used, mostFailed)
}

func TestMemoryKeys(t *testing.T) {
	t.Parallel()
	m := newMemory()
	request := func(method, url string) *http.Request {
		r, err := http.NewRequest(method, url, nil)
		require.NoError(t, err)
		return r
	}
	one := m.key(request("POST", "http://a/b"), []byte("c"))
	require.Equal(t, one, m.key(request("POST", "http://a/b"), []byte("c")))
	require.NotEqual(t, one, m.key(request("PUT", "http://a/b"), []byte("c")))
	require.NotEqual(t, one, m.key(request("POST", "http://a/bc"), nil))
	require.NotEqual(t, one, m.key(request("POST", "http://a/b"), []byte("d")))
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	require.Len(t, o.Codecs, 5)
	require.Equal(t, 10, o.MaxModelCalls)
	require.EqualValues(t, 64<<20, o.MaxBody)
	o = Options{MaxModelCalls: middleware.Unlimited, MaxBody: 1 << 20}.withDefaults()
	require.Equal(t, middleware.Unlimited, o.MaxModelCalls)
	require.EqualValues(t, 1<<20, o.MaxBody)
}
