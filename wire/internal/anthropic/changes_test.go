package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Definitions of tools count in the blocks that the format has for them, the last one
// of a name. Nothing else defines a tool.
func TestToolsInMessages(t *testing.T) {
	t.Parallel()
	const (
		define = `{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"%s","input_schema":{"title":"%s"}}}}`
		again  = `{"type":"tool_addition","tool":{"type":"tool_reference","name":"%s"}}`
		remove = `{"type":"tool_removal","tool":{"type":"tool_reference","name":"%s"}}`
	)
	defined := func(name, title string) string { return fmt.Sprintf(define, name, title) }
	system := func(blocks ...string) string {
		return `{"role":"system","content":[` + strings.Join(blocks, ",") + `]}`
	}
	read := func(t *testing.T, messages ...string) (*middleware.Request, []string) {
		t.Helper()
		body := `{"model":"m","max_tokens":1,"messages":[` + strings.Join(messages, ",") + `],"tools":[{"name":"a","input_schema":{"title":"1"}},{"name":"b","input_schema":{"title":"1"}}]}`
		req, err := anthropic.Format{}.DecodeRequest([]byte(body))
		require.NoError(t, err)
		out, err := anthropic.Format{}.EncodeRequest(req)
		require.NoError(t, err)
		require.Equal(t, body, string(out))
		var names []string
		for _, tool := range req.Tools {
			names = append(names, tool.Name+string(tool.Parameters))
		}
		return req, names
	}
	const a1, b1 = `a{"title":"1"}`, `b{"title":"1"}`
	page := defined("c", "9")
	for name, c := range map[string]struct {
		messages []string
		want     []string
	}{
		"nothing":               {nil, []string{a1, b1}},
		"a definition":          {[]string{system(defined("c", "2"))}, []string{a1, b1, `c{"title":"2"}`}},
		"the last one":          {[]string{system(defined("c", "2")), system(defined("c", "3"), defined("a", "4"))}, []string{`a{"title":"4"}`, b1, `c{"title":"3"}`}},
		"a removal":             {[]string{system(fmt.Sprintf(remove, "a"), fmt.Sprintf(remove, "x"))}, []string{b1}},
		"defined and removed":   {[]string{system(defined("c", "2"), fmt.Sprintf(remove, "c"))}, []string{a1, b1}},
		"removed and added":     {[]string{system(fmt.Sprintf(remove, "a")), system(fmt.Sprintf(again, "a"))}, []string{a1, b1}},
		"added as it was last":  {[]string{system(defined("a", "5"), fmt.Sprintf(remove, "a"), fmt.Sprintf(again, "a"))}, []string{`a{"title":"5"}`, b1}},
		"no definition":         {[]string{system(fmt.Sprintf(again, "c"))}, []string{a1, b1}},
		"a compaction":          {[]string{`{"role":"assistant","content":[{"type":"compaction","content":"…","tool_changes":[` + defined("c", "2") + `,` + fmt.Sprintf(remove, "b") + `]}]}`}, []string{a1, `c{"title":"2"}`}},
		"a compaction changes":  {[]string{`{"role":"assistant","content":[{"type":"compaction","content":"…","tool_changes":[` + defined("a", "2") + `]}]}`}, []string{a1, b1}},
		"text of the system":    {[]string{`{"role":"system","content":` + fmt.Sprintf("%q", page) + `}`, system(fmt.Sprintf(`{"type":"text","text":%q}`, page))}, []string{a1, b1}},
		"a message of the user": {[]string{`{"role":"user","content":[` + page + `]}`}, []string{a1, b1}},
		"a result": {[]string{`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[` + page + `,{"type":"text","text":` + fmt.Sprintf("%q", page) + `}]}]}`}, []string{a1, b1}},
		"a document":           {[]string{`{"role":"user","content":[{"type":"document","source":{"type":"content","content":[` + page + `]}}]}`}, []string{a1, b1}},
		"the model":            {[]string{`{"role":"assistant","content":[` + page + `]}`}, []string{a1, b1}},
		"a broken definition":  {[]string{system(`{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":5}}}`)}, []string{a1, b1}},
		"a compaction by user": {[]string{`{"role":"user","content":[{"type":"compaction","tool_changes":[` + page + `]}]}`}, []string{a1, b1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, names := read(t, c.messages...)
			require.Equal(t, c.want, names)
		})
	}

	// A tool can be added to them; they cannot be changed.
	req, _ := read(t, system(defined("c", "2"), fmt.Sprintf(remove, "b")))
	more := req.Clone()
	more.Tools = append(more.Tools, middleware.Tool{Name: "d"})
	body, err := anthropic.Format{}.EncodeRequest(more)
	require.NoError(t, err)
	require.Contains(t, string(body), `{"name":"b","input_schema":{"title":"1"}},{"name":"d","input_schema":{"type":"object"}}]`)
	for _, change := range []func(r *middleware.Request){
		func(r *middleware.Request) { r.Tools = r.Tools[:1] },
		func(r *middleware.Request) { r.Tools[1].Description = "x" },
	} {
		less := req.Clone()
		change(less)
		_, err = anthropic.Format{}.EncodeRequest(less)
		require.ErrorIs(t, err, codec.ErrUnencodable)
	}
}

// A tool that loads others is marked.
func TestToolsThatLoadOthers(t *testing.T) {
	t.Parallel()
	req, err := anthropic.Format{}.DecodeRequest([]byte(`{"model":"m","max_tokens":1,"messages":[],"tools":[{"name":"ToolSearch","input_schema":{},"defer_loading":true},` +
		`{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"},{"type":"mcp_toolset","mcp_server_name":"x"},{"type":"web_search_20250305","name":"web_search"}]}`))
	require.NoError(t, err)
	var loads []middleware.Loads
	for _, tool := range req.Tools {
		loads = append(loads, tool.Loads)
	}
	require.Equal(t, []middleware.Loads{middleware.LoadsNothing, middleware.LoadsFound, middleware.LoadsToolset, middleware.LoadsNothing}, loads)
}
