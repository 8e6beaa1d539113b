package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// released returns what a release writes besides what nfpm does, for binaries that are a
// few bytes.
func released(t *testing.T, tag string) *release {
	t.Helper()
	r := &release{root: "../..", out: t.TempDir(), tag: tag, time: time.Unix(1767225600, 0).UTC(), license: []byte("L"), notices: []byte("N")}
	for _, p := range platforms {
		r.binaries = append(r.binaries, binary{p, []byte("for " + p.npm), []linked{
			{"example.org/m", "v1.2.3", "h1:" + base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))}, {"std", "1.26.0", ""},
		}})
	}
	for _, step := range []func() error{r.archives, r.sboms, r.wheels, r.npm, r.images, r.chart, r.formula, r.checksums} {
		require.NoError(t, step())
	}
	return r
}

// contents returns the files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		files[filepath.ToSlash(strings.TrimPrefix(name, dir+string(filepath.Separator)))] = string(text)
		return err
	}))
	return files
}

// entry is a file of an archive: the content, and whether it runs.
type entry struct {
	content string
	runs    bool
}

func unzip(t *testing.T, text string) map[string]entry {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	files := map[string]entry{}
	for _, f := range z.File {
		require.Equal(t, int64(1767225600), f.Modified.Unix(), f.Name)
		r, err := f.Open()
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		files[f.Name] = entry{string(content), f.Mode().Perm() == 0o755}
	}
	return files
}

func untar(t *testing.T, text string) map[string]entry {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(text))
	require.NoError(t, err)
	files := map[string]entry{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		require.Equal(t, int64(1767225600), h.ModTime.Unix(), h.Name)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		files[h.Name] = entry{string(content), h.Mode == 0o755}
	}
}

// TestReproducible holds that the place of the files does not change them.
func TestReproducible(t *testing.T) {
	t.Parallel()
	files := contents(t, released(t, "v0.2.0").out)
	require.Equal(t, files, contents(t, released(t, "v0.2.0").out))
	for name, text := range files {
		if name != "checksums.txt" {
			require.Contains(t, files["checksums.txt"], fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(text)), name))
		}
	}
}

func TestArchives(t *testing.T) {
	t.Parallel()
	files := contents(t, released(t, "v0.2.0").out)
	for _, p := range platforms {
		read, name := untar, fmt.Sprintf("toolmend_0.2.0_%s_%s.tar.gz", p.goos, p.goarch)
		if p.goos == "windows" {
			read, name = unzip, strings.Replace(name, ".tar.gz", ".zip", 1)
		}
		require.Contains(t, files, name)
		archive := read(t, files[name])
		require.Equal(t, entry{"for " + p.npm, true}, archive[p.command()])
		require.Equal(t, entry{"N", false}, archive["THIRD_PARTY_LICENSES"])
		require.Len(t, archive, 5)
	}
}

// TestWheels holds what installers check: the tags of the name are in WHEEL, and RECORD
// has the hash and the size of each file.
func TestWheels(t *testing.T) {
	t.Parallel()
	files := contents(t, filepath.Join(released(t, "v0.2.0-rc.1").out, "python"))
	require.Len(t, files, len(platforms))
	for _, p := range platforms {
		name := "toolmend-0.2.0rc1-py3-none-" + p.wheel + ".whl"
		require.Contains(t, files, name)
		wheel := unzip(t, files[name])
		require.Equal(t, entry{"for " + p.npm, true}, wheel["toolmend-0.2.0rc1.data/scripts/"+p.command()])
		require.Equal(t, "VERSION = \"v0.2.0-rc.1\"", strings.Split(wheel["toolmend/_version.py"].content, "  #")[0])
		for _, module := range []string{"__init__.py", "__main__.py", "_child.py", "langchain.py", "pydantic_ai.py", "py.typed"} {
			require.Contains(t, wheel, "toolmend/"+module)
		}
		const info = "toolmend-0.2.0rc1.dist-info/"
		require.Contains(t, wheel[info+"METADATA"].content, "Metadata-Version: 2.4\nName: toolmend\nVersion: 0.2.0rc1\n")
		var tags []string
		for _, m := range regexp.MustCompile(`(?m)^Tag: py3-none-(.*)$`).FindAllStringSubmatch(wheel[info+"WHEEL"].content, -1) {
			tags = append(tags, m[1])
		}
		require.Equal(t, p.wheel, strings.Join(tags, "."))
		require.Contains(t, wheel[info+"WHEEL"].content, "Root-Is-Purelib: false\n")

		rows, err := csv.NewReader(strings.NewReader(wheel[info+"RECORD"].content)).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, len(wheel))
		for _, row := range rows {
			if row[0] == info+"RECORD" {
				require.Equal(t, []string{"", ""}, row[1:])
				continue
			}
			sum := sha256.Sum256([]byte(wheel[row[0]].content))
			require.Equal(t, "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]), row[1])
			require.Equal(t, fmt.Sprint(len(wheel[row[0]].content)), row[2])
		}
	}
}

func TestPythonVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"1.2.3": "1.2.3", "1.2.3-alpha.1": "1.2.3a1", "1.2.3-beta2": "1.2.3b2", "1.2.3-rc.10": "1.2.3rc10",
		"1.2.3-rc": "", "1.2.3-preview.1": "", "1.2.3+build": "",
	} {
		got, err := pythonVersion(version)
		require.Equal(t, want, got)
		require.Equal(t, want == "", err != nil, version)
	}
}

