package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	require.Len(t, o.Codecs, 5)
	require.Equal(t, 10, o.MaxModelCalls)
	require.EqualValues(t, 64<<20, o.MaxBody)
	require.Equal(t, time.Minute, o.ReaskTimeout)
	o = Options{MaxModelCalls: middleware.Unlimited, MaxBody: 1 << 20}.withDefaults()
	require.Equal(t, middleware.Unlimited, o.MaxModelCalls)
	require.EqualValues(t, 1<<20, o.MaxBody)
}
