// Command package builds everything that a release consists of besides the tags:
// archives, packages for Debian and RPM, wheels, npm packages, a container image,
// a Homebrew formula, a Helm chart, SBOMs and checksums.
//
//	go run -C tools ./package -proxy DIR -out DIR -version v0.1.0 -time 1767225600
//
// The command is compiled from the module of that version, which the proxy has:
// .ci/release writes one. So a binary of a package equals the binary that `go
// install` makes with the same flags, and two runs write the same bytes.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

const (
	home    = "https://github.com/toolmend/toolmend"
	license = "MIT"
	summary = "Validates and repairs the tool calls of language models"
	about   = `Toolmend makes sure that an agent only gets valid tool calls.

    toolmend run claude                                  # Claude Code behind a gateway of its own
    toolmend serve --upstream https://api.anthropic.com  # a gateway for any agent
    toolmend check calls.jsonl                           # validate the calls of a log

See ` + home + `.
`
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("package", flag.ContinueOnError)
	root := flags.String("root", "..", "the `directory` of the repository")
	proxy := flags.String("proxy", "", "the `directory` with the files of a module proxy")
	out := flags.String("out", "", "the `directory` that gets the packages")
	version := flags.String("version", "", "the `version`, such as v0.1.0")
	seconds := flags.Int64("time", 0, "the modification time of all files, in `seconds` since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if semver.Canonical(*version) != *version || *version == "" {
		return fmt.Errorf("-version %q: not a version like v0.1.0", *version)
	}
	r := &release{root: *root, out: *out, tag: *version, time: time.Unix(*seconds, 0).UTC()}
	if err := r.compile(*proxy); err != nil {
		return err
	}
	return r.write()
}

// release is one run.
type release struct {
	root, out string
	tag       string // the version with its v
	time      time.Time
	binaries  []binary
	license   []byte
	notices   []byte // licenses of what is linked in
}

// binary is the command for one platform.
type binary struct {
	platform
	content []byte
	modules []linked
}

// platform is an operating system and a processor, as Go, Python and npm name them.
type platform struct{ goos, goarch, wheel, npm string }

// platforms are the platforms of a release. A binary without cgo depends on no C library, so one
// wheel serves every Linux. Go 1.26 runs on macOS 12 (go.dev/wiki/MinimumRequirements).
var platforms = []platform{
	{"linux", "amd64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64", "linux-x64"},
	{"linux", "arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64", "linux-arm64"},
	{"darwin", "amd64", "macosx_12_0_x86_64", "darwin-x64"},
	{"darwin", "arm64", "macosx_12_0_arm64", "darwin-arm64"},
	{"windows", "amd64", "win_amd64", "win32-x64"},
	{"windows", "arm64", "win_arm64", "win32-arm64"},
}

// command returns the name of the binary's file.
func (p platform) command() string {
	if p.goos == "windows" {
		return "toolmend.exe"
	}
	return "toolmend"
}

// version returns the version as packages write it, without the v.
func (r *release) version() string { return strings.TrimPrefix(r.tag, "v") }

// name returns the name of a file for one platform, without its extension.
func (r *release) name(p platform) string {
	return fmt.Sprintf("toolmend_%s_%s_%s", r.version(), p.goos, p.goarch)
}

// write makes all files from the binaries.
func (r *release) write() error {
	for _, step := range []func() error{r.archives, r.sboms, r.wheels, r.npm, r.images, r.chart, r.system, r.formula, r.checksums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// save writes a file below the output directory.
func (r *release) save(name string, content []byte) error {
	file := filepath.Join(r.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// checksums lists the hashes of all files in the format of sha256sum.
func (r *release) checksums() error {
	var list strings.Builder
	err := filepath.WalkDir(r.out, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "checksums.txt" {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.out, file)
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(content), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return r.save("checksums.txt", []byte(list.String()))
}
