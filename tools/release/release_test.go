package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	rootMod = "module example.org/m\n\ngo 1.26.0\n"
	subMod  = "module example.org/m/cmd/sub\n\ngo 1.26.0\n\nrequire (\n\texample.org/m v0.0.0\n\texample.org/other v1.2.0\n)\n\nreplace example.org/m => ../..\n"
	subSum  = "example.org/other v1.2.0 h1:x=\nexample.org/other v1.2.0/go.mod h1:y=\n"
)

// tree makes a git work tree of name, content pairs on top of a repository of
// two modules, the second of which requires the first.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		"go.mod": rootMod, "m.go": "package m\n", "LICENSE": "free\n", "testdata/go.mod": "not a module",
		"cmd/sub/go.mod": subMod, "cmd/sub/go.sum": subSum, "cmd/sub/main.go": "package main\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	for _, args := range [][]string{
		{"init", "--quiet"}, {"config", "user.name", "n"}, {"config", "user.email", "e"}, {"add", "--all"}, {"commit", "--quiet", "-m", "all"},
	} {
		git := exec.Command("git", args...)
		git.Dir = dir
		text, err := git.CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	return dir
}

// unzip returns the files of a module's zip by their names in the module.
func unzip(t *testing.T, file, prefix string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer z.Close()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		files[strings.TrimPrefix(f.Name, prefix)] = string(text)
	}
	return files
}

func TestRelease(t *testing.T) {
	t.Parallel()
	dir, proxy := tree(t, nil), t.TempDir()
	var tags bytes.Buffer
	require.NoError(t, run([]string{"-tree", dir, "-out", proxy, "-version", "v0.1.0"}, &tags))
	require.Equal(t, "v0.1.0\ncmd/sub/v0.1.0\n", tags.String())

	root := filepath.Join(proxy, "example.org", "m", "@v")
	require.Equal(t, map[string]string{"go.mod": rootMod, "m.go": "package m\n", "LICENSE": "free\n"},
		unzip(t, filepath.Join(root, "v0.1.0.zip"), "example.org/m@v0.1.0/"))

	sub := filepath.Join(proxy, "example.org", "m", "cmd", "sub", "@v")
	files := unzip(t, filepath.Join(sub, "v0.1.0.zip"), "example.org/m/cmd/sub@v0.1.0/")
	want := strings.ReplaceAll(strings.TrimSuffix(subMod, "\nreplace example.org/m => ../..\n"), "v0.0.0", "v0.1.0")
	require.Equal(t, want, files["go.mod"])
	require.Equal(t, "free\n", files["LICENSE"], "of the repository, as the go command adds it")
	require.Regexp(t, `^example\.org/m v0\.1\.0 h1:\S{44}\nexample\.org/m v0\.1\.0/go\.mod h1:\S{44}\n`, files["go.sum"])
	require.Contains(t, files["go.sum"], subSum)

	for name, text := range map[string]string{"list": "v0.1.0\n", "v0.1.0.mod": want} {
		got, err := os.ReadFile(filepath.Join(sub, name))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	info, err := os.ReadFile(filepath.Join(sub, "v0.1.0.info"))
	require.NoError(t, err)
	require.Regexp(t, `^\{"Time":"[^"]+Z","Version":"v0\.1\.0"\}$`, string(info))
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files   map[string]string
		version string
		want    string
	}{
		"a replaced module of somebody else": {
			map[string]string{"cmd/sub/go.mod": subMod + "\nreplace example.org/other => ../other\n"}, "v0.1.0", "replaces example.org/other",
		},
		"modules that require each other": {
			map[string]string{"go.mod": rootMod + "\nrequire example.org/m/cmd/sub v0.0.0\n"}, "v0.1.0", "requires it in turn",
		},
		"no version":   {nil, "", "not a version"},
		"half of one":  {nil, "v0.1", "not a version"},
		"a bad go.mod": {map[string]string{"cmd/sub/go.mod": "modul x\n"}, "v0.1.0", "go.mod:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run([]string{"-tree", tree(t, c.files), "-out", t.TempDir(), "-version", c.version}, io.Discard)
			require.ErrorContains(t, err, c.want)
		})
	}
}
