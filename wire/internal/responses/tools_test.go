package responses_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

const nested = `{"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"late","parameters":{"type":"object"}}]},` +
	`{"type":"tool_search_output","execution":"client","call_id":"s","tools":[{"type":"function","name":"found"},{"type":"function","name":"top","parameters":{"a":1}}]},{"role":"user","content":"x"}],` +
	`"tools":[{"type":"function","name":"top","parameters":{}},{"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"find","parameters":{"b":1}}]},{"type":"tool_search"}]}`

// toolNames returns the kind and the name of each tool.
func toolNames(req *middleware.Request) (out []string) {
	for _, t := range req.Tools {
		out = append(out, string(t.Kind)+" "+t.Name)
	}
	return out
}

// The model may call what a namespace or an item declares, so these are tools
// of the request too.
func TestNestedTools(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, nested)
	require.Equal(t, []string{" late", " found", " find", " top", "hosted crm", "hosted tool_search"}, toolNames(req))
	require.Equal(t, `{}`, string(req.Tools[3].Parameters), "listed again by the search: read once")

	out, err := editRequest(t, nested, func(r *middleware.Request) { r.Tools = append(r.Tools, middleware.Tool{Name: "more"}) })
	require.NoError(t, err)
	require.Equal(t, append(toolNames(req), " more"), toolNames(decodeRequest(t, out)))

	out, err = editRequest(t, nested, func(r *middleware.Request) { r.Messages = r.Messages[2:] })
	require.NoError(t, err)
	require.Equal(t, []string{" find", " late", " found", " top", "hosted crm", "hosted tool_search"}, toolNames(decodeRequest(t, out)),
		"what declared them is gone: they are declared in tools")

	for name, edit := range map[string]func(r *middleware.Request){
		"taken out": func(r *middleware.Request) { r.Tools = r.Tools[1:] },
		"changed":   func(r *middleware.Request) { r.Tools[2].Description = "x" },
	} {
		_, err = editRequest(t, nested, edit)
		require.ErrorIs(t, err, codec.ErrUnencodable, name)
	}
}

func TestToolsOfNamespaces(t *testing.T) {
	t.Parallel()
	body := `{"input":"x","tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"find","parameters":{"a":1}}]},` +
		`{"type":"namespace","name":"b","tools":[{"type":"function","name":"find","parameters":{"b":1}}]}]}`
	req := decodeRequest(t, body)
	require.Equal(t, []string{" find", " find", "hosted a", "hosted b"}, toolNames(req))
	require.Equal(t, "a", req.Tools[0].Namespace)
	require.Equal(t, "b", req.Tools[1].Namespace)
	require.JSONEq(t, `{"b":1}`, string(req.Tools[1].Parameters))
	resp, err := codec.Decode(format.NewStream(req, nil), []byte(`{"object":"response","status":"completed","output":[{"type":"function_call","id":"fc","call_id":"c","name":"find","namespace":"b","arguments":"{}"}]}`))
	require.NoError(t, err)
	require.Equal(t, "b", resp.Message.ToolCalls[0].Namespace)
	out, err := editRequest(t, body, func(*middleware.Request) {})
	require.NoError(t, err)
	require.Equal(t, body, out)
}

// What the provider lists of its own tools does not make a request one of
// another format.
func TestBrokenToolsOfTheProvider(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"input":[{"type":"tool_search_output","call_id":null,"execution":"server","tools":[7,{"type":"function","name":1},`+
		`{"type":"namespace","name":"n","tools":[{"type":"function","name":"f","description":0},{"type":"function","name":"g"}]},{"type":"namespace","tools":{}}]}]}`)
	require.Len(t, req.Tools, 1)
	require.Equal(t, "g", req.Tools[0].Name)
	_, err := format.DecodeRequest([]byte(`{"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":1}]}]}`))
	require.ErrorIs(t, err, codec.ErrShape, "the client's own")
}

func TestKindsOfTools(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"input":"x","tools":[{"type":"computer_use_preview","display_width":1},{"type":"local_shell"},{"type":"apply_patch"},`+
		`{"type":"shell"},{"type":"shell","environment":{"type":"container_auto"}},{"type":"tool_search","execution":"client"},{"type":"mcp","server_label":"deep"},{"type":"code_interpreter"}]}`)
	require.Equal(t, []string{"builtin computer", "builtin local_shell", "builtin apply_patch", "builtin shell", "hosted shell", "builtin tool_search", "hosted deep", "hosted code_interpreter"}, toolNames(req))
}

