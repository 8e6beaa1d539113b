package repocheck_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/repocheck"
)

const module = "github.com/toolmend/toolmend"

// house is the table of the design: a package imports only what stands above
// its own line. "/..." takes in the packages below, test modules of a layer
// among them.
var house = []repocheck.Room{
	{Floor: 0, Path: "middleware", StdOnly: true},
	{Floor: 0, Path: "middleware/middlewaretest", StdOnly: true},
	{Floor: 0, Path: "internal/rawjson"},
	{Floor: 0, Path: "internal/validators"},
	{Floor: 0, Path: "internal/hostile"},
	{Floor: 0, Path: "internal/run"},
	{Floor: 0, Path: "internal/text", StdOnly: true},

	{Floor: 1, Path: "internal/schema"},
	{Floor: 1, Path: "internal/repeat"},
	{Floor: 1, Path: "strip"},
	{Floor: 1, Path: "mend"},
	{Floor: 1, Path: "internal/typeschema/..."},
	{Floor: 1, Path: "batch"},
	{Floor: 1, Path: "budget"},

	{Floor: 2, Path: "argsvalidate"},
	{Floor: 2, Path: "answer"},
	{Floor: 2, Path: "retry"},
	{Floor: 2, Path: "tracing"},
	{Floor: 2, Path: "textcall"},

	{Floor: 3, Path: "agentloop/..."},
	{Floor: 3, Path: "wire/..."},
	{Floor: 3, Path: "transport/..."},
	{Floor: 3, Path: "mcp/..."},
	{Floor: 3, Path: "integrations/..."},
	{Floor: 3, Path: "internal/envelope"},

	{Floor: 4, Path: "tracing/tooltrace"},
	{Floor: 4, Path: "cmd/toolmend/...", Top: true},
	{Floor: 4, Path: "examples/...", Top: true},
	{Floor: 4, Path: "e2e", Top: true},
	{Floor: 4, Path: "tools/...", Top: true},
	{Floor: 4, Path: "internal/repocheck", Top: true},
	{Floor: 4, Path: ".", Top: true},
}

// limits says where heavy dependencies may be.
var limits = []repocheck.Limit{
	{Prefix: "github.com/santhosh-tekuri/jsonschema", Only: "internal/schema"},
	{Prefix: "github.com/stretchr/testify", Only: "examples/clients/internal/harness"}, // what the tests of thirteen programs share
	{Prefix: "pgregory.net/rapid"},
	{Prefix: "go.opentelemetry.io/otel/sdk", Only: "examples/quickstart"}, // prints spans as an exporter gets them
}

func TestRepository(t *testing.T) {
	t.Parallel()
	dir, err := os.Getwd()
	require.NoError(t, err)
	tree, err := repocheck.Open(repocheck.Root(dir, "LICENSE"))
	require.NoError(t, err)
	require.Contains(t, tree.Files, "go.mod")

	rules := map[string]func(repocheck.Tree) ([]repocheck.Problem, error){
		"imports": func(t repocheck.Tree) ([]repocheck.Problem, error) {
			return repocheck.Imports(t, module, house, limits)
		},
		"docs":      repocheck.Docs,
		"sizes":     repocheck.Sizes,
		"words":     repocheck.Words,
		"examples":  repocheck.Examples,
		"changelog": repocheck.Changelog,
		"decisions": repocheck.Decisions,
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems, err := rule(tree)
			require.NoError(t, err)
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}

// The rooms stand in the order of their floors, so that "above" means both.
func TestHouseIsOrdered(t *testing.T) {
	t.Parallel()
	for i := 1; i < len(house); i++ {
		require.GreaterOrEqual(t, house[i].Floor, house[i-1].Floor, house[i].Path)
	}
}
