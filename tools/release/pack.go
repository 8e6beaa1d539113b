package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// pack writes the files of a module to the proxy. The modules of the tree that
// it requires come first, because its go.sum holds their hashes.
func (r *release) pack(m *goModule) error {
	if _, ok := r.packed[m.path()]; ok {
		return nil
	}
	r.packed[m.path()] = nil
	var sums []string
	for _, required := range m.file.Require {
		dep := r.find(required.Mod.Path)
		if dep == nil {
			continue
		}
		if err := r.pack(dep); err != nil {
			return fmt.Errorf("%s: %w", dep.path(), err)
		}
		if r.packed[dep.path()] == nil {
			return fmt.Errorf("%s requires it in turn: neither can have the hash of the other", dep.path())
		}
		sums = append(sums, r.packed[dep.path()]...)
	}
	if err := r.edit(m, sums); err != nil {
		return err
	}
	if err := r.commit("Release " + m.path() + " " + r.version); err != nil {
		return err
	}
	return r.write(m)
}

// edit turns go.mod and go.sum into the files of a release.
func (r *release) edit(m *goModule, sums []string) error {
	dir := filepath.Join(r.tree, filepath.FromSlash(m.dir))
	for _, replaced := range slices.Clone(m.file.Replace) {
		if r.find(replaced.Old.Path) == nil {
			return fmt.Errorf("replaces %s: go install refuses a module with a replace directive", replaced.Old.Path)
		}
		if err := m.file.DropReplace(replaced.Old.Path, replaced.Old.Version); err != nil {
			return err
		}
	}
	for _, required := range m.file.Require {
		if r.find(required.Mod.Path) != nil {
			if err := m.file.AddRequire(required.Mod.Path, r.version); err != nil {
				return err
			}
		}
	}
	m.file.Cleanup()
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644); err != nil || len(sums) == 0 {
		return err
	}
	sumFile := filepath.Join(dir, "go.sum")
	old, err := os.ReadFile(sumFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := append(strings.Split(strings.TrimSpace(string(old)), "\n"), sums...)
	slices.Sort(lines)
	return os.WriteFile(sumFile, []byte(strings.TrimSpace(strings.Join(slices.Compact(lines), "\n"))+"\n"), 0o644)
}

// write adds the module to the proxy as its last commit has it, and notes its
// hashes.
//
// The layout follows the GOPROXY protocol (go.dev/ref/mod#goproxy-protocol).
func (r *release) write(m *goModule) error {
	escaped, err := module.EscapePath(m.path())
	if err != nil {
		return err
	}
	dir := filepath.Join(r.proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": r.version, "Time": time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := zip.CreateFromVCS(&packed, module.Version{Path: m.path(), Version: r.version}, r.tree, "HEAD", m.dir); err != nil {
		return err
	}
	file := filepath.Join(dir, r.version)
	for name, content := range map[string][]byte{
		file + ".info": info, file + ".mod": text, file + ".zip": packed.Bytes(),
		filepath.Join(dir, "list"): []byte(r.version + "\n"),
	} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return r.note(m, file)
}

// note keeps the lines of a go.sum for the module.
func (r *release) note(m *goModule, file string) error {
	all, err := dirhash.HashZip(file+".zip", dirhash.Hash1)
	if err != nil {
		return err
	}
	mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(file + ".mod") })
	if err != nil {
		return err
	}
	r.packed[m.path()] = []string{
		fmt.Sprintf("%s %s %s", m.path(), r.version, all),
		fmt.Sprintf("%s %s/go.mod %s", m.path(), r.version, mod),
	}
	return nil
}
