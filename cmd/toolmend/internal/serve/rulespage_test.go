package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// TestRulesPage holds that the configurations of docs/rules.md are valid, and what their rules accept.
func TestRulesPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "rules.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 2)
	var o argsvalidate.Options
	for i, b := range blocks {
		file := filepath.Join(t.TempDir(), fmt.Sprint(i, ".toml"))
		require.NoError(t, os.WriteFile(file, []byte(b[1]+"[[upstream]]\nurl = 'http://127.0.0.1:1'\n"), 0o600))
		c, _, err := readConfig(file)
		require.NoError(t, err)
		require.NoError(t, c.Validate())
		require.NoError(t, AddRules(file, &o, "127.0.0.1:1", "build", false))
	}
	v := argsvalidate.NewValidator(o)
	for _, c := range []struct {
		tool, arguments string
		valid           bool
	}{
		{"refund_order", `{"amount": 1000}`, true},
		{"refund_order", `{"amount": 1000.5}`, false},
		{"refund_order", `{"amount": -1}`, false},
		{"refund_order", `{}`, false},
		{"refund", `{}`, true},
		{"write_file", `{"path": "/srv/project/a.txt"}`, true},
		{"write_file", `{"path": "/srv/project/.env"}`, true},
		{"write_file", `{"path": "/srv/project/a/..b/...c"}`, true},
		{"write_file", `{"path": "/srv/project/../etc/passwd"}`, false},
		{"write_file", `{"path": "/srv/project/a/.."}`, false},
		{"write_file", `{"path": "/srv/project/./a"}`, false},
		{"write_file", `{"path": "/srv/projects/a"}`, false},
		{"write_file", `{"path": "/srv/project//etc"}`, false},
		{"write_file", `{"path": "/srv/project/a\n/../b"}`, false},
		{"write_file", `{"path": "a"}`, false},
		{"delete_file", `{}`, false},
		{"undelete_file", `{}`, true},
	} {
		tools := []middleware.Tool{{Name: c.tool, Parameters: []byte(`{"type": "object"}`)}}
		verdicts, _ := v.Validate(t.Context(), tools, middleware.ToolCall{ID: "1", Name: c.tool, Arguments: c.arguments})
		require.Equal(t, c.valid, verdicts[0].OK(), c.tool+" "+c.arguments)
	}
}
