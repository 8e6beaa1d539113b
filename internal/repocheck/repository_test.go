// Package repocheck holds the repository to those of its own rules that no
// linter has: what may import what, that everything exported is documented, that
// long files say why, that links lead somewhere and that the code in Markdown is
// the code that runs.
//
// Each rule is a function over a file tree that returns what it found, one
// problem a line, so that its test can feed it a bad example. TestRepository
// runs all of them over the repository.
package repocheck

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRepository(t *testing.T) {
	t.Parallel()
	repository := open(t, "../..")
	for name, rule := range map[string]rule{
		"imports": imports, "rings": ringed, "docs": undocumented, "sizes": sizes, "words": words, "names": names, "navigation": navigation,
		"examples": examples, "links": links, "decisions": decisions, "exposed": exposed, "demonstrated": demonstrated, "case files": caseFiles, "index of examples": unlisted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, problem := range rule(t, repository) {
				t.Error(problem)
			}
		})
	}
}

// rule returns what a tree has that it must not have, as "file:line: text".
type rule func(testing.TB, tree) []string

// problem puts the place before a text. Line 0 is the file as a whole.
func problem(file string, line int, format string, args ...any) string {
	if line > 0 {
		file = fmt.Sprintf("%s:%d", file, line)
	}
	return file + ": " + fmt.Sprintf(format, args...)
}

// tree is a set of files, by slash-separated paths from the root, sorted.
type tree struct {
	fs.FS
	files []string
}

// open returns what git tracks or would add in the repository at root. Without
// git it is every file, so that an unpacked archive can be checked too.
func open(t testing.TB, root string) tree {
	all := treeOf(t, os.DirFS(root))
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		return all
	}
	listed := make(map[string]bool)
	for name := range strings.SplitSeq(string(out), "\x00") {
		listed[name] = true
	}
	// A file that git lists and that is gone from the disk is not a problem.
	all.files = slices.DeleteFunc(all.files, func(name string) bool { return !listed[name] })
	require.Contains(t, all.files, "go.mod")
	return all
}

// treeOf returns the tree of every regular file but those in .git and those
// that a failed property leaves.
func treeOf(t testing.TB, fsys fs.FS) tree {
	all := tree{FS: fsys}
	require.NoError(t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || strings.HasSuffix(name, "testdata/rapid")):
			return fs.SkipDir
		case d.Type().IsRegular():
			all.files = append(all.files, name)
		}
		return nil
	}))
	slices.Sort(all.files)
	return all
}

// read returns the content of a file.
func (all tree) read(t testing.TB, name string) string {
	text, err := fs.ReadFile(all, name)
	require.NoError(t, err)
	return string(text)
}

// having returns the files with an extension, but for those in testdata.
func (all tree) having(ext string) []string {
	var files []string
	for _, f := range all.files {
		if path.Ext(f) == ext && !slices.Contains(strings.Split(path.Dir(f), "/"), "testdata") {
			files = append(files, f)
		}
	}
	return files
}

// isTest reports whether only go test compiles the file.
func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }
