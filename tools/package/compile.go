package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

const (
	own     = "github.com/toolmend/toolmend"
	command = own + "/cmd/toolmend"
)

// linked is a module in a binary. Sum is its hash in the form of a go.sum.
type linked struct{ path, version, sum string }

// compile builds the command for every platform, from the module in the proxy.
func (r *release) compile(proxy string) error {
	proxy, err := filepath.Abs(proxy)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "toolmend-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cache, err := goEnv("GOMODCACHE")
	if err != nil {
		return err
	}
	usual, err := goEnv("GOPROXY")
	if err != nil {
		return err
	}
	goroot, err := goEnv("GOROOT")
	if err != nil {
		return err
	}
	// As in .ci/release: the version must not stay in the cache of the machine.
	modules := filepath.Join(work, "mod")
	environment := append(os.Environ(),
		"GOPATH="+work, "GOMODCACHE="+modules, "GOBIN=", "GOWORK=off", "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-modcacherw", "GONOSUMDB="+own,
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(cache)+"/cache/download,"+usual)
	for _, p := range platforms {
		build := exec.Command("go", "install", "-trimpath", "-ldflags=-s -w", command+"@"+r.tag)
		build.Dir = work
		build.Env = append(environment, "GOOS="+p.goos, "GOARCH="+p.goarch)
		if text, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go install for %s/%s: %w\n%s", p.goos, p.goarch, err, text)
		}
		dir := filepath.Join(work, "bin")
		if p.goos != runtime.GOOS || p.goarch != runtime.GOARCH {
			dir = filepath.Join(dir, p.goos+"_"+p.goarch)
		}
		content, err := os.ReadFile(filepath.Join(dir, p.command()))
		if err != nil {
			return err
		}
		if err := r.add(p, content); err != nil {
			return err
		}
	}
	return r.licenses(modules, goroot)
}

func goEnv(name string) (string, error) {
	text, err := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(text)), err
}

// add keeps the binary of a platform.
func (r *release) add(p platform, content []byte) error {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return err
	}
	b := binary{platform: p, content: content}
	for _, m := range info.Deps {
		b.modules = append(b.modules, linked{m.Path, m.Version, m.Sum})
	}
	b.modules = append(b.modules, linked{"std", strings.TrimPrefix(info.GoVersion, "go"), ""})
	r.binaries = append(r.binaries, b)
	return nil
}

// licenses collects the texts that must go with the binaries, from the modules in a
// module cache and from Go itself.
func (r *release) licenses(modules, goroot string) error {
	var err error
	if r.license, err = os.ReadFile(filepath.Join(r.root, "LICENSE")); err != nil {
		return err
	}
	dirs := map[string]string{}
	for _, b := range r.binaries {
		for _, m := range b.modules {
			if m.path == own {
				continue
			}
			if dirs[m.path+" "+m.version], err = directory(m, modules, goroot); err != nil {
				return err
			}
		}
	}
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		entries, err := os.ReadDir(dirs[name])
		if err != nil {
			return err
		}
		found := false
		for _, e := range entries {
			upper := strings.ToUpper(e.Name())
			license := strings.HasPrefix(upper, "LICEN") || strings.HasPrefix(upper, "COPYING")
			if e.IsDir() || !license && !strings.HasPrefix(upper, "NOTICE") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dirs[name], e.Name()))
			if err != nil {
				return err
			}
			found = found || license
			fmt.Fprintf(&all, "==== %s: %s\n\n%s\n\n", name, e.Name(), bytes.TrimSpace(text))
		}
		if !found {
			return fmt.Errorf("%s has no license file in %s", name, dirs[name])
		}
	}
	r.notices = all.Bytes()
	return nil
}

// directory returns where the source of a module is.
func directory(m linked, modules, goroot string) (string, error) {
	if m.path == "std" {
		return goroot, nil
	}
	path, err := module.EscapePath(m.path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(m.version)
	return filepath.Join(modules, filepath.FromSlash(path)+"@"+version), err
}
