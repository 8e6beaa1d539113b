package serve

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatchFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.toml")
	require.NoError(t, os.WriteFile(path, []byte("a"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		changed, stop := watchFile(path, time.Second)
		defer stop()
		expect := func(want bool) {
			t.Helper()
			select {
			case <-changed:
				require.True(t, want)
			case <-time.After(2500 * time.Millisecond): // not at a tick, when the file is looked at
				require.False(t, want)
			}
		}
		expect(false)
		require.NoError(t, os.WriteFile(path, []byte("ab"), 0o600))
		expect(true)
		expect(false)
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0))) // the same size
		expect(true)
		require.NoError(t, os.Remove(path))
		expect(false)
		require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
		expect(true)
	})
	changed, stop := watchFile("", time.Second)
	require.Nil(t, changed)
	stop()
}
