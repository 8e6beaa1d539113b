package mcp_test

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/mcp"
)

// A tool may destroy unless its server says that it does not.
func TestDestructiveToolsAreMarked(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, c := range map[string]struct {
		hints *sdk.ToolAnnotations
		want  bool
	}{
		"without annotations": {nil, true},
		"nothing is said":     {&sdk.ToolAnnotations{Title: "x"}, true},
		"read-only":           {&sdk.ToolAnnotations{ReadOnlyHint: true}, false},
		"said to be":          {&sdk.ToolAnnotations{DestructiveHint: &yes}, true},
		"said not to be":      {&sdk.ToolAnnotations{DestructiveHint: &no}, false},
		"read-only after all": {&sdk.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &yes}, false},
	} {
		s := with(t, mcp.Options{}, &sdk.Tool{Name: "write", Annotations: c.hints, InputSchema: json.RawMessage(`{"type":"object"}`)}, textHandler("text"))
		require.Equal(t, c.want, tools(t, s)[0].Def.Destructive, name)
	}
}
