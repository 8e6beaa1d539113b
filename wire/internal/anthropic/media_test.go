package anthropic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// userBlock returns a request with that block.
func userBlock(block string) string {
	return `{"messages":[{"role":"user","content":[` + block + `]}]}`
}

func TestMedia(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		block string
		want  middleware.Part
	}{
		"an image":           {`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"AAEC"}}`, middleware.Part{Kind: middleware.PartMedia, MediaType: "image/gif", Data: []byte{0, 1, 2}}},
		"an address":         {`{"type":"image","source":{"type":"url","url":"https://i.example"}}`, middleware.Part{Kind: middleware.PartMedia, URL: "https://i.example"}},
		"a document":         {`{"type":"document","title":"T","source":{"type":"url","url":"https://d.example"}}`, middleware.Part{Kind: middleware.PartMedia, MediaType: "application/pdf", URL: "https://d.example"}},
		"a text":             {`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"T"}}`, middleware.Part{Kind: middleware.PartMedia, MediaType: "text/plain", Data: []byte("T")}},
		"a file":             {`{"type":"image","source":{"type":"file","file_id":"f"}}`, middleware.Part{Kind: middleware.PartOpaque}},
		"no base64":          {`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"?"}}`, middleware.Part{Kind: middleware.PartOpaque}},
		"an empty text":      {`{"type":"document","source":{"type":"text","media_type":"text/plain","data":""}}`, middleware.Part{Kind: middleware.PartOpaque}},
		"an empty address":   {`{"type":"image","source":{"type":"url"}}`, middleware.Part{Kind: middleware.PartOpaque}},
		"an upload":          {`{"type":"container_upload","file_id":"f"}`, middleware.Part{Kind: middleware.PartOpaque}},
		"a user's tool call": {`{"type":"tool_use","id":"1","name":"a","input":{}}`, middleware.Part{Kind: middleware.PartOpaque}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, userBlock(x.block))
			require.Equal(t, []middleware.Part{x.want}, withoutNative(req.Messages...)[0].Parts)
			require.Equal(t, x.block, req.Messages[0].Parts[0].Native.Raw)
			require.Equal(t, userBlock(x.block), encodeRequest(t, throughJSON(t, req)))
		})
	}
}

func TestMediaChanged(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, userBlock(`{"type":"image","source":{"type":"url","url":"https://i.example"},"cache_control":{"type":"ephemeral"}}`))
	req.Messages[0].Parts[0].URL, req.Messages[0].Parts[0].MediaType = "https://d.example", "application/pdf"
	require.Equal(t, userBlock(`{"type":"document","source":{"type":"url","url":"https://d.example"},"cache_control":{"type":"ephemeral"}}`), encodeRequest(t, req))
}

func TestUnsignedReasoning(t *testing.T) {
	t.Parallel()
	const body = `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"so","signature":""}]}]}`
	req := decodeRequest(t, body)
	req.Messages[0].Parts[0].Text = "thus"
	require.Equal(t, replaceOnce(t, body, `"so"`, `"thus"`), encodeRequest(t, req))
}

// A tool message that is made a user's is written by the rules for those.
func TestRoleChanged(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, userBlock(`{"type":"tool_result","tool_use_id":"1","content":"R"}`))
	req.Messages[0].Role = middleware.RoleUser
	require.Equal(t, `{"messages":[{"role":"user","content":"R"}]}`, encodeRequest(t, req))
}

func TestToolChoiceThatWasNotThere(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		edit func(*middleware.Request)
		want string
	}{
		"required": {func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolRequired }, `{"type":"any"}`},
		"one":      {func(r *middleware.Request) { r.ToolChoice.Name = "a" }, `{"type":"tool","name":"a"}`},
	} {
		req := decodeRequest(t, `{"messages":[]}`)
		x.edit(req)
		require.Equal(t, `{"messages":[],"tool_choice":`+x.want+`}`, encodeRequest(t, req), name)
	}
	req := decodeRequest(t, `{"messages":[],"tool_choice":{"type":"tool","name":"a"}}`)
	require.Equal(t, "a", req.ToolChoice.Name)
	req.ToolChoice.Name = ""
	require.Equal(t, `{"messages":[],"tool_choice":{"type":"auto"}}`, encodeRequest(t, req))
}

func TestToolsThatWereNotThere(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"messages":[]}`)
	req.Tools = []middleware.Tool{{Name: "a"}}
	require.Equal(t, `{"messages":[],"tools":[{"name":"a","input_schema":{"type":"object"}}]}`, encodeRequest(t, req))
}
