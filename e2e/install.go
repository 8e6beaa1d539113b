package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pkg is a package of a registry.
type pkg struct {
	registry string // npm or pip
	name     string
}

const (
	npm = "npm"
	pip = "pip"
)

func (p place) npm(path ...string) string {
	return filepath.Join(append([]string{p.root, "npm", "node_modules"}, path...)...)
}

func (p place) python() string { return filepath.Join(p.root, "python", "bin", "python") }

// install brings the newest version of all packages below root. Scripts of npm
// packages are not run: the programs are in packages of their own for each
// platform.
func install(ctx context.Context, root string, pkgs []pkg) error {
	var fromNPM, fromPip []string
	for _, p := range pkgs {
		switch p.registry {
		case npm:
			fromNPM = append(fromNPM, p.name+"@latest")
		case pip:
			fromPip = append(fromPip, p.name)
		}
	}
	p := place{root: root}
	if err := os.MkdirAll(filepath.Join(root, "npm"), 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		append([]string{"npm", "install", "--prefix", filepath.Join(root, "npm"), "--ignore-scripts", "--no-audit",
			"--no-fund", "--no-save"}, fromNPM...),
		{"python3", "-m", "venv", filepath.Join(root, "python")},
		append([]string{p.python(), "-m", "pip", "install", "--quiet", "--upgrade"}, fromPip...),
	} {
		out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// version is the version of an installed package.
func version(ctx context.Context, root string, p pkg) (string, error) {
	at := place{root: root}
	if p.registry == pip {
		out, err := exec.CommandContext(ctx, at.python(), "-c",
			"import importlib.metadata as m, sys; print(m.version(sys.argv[1]))", p.name).Output()
		return strings.TrimSpace(string(out)), err
	}
	b, err := os.ReadFile(at.npm(p.name, "package.json"))
	if err != nil {
		return "", err
	}
	var about struct{ Version string }
	err = json.Unmarshal(b, &about)
	return about.Version, err
}
