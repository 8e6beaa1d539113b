// Package codectest holds a wire format to what every one of them promises, on
// recorded exchanges with real providers. The recordings stand beside the
// repository, in ../shared/data/wire; where they do not, the tests are skipped.
package codectest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Exchange is one recorded request and what was answered.
type Exchange struct {
	ID       string
	Dialect  string
	Host     string
	Path     string
	Status   int
	Format   string // json, sse, ndjson, json-array, text
	Exact    struct{ Request, Response bool }
	Features []string
	Request  string
	Response string
}

// Has reports whether the exchange was recorded with that feature.
func (x Exchange) Has(feature string) bool {
	for _, f := range x.Features {
		if f == feature {
			return true
		}
	}
	return false
}

// Streamed reports whether the answer has events.
func (x Exchange) Streamed() bool { return x.Format != "json" && x.Format != "text" }

// Load reads the exchanges of a file such as "openai-chat"; it skips the test
// where there are no recordings.
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

// find looks for the recordings beside the repository's root.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "LICENSE")); err == nil {
			path := filepath.Join(filepath.Dir(dir), "shared", "data", "wire", name)
			_, err := os.Stat(path)
			return path, err
		}
		if dir == filepath.Dir(dir) {
			return "", fs.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
}

// Law is one promise, kept or broken by one exchange. It returns skip where
// the exchange has nothing that the law is about.
type Law struct {
	Name  string
	Check func(f codec.Format, x Exchange) error
}

// errSkip says that a law has nothing to look at.
var errSkip = errors.New("nothing to look at")

// Run holds f to all laws on the recordings of that name. except lists, for
// each law, the exchanges that are known to break it, with the reason; one that
// no longer does is a failure too.
func Run(t *testing.T, f codec.Format, name string, except map[string]map[string]string) {
	exchanges := Load(t, name)
	for _, law := range Laws() {
		t.Run(law.Name, func(t *testing.T) {
			t.Parallel()
			held, skipped := 0, 0
			for _, x := range exchanges {
				reason := except[law.Name][x.ID]
				switch err := guarded(law, f, x); {
				case errors.Is(err, errSkip):
					skipped++
				case err != nil && reason == "":
					t.Errorf("%s (%s, %d): %v", x.ID, x.Format, x.Status, err)
				case err == nil && reason != "":
					t.Errorf("%s is listed as an exception (%s), but keeps the law", x.ID, reason)
				case err == nil:
					held++
				}
			}
			t.Logf("%s: %d of %d exchanges keep it, %d have nothing to look at, %d known exceptions",
				law.Name, held, len(exchanges)-skipped, skipped, len(except[law.Name]))
		})
	}
}

func guarded(law Law, f codec.Format, x Exchange) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return law.Check(f, x)
}

// answer decodes the exchange: skip for an answer that the format declines,
// with an error of its provider or as not its own.
func answer(f codec.Format, x Exchange) (*middleware.Request, *middleware.Response, error) {
	req, err := f.DecodeRequest([]byte(x.Request))
	if err != nil {
		return nil, nil, fmt.Errorf("request: %w", err)
	}
	if x.Status >= 400 {
		return nil, nil, errSkip
	}
	resp, err := f.DecodeResponse(req, []byte(x.Response))
	var refused *middleware.ModelError
	if err != nil && (errors.As(err, &refused) || x.Format == "text") {
		return nil, nil, errSkip
	}
	if err != nil {
		return nil, nil, fmt.Errorf("answer: %w", err)
	}
	return req, resp, nil
}

// withCalls is answer for those in which the client is asked to run functions.
func withCalls(f codec.Format, x Exchange) (*middleware.Request, *middleware.Response, error) {
	req, resp, err := answer(f, x)
	if err != nil {
		return nil, nil, err
	}
	functions := 0
	for _, c := range resp.Message.ToolCalls {
		if c.Kind == middleware.KindBuiltin {
			return nil, nil, errSkip
		}
		if c.Kind == middleware.KindFunction {
			functions++
		}
	}
	if functions == 0 {
		return nil, nil, errSkip
	}
	return req, resp, nil
}
