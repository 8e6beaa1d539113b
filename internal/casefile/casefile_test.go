package casefile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bodies with and without line ends, with carriage returns and with spaces at the
// end of a line are read as they were written.
func TestCaseFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	bodies := map[string]string{"a": "{}", "b": "data: x  \r\n\r\n", "c": "", "d": "one \ntwo ", "e": "\n\n", "f": "\r\r \r"}
	const file = "-- a --\n{}\n" + "-- b --\ndata: x  ␍\n␍\n\n" + "-- c --\n\n" + "-- d --\none␠\ntwo␠\n" + "-- e --\n\n\n\n" + "-- f --\n␍␍ ␍\n"

	require.NoError(t, os.MkdirAll(filepath.Join(dir, "testdata", t.Name()), 0o755))
	path := filepath.Join(dir, "testdata", t.Name(), "every-body.txtar")
	t.Run("every: body", func(t *testing.T) {
		require.NoError(t, os.WriteFile(path, []byte("-- a --\nold\n"), 0o644))
		*update = true
		defer func() { *update = false }()
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			Expect(t, name, bodies[name])
		}
		written, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, file, string(written))
	})
	OneForEach(t, slices.Values([]string{"every: body"}))

	require.NoError(t, os.Rename(path, filepath.Join(dir, "testdata", t.Name()+".txtar")))
	for name, body := range bodies {
		Expect(t, name, body)
		require.Equal(t, body, Body(t, name))
	}
}
