package repocheck

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/toolmend/toolmend"
	design = "docs/design.md" // holds the map
)

// dependencies lists what packages of the root module import from elsewhere,
// tests aside, by the beginning of the import path. The other modules list
// theirs in their go.mod.
var dependencies = map[string][]string{
	"github.com/santhosh-tekuri/jsonschema/": {"internal/schema"},
	"github.com/invopop/jsonschema":          {"internal/typeschema"},
	"github.com/cenkalti/backoff/":           {"retry"},
	"go.opentelemetry.io/otel":               {"tracing", "tracing/tooltrace", "gateway", "internal/test/simulate"},
	"go.opentelemetry.io/otel/sdk/trace":     {"examples/spans"}, // prints spans as an exporter gets them
	"go.opentelemetry.io/otel/sdk/metric":    {"internal/test/simulate"},
	"github.com/stretchr/testify/":           {"internal/test/reports"},
	"pgregory.net/rapid":                     {"internal/test/reports"},
}

// imports finds imports of packages that are not above the importing one in the
// map, and dependencies of packages that are not to have them. Tests import what
// they like.
func imports(t testing.TB, all tree) []string {
	rooms := readMap(all.read(t, design))
	var problems []string
	for _, file := range all.having(".go") {
		if isTest(file) {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, all.read(t, file), parser.ImportsOnly)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		from := path.Dir(file)
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			what := ""
			if dir, ok := strings.CutPrefix(imported+"/", module+"/"); ok {
				what = rooms.forbid(from, path.Clean(dir))
			} else if all.inRoot(file) {
				what = forbid(from, imported)
			}
			if what != "" {
				problems = append(problems, problem(file, fset.Position(spec.Pos()).Line, "imports %s, %s", imported, what))
			}
		}
		if _, line := rooms.find(from); line < 0 {
			problems = append(problems, problem(file, 0, "%s is not in the map of %s", from, design))
		}
	}
	return problems
}

// house is the map, row by row from top to bottom.
type house []floor

// floor is a row of the map.
type floor struct {
	ring  string
	paths []string
}

var (
	mapLine = regexp.MustCompile("(?m)^\\| ([a-zA-Z]+) \\| ([^|]*`[^|]*) \\|")
	quoted  = regexp.MustCompile("`([^`]+)`")
)

func readMap(text string) house {
	var rooms house
	for _, line := range mapLine.FindAllStringSubmatch(text, -1) {
		row := floor{ring: line[1]}
		for _, name := range quoted.FindAllStringSubmatch(line[2], -1) {
			row.paths = append(row.paths, name[1])
		}
		rooms = append(rooms, row)
	}
	return rooms
}

// find returns the entry of the map that a directory belongs to, the longest
// that it is at or below, and its line; -1 if there is none.
func (rooms house) find(dir string) (entry string, line int) {
	line = -1
	for i, row := range rooms {
		for _, p := range row.paths {
			if (dir == p || strings.HasPrefix(dir, p+"/")) && len(p) > len(entry) {
				entry, line = p, i
			}
		}
	}
	return entry, line
}

// forbid says why a package must not import another one of this repository, or "".
func (rooms house) forbid(from, imported string) string {
	importer, line := rooms.find(from)
	entry, above := rooms.find(imported)
	if entry == importer || above >= 0 && above < line {
		return ""
	}
	return fmt.Sprintf("which is not above %s in the map of %s", importer, design)
}

// forbid says why a package of the root module must not import one from
// elsewhere, or "". The longest prefix decides.
func forbid(from, imported string) string {
	// The first segment of a path outside the standard library has a dot.
	if !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
		return ""
	}
	longest := ""
	for prefix := range dependencies {
		if strings.HasPrefix(imported, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if slices.Contains(dependencies[longest], from) {
		return ""
	}
	return "a dependency that " + from + " is not to have"
}

// inRoot reports whether a file is of the root module.
func (all tree) inRoot(file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if slices.Contains(all.files, dir+"/go.mod") {
			return false
		}
	}
	return true
}

// TestQuickstart: what a newcomer compiles first has neither net/http nor OpenTelemetry in it,
// which take most of the time that an empty build cache costs.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	all := open(t, "../..")
	done := map[string]bool{}
	var walk func(dir string)
	walk = func(dir string) {
		done[dir] = true
		for _, file := range all.having(".go") {
			if path.Dir(file) != dir || isTest(file) {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, all.read(t, file), parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range f.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				require.NotEqual(t, "net/http", imported, file)
				require.NotContains(t, imported, "opentelemetry", file)
				if to, ok := strings.CutPrefix(imported, module+"/"); ok && !done[to] {
					walk(to)
				}
			}
		}
	}
	walk("examples/quickstart")
	require.True(t, done["argsvalidate"])
}
