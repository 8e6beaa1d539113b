package schema

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// data is where the material lies that is not part of the module.
const data = "../../../shared/data"

// lines calls f for each line of a gzipped file under data, and skips the test
// where there is none.
func lines(tb testing.TB, name string, f func(line []byte)) {
	tb.Helper()
	if !eachLine(tb, name, f) {
		tb.Skipf("no %s beside the module", name)
	}
}

func eachLine(tb testing.TB, name string, f func(line []byte)) bool {
	tb.Helper()
	file, err := os.Open(filepath.Join(data, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	require.NoError(tb, err)
	defer file.Close()
	z, err := gzip.NewReader(file)
	require.NoError(tb, err)
	in := bufio.NewScanner(z)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		f(in.Bytes())
	}
	require.NoError(tb, in.Err())
	return true
}

// suiteGroup is one schema of the JSON-Schema-Test-Suite and what it is tried on.
type suiteGroup struct {
	File        string
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// class tells required tests from the others by their folder.
func (g suiteGroup) class() string {
	switch {
	case strings.Contains(g.File, "/optional/format"):
		return "format"
	case strings.Contains(g.File, "/optional/"):
		return "optional"
	}
	return "required"
}

// suite is one draft's part of it, and what is known to fail.
type suite struct {
	name, file, dialect string
	draft               *jsonschema.Draft
	want                int      // required tests that pass
	misses              []string // the required tests that do not
}

var suites = []suite{
	{"draft 7", "conformance/json-schema-test-suite-draft7.jsonl.gz", "http://json-schema.org/draft-07/schema#", jsonschema.Draft7, 927, nil},
	{"2020-12", "conformance/json-schema-test-suite-draft2020-12.jsonl.gz", latest, jsonschema.Draft2020, 1299, nil},
}

// withDialect names the dialect where the group does not: its folder does.
func withDialect(schema json.RawMessage, dialect string) json.RawMessage {
	text := strings.TrimSpace(string(schema))
	if !strings.HasPrefix(text, "{") || strings.Contains(text, `"$schema"`) {
		return schema
	}
	if text == "{}" {
		return json.RawMessage(`{"$schema":"` + dialect + `"}`)
	}
	return json.RawMessage(`{"$schema":"` + dialect + `",` + text[1:])
}

func remotes(t *testing.T) map[string]string {
	docs := map[string]string{}
	lines(t, "conformance/json-schema-test-suite-remotes.jsonl.gz", func(line []byte) {
		var r struct {
			URI    string
			Schema json.RawMessage
		}
		require.NoError(t, json.Unmarshal(line, &r))
		docs[r.URI] = string(r.Schema)
	})
	return docs
}

func TestSuite(t *testing.T) {
	t.Parallel()
	docs := remotes(t)
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			passed, total := map[string]int{}, map[string]int{}
			var misses []string
			lines(t, s.file, func(line []byte) {
				var g suiteGroup
				require.NoError(t, json.Unmarshal(line, &g))
				o := Options{Strict: true, Formats: g.class() == "format"}
				compiled, err := compileWith(withDialect(g.Schema, s.dialect), o, extras{remotes: docs, draft: s.draft})
				for _, test := range g.Tests {
					total[g.class()]++
					if err == nil {
						doc, parseErr := rawjson.Parse(string(test.Data), rawjson.Limits{Exponent: -1})
						require.NoError(t, parseErr)
						issues := compiled.Validate(doc.Root())
						require.False(t, len(issues) == 1 && issues[0].Code == "unchecked", "%s: %s", g.Description, test.Description)
						if (len(issues) == 0) == test.Valid {
							passed[g.class()]++
							continue
						}
					}
					if g.class() == "required" {
						misses = append(misses, filepath.Base(g.File)+": "+g.Description+": "+test.Description)
					}
				}
			})
			for _, class := range []string{"required", "optional", "format"} {
				t.Logf("%s %s: %d of %d", s.name, class, passed[class], total[class])
			}
			slices.Sort(misses)
			require.Equal(t, s.misses, misses)
			require.GreaterOrEqual(t, passed["required"], s.want)
		})
	}
}
