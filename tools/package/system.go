package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// nfpm writes the packages for Debian and RPM. It is run by version, so that
// neither it nor what it needs is in a go.mod.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0"

// system writes a .deb and a .rpm for each Linux platform. They have the binary and
// the systemd unit, which is off until there is a configuration.
func (r *release) system() error {
	unit, err := os.ReadFile(filepath.Join(r.root, "deploy", "toolmend.service"))
	if err != nil {
		return err
	}
	example, err := os.ReadFile(filepath.Join(r.root, "docs", "toolmend.toml"))
	if err != nil {
		return err
	}
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	at := r.time.Format(time.RFC3339)
	for _, b := range r.binaries {
		if b.goos != "linux" {
			continue
		}
		dir, err := os.MkdirTemp("", "toolmend-nfpm-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		config := fmt.Sprintf(`name: toolmend
arch: %s
platform: linux
version: %s
section: utils
maintainer: The Toolmend authors <toolmend@users.noreply.github.com>
description: %s
homepage: %s
license: %s
mtime: %s
rpm: {buildhost: localhost}
contents:
`, b.goarch, r.tag, summary, home, license, at)
		for _, f := range []file{
			{"usr/bin/toolmend", b.content, true},
			{"usr/lib/systemd/system/toolmend.service", bytes.ReplaceAll(unit, []byte("/usr/local/bin"), []byte("/usr/bin")), false},
			{"usr/share/doc/toolmend/copyright", r.license, false},
			{"usr/share/doc/toolmend/THIRD_PARTY_LICENSES", r.notices, false},
			{"usr/share/doc/toolmend/toolmend.toml", example, false},
		} {
			name := filepath.Join(dir, filepath.Base(f.name))
			if err := os.WriteFile(name, f.content, 0o600); err != nil {
				return err
			}
			config += fmt.Sprintf("- {src: %q, dst: %q, file_info: {mode: 0o%o, owner: root, group: root, mtime: %s}}\n", name, "/"+f.name, f.mode(), at)
		}
		settings := filepath.Join(dir, "nfpm.yaml")
		if err := os.WriteFile(settings, []byte(config), 0o600); err != nil {
			return err
		}
		for _, packager := range []string{"deb", "rpm"} {
			pack := exec.Command("go", "run", nfpm, "package", "--config", settings, "--packager", packager, "--target", out)
			pack.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
			if text, err := pack.CombinedOutput(); err != nil {
				return fmt.Errorf("nfpm %s: %w\n%s", packager, err, text)
			}
		}
	}
	return nil
}

// chart packs the Helm chart with the version of the release.
func (r *release) chart() error {
	files, err := filesOf(filepath.Join(r.root, "deploy", "helm", "toolmend"), "toolmend/")
	if err != nil {
		return err
	}
	for i, f := range files {
		if f.name == "toolmend/Chart.yaml" {
			files[i].content = bytes.ReplaceAll(f.content, []byte("0.0.0"), []byte(r.version()))
		}
	}
	content, err := tgz(files, r.time)
	if err != nil {
		return err
	}
	return r.save("helm/toolmend-"+r.version()+".tgz", content)
}

//go:embed toolmend.rb.tmpl
var formulaText string

// formula writes a Homebrew formula that takes the archives of the release.
func (r *release) formula() error {
	sums := map[string]string{}
	for _, b := range r.binaries {
		if b.goos == "windows" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.out, r.name(b.platform)+".tar.gz"))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		sums[b.goos+"_"+b.goarch] = hex.EncodeToString(sum[:])
	}
	var text strings.Builder
	err := template.Must(template.New("").Option("missingkey=error").Parse(formulaText)).Execute(&text, map[string]any{
		"Summary": summary, "Home": home, "License": license, "Version": r.version(), "Tag": r.tag, "Sums": sums,
		"Systems": map[string]string{"darwin": "on_macos", "linux": "on_linux"}, "Processors": map[string]string{"amd64": "on_intel", "arm64": "on_arm"},
	})
	if err != nil {
		return err
	}
	return r.save("homebrew/toolmend.rb", []byte(text.String()))
}