func TestEditedTools(t *testing.T) {
	t.Parallel()
	const body = `{"input":"x","tools":[{"type":"function","name":"f","strict":null,"x":1.0}, {"type":"custom","name":"c","format":{}}, {"type":"web_search"}],"tool_choice":"required"}`
	for name, c := range map[string]struct {
		edit func(r *middleware.Request)
		want string
	}{
		"all of a function": {
			func(r *middleware.Request) {
				t := &r.Tools[0]
				t.Name, t.Description, t.Strict, t.Parameters = "g", "d", true, []byte(`{"type":"object"}`)
			},
			`{"input":"x","tools":[{"type":"function","name":"g","strict":true,"x":1.0,"description":"d","parameters":{"type":"object"}}, {"type":"custom","name":"c","format":{}}, {"type":"web_search"}],"tool_choice":"required"}`},
		"a custom tool": {
			func(r *middleware.Request) { r.Tools[1].Description = "d" },
			`{"input":"x","tools":[{"type":"function","name":"f","strict":null,"x":1.0}, {"type":"custom","name":"c","format":{},"description":"d"}, {"type":"web_search"}],"tool_choice":"required"}`},
		"none": {
			func(r *middleware.Request) { r.Tools, r.ToolChoice.Mode = nil, middleware.ToolAuto },
			`{"input":"x","tools":[],"tool_choice":"auto"}`},
		"one tool only": {
			func(r *middleware.Request) { r.ToolChoice.Name = "c" },
			`{"input":"x","tools":[{"type":"function","name":"f","strict":null,"x":1.0}, {"type":"custom","name":"c","format":{}}, {"type":"web_search"}],"tool_choice":{"type":"custom","name":"c"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := editRequest(t, body, c.edit)
			require.NoError(t, err)
			require.Equal(t, c.want, out)
		})
	}
	for name, edit := range map[string]func(r *middleware.Request){
		"a hosted tool":          func(r *middleware.Request) { r.Tools[2].Name = "x" },
		"another kind":           func(r *middleware.Request) { r.Tools[0].Kind = middleware.KindCustom },
		"a schema of a grammar":  func(r *middleware.Request) { r.Tools[1].Parameters = []byte(`{}`) },
		"a schema that is none":  func(r *middleware.Request) { r.Tools[0].Parameters = []byte(`{`) },
		"a hosted tool from out": func(r *middleware.Request) { r.Tools[2].Native = nil },
	} {
		_, err := editRequest(t, body, edit)
		require.ErrorIs(t, err, codec.ErrUnencodable, name)
	}
}

func TestToolChoice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		choice string
		want   middleware.ToolMode
		only   string
		none   string // written for ToolNone
		forced string // written for a Name
	}{
		"absent":   {`null`, "", "", `"none"`, `{"type":"function","name":"f"}`},
		"auto":     {`"auto"`, "", "", `"none"`, `{"type":"function","name":"f"}`},
		"none":     {`"none"`, middleware.ToolNone, "", `"none"`, `{"type":"function","name":"f"}`},
		"required": {`"required"`, middleware.ToolRequired, "", `"none"`, `{"type":"function","name":"f"}`},
		"function": {`{"type":"function","name":"g"}`, "", "g", `"none"`, `{"type":"function","name":"f"}`},
		"hosted":   {`{"type":"file_search"}`, "", "file_search", `"none"`, `{"type":"function","name":"f"}`},
		"mcp":      {`{"type":"mcp","server_label":"deep"}`, "", "deep", `"none"`, `{"type":"function","name":"f"}`},
		"allowed":  {`{"type":"allowed_tools","mode":"required","tools":[]}`, middleware.ToolRequired, "", `"none"`, `{"type":"function","name":"f"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := func(choice string) string {
				return `{"input":"x","tools":[{"type":"function","name":"f"}],"tool_choice":` + choice + `}`
			}
			req := decodeRequest(t, body(c.choice))
			require.Equal(t, c.want, req.ToolChoice.Mode)
			require.Equal(t, c.only, req.ToolChoice.Name)
			out, err := editRequest(t, body(c.choice), func(r *middleware.Request) { r.ToolChoice = middleware.ToolChoice{Mode: middleware.ToolNone} })
			require.NoError(t, err)
			require.Equal(t, body(c.none), out)
			out, err = editRequest(t, body(c.choice), func(r *middleware.Request) { r.ToolChoice.Name = "f" })
			require.NoError(t, err)
			require.Equal(t, body(c.forced), out)
		})
	}
	out, err := editRequest(t, `{"input":"x","tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}}`, func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolAuto })
	require.NoError(t, err)
	require.Equal(t, `{"input":"x","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}}`, out, "the tools stay allowed")
}
