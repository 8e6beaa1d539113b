// Command release packs the modules of this repository in the form in which a
// module proxy serves them.
//
//	go run -C tools ./release -tree DIR -out DIR -version v0.1.0
//
// The tree is a git work tree that release may commit to; .ci/release makes one.
// There, each go.mod loses its replace directives and requires the released
// version of the repository's other modules, and each go.sum gets their hashes.
// The commits are what the tags of a release point to. The standard output
// lists the tags.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(out)
	tree := flags.String("tree", "", "the git work tree to release, a `directory`")
	proxy := flags.String("out", "", "the `directory` that gets the files of the proxy")
	version := flags.String("version", "", "the `version` of every module, such as v0.1.0")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if semver.Canonical(*version) != *version || *version == "" {
		return fmt.Errorf("-version %q: not a version like v0.1.0", *version)
	}
	dir, err := filepath.Abs(*tree)
	if err != nil {
		return err
	}
	r := &release{tree: dir, proxy: *proxy, version: *version, packed: map[string][]string{}}
	if r.modules, err = find(dir); err != nil {
		return err
	}
	for _, m := range r.modules {
		if err := r.pack(m); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
		fmt.Fprintln(out, path.Join(m.dir, r.version))
	}
	return nil
}

// release is one run.
type release struct {
	tree, proxy, version string
	modules              []*goModule
	packed               map[string][]string // by module path: the lines that a go.sum gets
}

// goModule is one module of the tree.
type goModule struct {
	dir  string // from the tree's root, with slashes; "" is the root
	file *modfile.File
}

func (m *goModule) path() string { return m.file.Module.Mod.Path }

// find returns the modules of a tree, in the order of their directories.
func find(tree string) ([]*goModule, error) {
	var found []*goModule
	err := filepath.WalkDir(tree, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || d.Name() != "go.mod":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(tree, filepath.Dir(name))
		if err != nil {
			return err
		}
		m := &goModule{dir: filepath.ToSlash(dir), file: file}
		if m.dir == "." {
			m.dir = ""
		}
		found = append(found, m)
		return nil
	})
	slices.SortFunc(found, func(a, b *goModule) int { return strings.Compare(a.dir, b.dir) })
	return found, err
}

// find returns the module of the tree with a path, or nil.
func (r *release) find(path string) *goModule {
	if i := slices.IndexFunc(r.modules, func(m *goModule) bool { return m.path() == path }); i >= 0 {
		return r.modules[i]
	}
	return nil
}

// commit records what changed in the tree, if anything did.
func (r *release) commit(message string) error {
	if r.git("diff", "--quiet", "HEAD") == nil {
		return nil
	}
	return r.git("commit", "--quiet", "--all", "--message", message)
}

func (r *release) git(args ...string) error {
	git := exec.Command("git", args...)
	git.Dir = r.tree
	if text, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, text)
	}
	return nil
}
