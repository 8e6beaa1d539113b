package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// launcher is the program of the main npm package.
//
//go:embed launcher.js
var launcher []byte

// manifest is a package.json.
type manifest struct {
	Name             string            `json:"name"`
	Version          string            `json:"version"`
	Description      string            `json:"description"`
	License          string            `json:"license"`
	Homepage         string            `json:"homepage"`
	Repository       map[string]string `json:"repository"`
	Bin              map[string]string `json:"bin,omitempty"`
	Exports          map[string]export `json:"exports,omitempty"`
	Engines          map[string]string `json:"engines,omitempty"`
	OS               []string          `json:"os,omitempty"`
	CPU              []string          `json:"cpu,omitempty"`
	PreferUnplugged  bool              `json:"preferUnplugged,omitempty"`
	Files            []string          `json:"files"`
	OptionalPackages map[string]string `json:"optionalDependencies,omitempty"`
}

// export is an entry of exports in a package.json.
type export struct {
	Types   string `json:"types"`
	Default string `json:"default"`
}

// npm writes a package with the binary for each platform, and the package
// toolmend, which has a launcher and the modules of the folder js, and depends on all others. Clients install only
// those that fit their platform, and run no script.
func (r *release) npm() error {
	main := r.manifest("toolmend", summary)
	main.Bin = map[string]string{"toolmend": "toolmend.js"}
	main.Engines = map[string]string{"node": ">=18"}
	main.Exports = map[string]export{".": {"./index.d.mts", "./index.mjs"}, "./ai": {"./ai.d.mts", "./ai.mjs"}}
	main.Files = []string{"toolmend.js", "*.mjs", "*.d.mts"}
	main.OptionalPackages = map[string]string{}
	for _, b := range r.binaries {
		m := r.manifest("@toolmend/"+b.npm, summary+": the binary for "+b.npm)
		system, cpu, _ := strings.Cut(b.npm, "-")
		m.OS, m.CPU, m.Files = []string{system}, []string{cpu}, []string{"bin", "THIRD_PARTY_LICENSES"}
		m.PreferUnplugged = true
		main.OptionalPackages[m.Name] = m.Version
		files := []file{
			{"package/bin/" + b.command(), b.content, true},
			{"package/THIRD_PARTY_LICENSES", r.notices, false},
		}
		if err := r.savePackage("toolmend-"+b.npm, m, files); err != nil {
			return err
		}
	}
	modules, err := r.modules("js", "package/", ".mjs", ".mts")
	if err != nil {
		return err
	}
	return r.savePackage("toolmend", main, append(modules,
		file{"package/toolmend.js", launcher, true},
		file{"package/README.md", []byte("# Toolmend\n\n" + about), false},
	))
}

func (r *release) manifest(name, description string) manifest {
	return manifest{
		Name: name, Version: r.version(), Description: description, License: license, Homepage: home,
		Repository: map[string]string{"type": "git", "url": "git+" + home + ".git"},
	}
}

// savePackage writes a package as npm pack does.
func (r *release) savePackage(name string, m manifest, files []file) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	files = append([]file{{"package/package.json", append(text, '\n'), false}, {"package/LICENSE", r.license, false}}, files...)
	content, err := tgz(files, r.time)
	if err != nil {
		return err
	}
	return r.save(fmt.Sprintf("npm/%s-%s.tgz", name, r.version()), content)
}
