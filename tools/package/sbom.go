package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// component is an entry of a CycloneDX document
// (cyclonedx.org/docs/1.6/json, the members that are used here).
type component struct {
	Ref     string `json:"bom-ref"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// sboms writes a CycloneDX document for each binary: the modules that are linked
// into it, as the binary itself lists them, and the standard library.
func (r *release) sboms() error {
	for _, b := range r.binaries {
		sum := sha256.Sum256(b.content)
		main := component{Type: "application", Name: command, Version: r.tag, Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}
		main.PURL = "pkg:golang/" + command + "@" + r.tag
		main.Ref = main.PURL
		components := []component{}
		for _, m := range b.modules {
			c := component{Type: "library", Name: m.path, Version: m.version, PURL: "pkg:golang/" + m.path + "@" + m.version}
			c.Ref = c.PURL
			if raw, ok := strings.CutPrefix(m.sum, "h1:"); ok {
				sum, err := base64.StdEncoding.DecodeString(raw)
				if err != nil {
					return fmt.Errorf("%s: %w", m.path, err)
				}
				c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
			}
			components = append(components, c)
		}
		text, err := json.MarshalIndent(map[string]any{
			"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
			"metadata":   map[string]any{"timestamp": r.time.Format(time.RFC3339), "component": main},
			"components": components,
		}, "", "  ")
		if err != nil {
			return err
		}
		if err := r.save(r.name(b.platform)+".cdx.json", append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}
