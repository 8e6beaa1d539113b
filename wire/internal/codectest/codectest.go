// Package codectest reads recorded exchanges with real providers. Its own tests hold every
// wire format to the same laws on them: see laws_test.go for the laws and formats_test.go for
// the list of formats.
//
// The recordings are not part of the repository: they are in ../shared/data/wire. Without them
// the tests that need them are skipped.
package codectest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Exchange is one recorded request and what was answered, a line of a file.
type Exchange struct {
	ID       string // the file in a public repository that it was found in, and its number there
	Dialect  string // of the server: Format.Dialect, or a server's own variant of it
	Host     string
	Path     string
	Status   int
	Format   string                           // of the answer: json, sse, ndjson, json-array, text
	Exact    struct{ Request, Response bool } // the bytes are as they were sent, not written again by the recorder
	Features []string                         // what occurs in it, such as "calls"
	Request  string
	Response string
}

// Has reports whether the exchange was recorded with that feature.
func (x Exchange) Has(feature string) bool { return slices.Contains(x.Features, feature) }

// Streamed reports whether the answer has events.
func (x Exchange) Streamed() bool { return x.Format != "json" && x.Format != "text" }

// Load reads the exchanges of a file such as "openai-chat"; it skips the test
// where there is no folder of recordings.
func Load(t testing.TB, name string) []Exchange {
	t.Helper()
	path, err := find(name + ".jsonl.gz")
	if err != nil {
		t.Skipf("no recorded exchanges: %v", err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(z)
	var out []Exchange
	for dec.More() {
		var x Exchange
		if err := dec.Decode(&x); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if x.Format != "eventstream" { // binary frames are no format of ours
			out = append(out, x)
		}
	}
	return out
}

// find returns the path of recordings next to the repository's root. The error reports that
// the folder is missing.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "LICENSE")); err == nil {
			path := filepath.Join(filepath.Dir(dir), "shared", "data", "wire", name)
			_, err := os.Stat(filepath.Dir(path)) // where others are, a missing one is a failure
			return path, err
		}
		if dir == filepath.Dir(dir) {
			return "", fs.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
}
