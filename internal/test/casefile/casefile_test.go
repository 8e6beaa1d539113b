package casefile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// failing is a test that notes how it fails. A fatal failure ends it with a panic.
type failing struct {
	testing.TB
	name   string
	failed []string
}

func (f *failing) Name() string { return f.name }
func (f *failing) Errorf(format string, args ...any) {
	f.failed = append(f.failed, fmt.Sprintf(format, args...))
}
func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(f.failed)
}
func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

func TestFailures(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("testdata/TestX", 0o755))
	require.NoError(t, os.WriteFile("testdata/TestX/a-b.txtar", []byte("-- before --\none\ntwo\n"), 0o644))
	fails := func(name string, f func(testing.TB)) string {
		x := &failing{TB: t, name: name}
		func() {
			defer func() { _ = recover() }()
			f(x)
		}()
		return strings.Join(x.failed, "\n")
	}
	require.Empty(t, fails("TestX/a b", func(t testing.TB) { Expect(t, "before", "one\ntwo") }))
	require.Contains(t, fails("TestX/a b", func(t testing.TB) { Expect(t, "before", "one\n2") }), "section \"before\" of 2 lines, line 2:\n\"two\"\nis, of 2 lines:\n\"2\"")
	require.Contains(t, fails("TestX/a b", func(t testing.TB) { Expect(t, "before", "") }), "is, of 1 lines:\n\"\"")
	require.Contains(t, fails("TestX/a b", func(t testing.TB) { Body(t, "after") }), `a-b.txtar has no section "after"`)
	require.Contains(t, fails("TestX/c", func(t testing.TB) { Body(t, "before") }), "c.txtar: no such file")

	require.Empty(t, fails("TestX", func(t testing.TB) { OneForEach(t, slices.Values([]string{"a b"})) }))
	require.Contains(t, fails("TestX", func(t testing.TB) { OneForEach(t, slices.Values([]string{"a b", "a-b"})) }), `"a-b" has no file of its own`)
	require.Contains(t, fails("TestX", func(t testing.TB) { OneForEach(t, slices.Values([]string{})) }), "files without a case")
}
