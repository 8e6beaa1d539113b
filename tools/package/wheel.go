package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wheels writes a wheel for each platform. The binary is a script of the wheel, so
// installers copy it to the folder of the commands and no Python runs when it does. The modules of
// the folder python start it as a child process.
//
// The format is packaging.python.org/en/latest/specifications/binary-distribution-format.
func (r *release) wheels() error {
	version, err := pythonVersion(r.version())
	if err != nil {
		return err
	}
	modules, err := r.modules("python/toolmend", "toolmend/", ".py", ".typed")
	if err != nil {
		return err
	}
	for _, b := range r.binaries {
		content, err := zipped(wheel(b, version, r.license, r.notices, modules), r.time)
		if err != nil {
			return err
		}
		if err := r.save(fmt.Sprintf("python/toolmend-%s-py3-none-%s.whl", version, b.wheel), content); err != nil {
			return err
		}
	}
	return nil
}

// modules returns the files of a folder of the repository with these extensions, below another
// folder. In each, the release takes the place of the empty VERSION.
func (r *release) modules(from, to string, extensions ...string) (files []file, err error) {
	all, err := os.ReadDir(filepath.Join(r.root, from))
	for _, e := range all {
		if !slices.Contains(extensions, filepath.Ext(e.Name())) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.root, from, e.Name()))
		if err != nil {
			return nil, err
		}
		content = bytes.Replace(content, []byte(`VERSION = ""`), []byte(`VERSION = "`+r.tag+`"`), 1)
		files = append(files, file{to + e.Name(), content, false})
	}
	return files, err
}

// wheel returns the files of a wheel, RECORD at the end.
func wheel(b binary, version string, text, notices []byte, modules []file) []file {
	info := "toolmend-" + version + ".dist-info/"
	meta := strings.Join([]string{
		"Metadata-Version: 2.4", "Name: toolmend", "Version: " + version, "Summary: " + summary,
		"License-Expression: " + license, "License-File: LICENSE", "License-File: THIRD_PARTY_LICENSES",
		"Project-URL: Homepage, " + home, "Project-URL: Changelog, " + home + "/blob/main/CHANGELOG.md",
		"Requires-Python: >=3.10", "Description-Content-Type: text/markdown", "", about,
	}, "\n")
	tags := "Wheel-Version: 1.0\nGenerator: toolmend\nRoot-Is-Purelib: false\n"
	for tag := range strings.SplitSeq(b.wheel, ".") {
		tags += "Tag: py3-none-" + tag + "\n"
	}
	files := append(modules[:len(modules):len(modules)], []file{
		{"toolmend-" + version + ".data/scripts/" + b.command(), b.content, true},
		{info + "METADATA", []byte(meta), false},
		{info + "WHEEL", []byte(tags), false},
		{info + "licenses/LICENSE", text, false},
		{info + "licenses/THIRD_PARTY_LICENSES", notices, false},
	}...)
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
	}
	record.WriteString(info + "RECORD,,\n")
	return append(files, file{info + "RECORD", []byte(record.String()), false})
}

var prerelease = regexp.MustCompile(`^(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?$`)

// pythonVersion returns a version as Python writes it: 0.2.0-rc.1 is 0.2.0rc1.
func pythonVersion(version string) (string, error) {
	m := prerelease.FindStringSubmatch(version)
	if m == nil {
		return "", fmt.Errorf("version %s: Python knows the pre-releases alpha, beta and rc with a number", version)
	}
	return m[1] + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[2]] + m[3], nil
}