func TestNpm(t *testing.T) {
	t.Parallel()
	files := contents(t, filepath.Join(released(t, "v0.2.0").out, "npm"))
	require.Len(t, files, len(platforms)+1)
	read := func(name string) (m manifest, archive map[string]entry) {
		archive = untar(t, files[name])
		require.NoError(t, json.Unmarshal([]byte(archive["package/package.json"].content), &m))
		require.Equal(t, "0.2.0", m.Version)
		require.Equal(t, "git+https://github.com/toolmend/toolmend.git", m.Repository["url"], "provenance needs it")
		return m, archive
	}
	main, archive := read("toolmend-0.2.0.tgz")
	require.Equal(t, map[string]string{"toolmend": "toolmend.js"}, main.Bin)
	require.Equal(t, entry{string(launcher), true}, archive["package/toolmend.js"])
	for _, e := range main.Exports {
		require.Contains(t, archive, "package/"+strings.TrimPrefix(e.Types, "./"))
		require.Contains(t, archive, "package/"+strings.TrimPrefix(e.Default, "./"))
	}
	require.Contains(t, archive["package/index.mjs"].content, `VERSION = "v0.2.0"`)
	require.Contains(t, archive["package/index.mjs"].content, "./chat.mjs")
	require.Contains(t, archive, "package/chat.mjs")
	require.Len(t, main.OptionalPackages, len(platforms))
	require.NotContains(t, archive["package/package.json"].content, "scripts", "nothing runs at install time")
	for _, p := range platforms {
		m, archive := read("toolmend-" + p.npm + "-0.2.0.tgz")
		require.Equal(t, "0.2.0", main.OptionalPackages[m.Name])
		require.Equal(t, "@toolmend/"+m.OS[0]+"-"+m.CPU[0], m.Name)
		require.Equal(t, "@toolmend/"+p.npm, m.Name)
		require.Equal(t, entry{"for " + p.npm, true}, archive["package/bin/"+p.command()])
	}
}

func TestSBOM(t *testing.T) {
	t.Parallel()
	files := contents(t, released(t, "v0.2.0").out)
	var sbom struct {
		Metadata   struct{ Component component }
		Components []component
	}
	require.NoError(t, json.Unmarshal([]byte(files["toolmend_0.2.0_linux_amd64.cdx.json"]), &sbom))
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte("for linux-x64"))), sbom.Metadata.Component.Hashes[0].Content)
	require.Equal(t, "pkg:golang/example.org/m@v1.2.3", sbom.Components[0].PURL)
	require.Equal(t, strings.Repeat("0", 64), sbom.Components[0].Hashes[0].Content)
	require.Equal(t, "pkg:golang/std@1.26.0", sbom.Components[1].PURL)
}

func TestFormula(t *testing.T) {
	t.Parallel()
	files := contents(t, released(t, "v0.2.0").out)
	formula := files["homebrew/toolmend.rb"]
	for _, p := range platforms[:4] {
		name := fmt.Sprintf("toolmend_0.2.0_%s_%s.tar.gz", p.goos, p.goarch)
		require.Contains(t, formula, fmt.Sprintf(
			"url \"https://github.com/toolmend/toolmend/releases/download/v0.2.0/%s\"\n      sha256 \"%x\"\n", name, sha256.Sum256([]byte(files[name]))))
	}
}

func TestChart(t *testing.T) {
	t.Parallel()
	files := contents(t, released(t, "v0.2.0").out)
	chart := untar(t, files["helm/toolmend-0.2.0.tgz"])
	require.Contains(t, chart["toolmend/Chart.yaml"].content, "\nversion: 0.2.0\nappVersion: \"0.2.0\"\n")
	require.Contains(t, chart, "toolmend/templates/deployment.yaml")
}

// TestLicenses holds that the texts of everything that a binary contains are found.
func TestLicenses(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	content, err := os.ReadFile(self)
	require.NoError(t, err)
	r := &release{root: "../.."}
	require.NoError(t, r.add(platforms[0], content))
	modules, err := goEnv("GOMODCACHE")
	require.NoError(t, err)
	goroot, err := goEnv("GOROOT")
	require.NoError(t, err)
	require.NoError(t, r.licenses(modules, goroot))
	for _, want := range []string{"==== github.com/google/go-containerregistry v", "==== golang.org/x/mod v", "==== std 1."} {
		require.True(t, strings.Contains(string(r.notices), want), want)
	}
	require.False(t, strings.Contains(string(r.notices), "==== "+own+" "))
	require.True(t, bytes.HasPrefix(r.license, []byte("MIT License")))

	dir := t.TempDir()
	r.binaries[0].modules = []linked{{"example.org/m", "v1.0.0", ""}}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "example.org", "m@v1.0.0"), 0o755))
	require.ErrorContains(t, r.licenses(dir, goroot), "example.org/m v1.0.0 has no license file")
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "v0.1", "0.1.0"} {
		require.ErrorContains(t, run([]string{"-version", version}), "not a version")
	}
	r := &release{}
	require.Error(t, r.add(platforms[0], []byte("no program")))
}
