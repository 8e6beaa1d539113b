package e2e

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pkg is a package of a registry. Each has a folder of its own, so that no package
// decides which version of a dependency another one gets.
type pkg struct {
	registry string // npm, pip or golang
	name     string
	with     string // what else its program needs, with spaces between
}

const (
	npm    = "npm"
	pip    = "pip"
	golang = "go"
)

// programs are the Go clients. They are built with the newest version of their framework,
// so this module does not contain their build.
//
//go:embed testdata/go
var programs embed.FS

func (p place) folder(path ...string) string {
	return filepath.Join(append([]string{p.root, p.pkg.registry, filepath.FromSlash(p.pkg.name)}, path...)...)
}

func (p place) npm(path ...string) string {
	return p.folder(append([]string{"node_modules"}, path...)...)
}

func (p place) python() string { return p.folder("bin", "python") }

// install brings the newest version of a package. Scripts of npm packages are not run:
// the programs are in packages of their own for each platform.
func install(ctx context.Context, root string, of pkg) error {
	p := place{root: root, pkg: of}
	if err := os.MkdirAll(p.folder(), 0o755); err != nil {
		return err
	}
	names := append([]string{of.name}, strings.Fields(of.with)...)
	var commands [][]string
	switch of.registry {
	case npm:
		for i := range names {
			names[i] += "@latest"
		}
		commands = [][]string{append([]string{"npm", "install", "--prefix", p.folder(), "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"}, names...)}
	case pip:
		commands = [][]string{
			{"python3", "-m", "venv", p.folder()},
			append([]string{p.python(), "-m", "pip", "install", "--quiet", "--upgrade"}, names...),
		}
	case golang:
		source, err := programs.ReadFile("testdata/go/" + strings.Trim(strings.ReplaceAll(of.name, "/", "-"), "-") + ".go")
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.folder("main.go"), source, 0o644); err != nil {
			return err
		}
		if err := os.WriteFile(p.folder("go.mod"), []byte("module agent\n\ngo 1.26.0\n"), 0o644); err != nil {
			return err
		}
		if strings.Contains(of.with, of.name+"@") {
			names = names[1:] // another version than the newest
		} else {
			names[0] += "@latest"
		}
		commands = [][]string{append([]string{"go", "get"}, names...), {"go", "mod", "tidy"}, {"go", "build", "-o", "agent", "."}}
	}
	for _, args := range commands {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = p.folder()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// version is the version of an installed package.
func version(ctx context.Context, root string, of pkg) (string, error) {
	p := place{root: root, pkg: of}
	var cmd *exec.Cmd
	switch of.registry {
	case pip:
		cmd = exec.CommandContext(ctx, p.python(), "-c", "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))", of.name)
	case golang:
		if _, err := os.Stat(p.folder("agent")); err != nil {
			return "", err
		}
		cmd = exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", of.name)
		cmd.Dir = p.folder()
	default:
		b, err := os.ReadFile(p.npm(of.name, "package.json"))
		if err != nil {
			return "", err
		}
		var about struct{ Version string }
		err = json.Unmarshal(b, &about)
		return about.Version, err
	}
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
