// Package repocheck holds the repository to its own rules: what may import
// what, that everything exported is documented, that long files say why, that
// the README shows code that runs. Each rule is a function over a file tree
// that returns what it found, so that its test can feed it a bad example; one
// test runs them all over the repository.
package repocheck

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Problem is one place where the tree breaks a rule.
type Problem struct {
	File string // from the root; a directory where a package as a whole is meant
	Line int    // from 1; 0: the file as a whole
	Text string // what is wrong
}

// String returns the problem in the form that editors make a link of.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Tree is the set of files that a check looks at, with slash-separated paths
// from the root, sorted.
type Tree struct {
	FS    fs.FS
	Files []string
}

// Open returns the tree of the repository at root: what git tracks or would
// add. Without git it is every file but .git, so that an unpacked archive can
// be checked too.
func Open(root string) (Tree, error) {
	t, err := TreeOf(os.DirFS(root))
	if err != nil {
		return Tree{}, err
	}
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = root
	if out, err := git.Output(); err == nil {
		listed := make(map[string]bool)
		for _, name := range strings.Split(string(out), "\x00") {
			listed[name] = true
		}
		// A file that git lists and that is gone from the disk is no problem.
		t.Files = slices.DeleteFunc(t.Files, func(name string) bool { return !listed[name] })
	}
	return t, nil
}

// TreeOf returns the tree of every regular file in fsys but those in .git.
func TreeOf(fsys fs.FS) (Tree, error) {
	t := Tree{FS: fsys}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git", d.Name() == "rapid" && path.Base(path.Dir(name)) == "testdata": // what a failed property leaves
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			t.Files = append(t.Files, name)
		}
		return nil
	})
	slices.Sort(t.Files)
	return t, err
}

// Root returns the directory above dir that holds the file name, or dir itself.
// It returns "" if there is none.
func Root(dir, name string) string {
	for {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// goFiles returns the Go files outside testdata.
func (t Tree) goFiles() []string {
	var files []string
	for _, f := range t.Files {
		if path.Ext(f) == ".go" && !inTestdata(f) {
			files = append(files, f)
		}
	}
	return files
}

// read returns the content of a file.
func (t Tree) read(name string) ([]byte, error) { return fs.ReadFile(t.FS, name) }

// text returns a file's content, and false if it is not text.
func (t Tree) text(name string) ([]byte, bool, error) {
	b, err := t.read(name)
	return b, err == nil && bytes.IndexByte(b, 0) < 0, err
}

// inTestdata reports whether the go command passes over the file for where it
// stands.
func inTestdata(file string) bool {
	return slices.Contains(strings.Split(path.Dir(file), "/"), "testdata")
}

// isTest reports whether only go test compiles the file.
func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }
