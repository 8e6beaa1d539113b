package responses_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
)

// The end of some streams names only some of the items. After a change it names
// all of them.
func TestChangedStreamWhoseEndNamesSomeItems(t *testing.T) {
	t.Parallel()
	body := eventStream(
		`{"type":"response.created","response":{"id":"r","output":[]}}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+plainMessage+`}`,
		`{"type":"response.output_item.done","output_index":1,"item":`+plainCall+`}`,
		`{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+plainCall+`]}}`)
	resp := decodeResponse(t, body)
	resp.Message.Parts = append(resp.Message.Parts, middleware.Part{Text: "More."})
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	got := decodeResponse(t, string(out))
	require.Equal(t, "Hi.More.", got.Message.Text())
	require.Len(t, got.Message.ToolCalls, 1)
	_, end, _ := strings.Cut(string(out), "response.completed")
	require.Contains(t, end, `"output":[`+plainMessage)
}

// A number that appears twice does no harm as long as no event comes or goes before it.
func TestDoubledNumberAtTheEndOfAStream(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, casefile.Body(t, "before"))
	resp.Usage.InputTokens = 11
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	casefile.Expect(t, "after", string(out))
}

// The events of one item may come between the events of another.
func TestChangedStreamWithInterleavedItems(t *testing.T) {
	t.Parallel()
	first := `{"type":"response.output_item.added","output_index":0,"item":` + strings.Replace(plainMessage, `"completed"`, `"in_progress"`, 1) + `}`
	call := `{"type":"response.output_item.added","output_index":1,"item":` + strings.Replace(plainCall, `"{}"`, `""`, 1) + `}`
	done := `{"type":"response.output_item.done","output_index":0,"item":` + plainMessage + `}`
	end := `{"type":"response.completed","response":{"status":"completed","output":[]}}`
	body := eventStream(first, call, done, `{"type":"response.output_item.done","output_index":1,"item":`+plainCall+`}`, end)
	resp := decodeResponse(t, body)
	resp.Message.ToolCalls[0].Arguments = `{"a":1}`
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	got := decodeResponse(t, string(out))
	require.Equal(t, "Hi.", got.Message.Text())
	require.Equal(t, `{"a":1}`, got.Message.ToolCalls[0].Arguments)

	resp.Message.Parts[0].Text, resp.Message.ToolCalls[0].Arguments = "Ho.", "{}"
	out, err = format.EncodeResponse(resp)
	require.NoError(t, err)
	got = decodeResponse(t, string(out))
	require.Equal(t, "Ho.", got.Message.Text())
	require.Equal(t, `{}`, got.Message.ToolCalls[0].Arguments)
}

// Lines may end with carriage returns alone. What is written ends them as all clients
// know it.
func TestChangedStreamWithCarriageReturns(t *testing.T) {
	t.Parallel()
	body := strings.ReplaceAll(eventStream(
		`{"type":"response.created","response":{"status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+plainCall+`}`,
		`{"type":"response.completed","response":{"status":"completed","output":[`+plainCall+`]}}`), "\n", "\r")
	for _, body := range []string{body, strings.TrimRight(body, "\r")} {
		resp := decodeResponse(t, body)
		resp.Message.ToolCalls[0].Arguments = `{"a":1}`
		out, err := format.EncodeResponse(resp)
		require.NoError(t, err)
		require.NotContains(t, string(out), "\r")
		require.Equal(t, `{"a":1}`, decodeResponse(t, string(out)).Message.ToolCalls[0].Arguments)
	}
}
