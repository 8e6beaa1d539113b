package responses_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/casefile"
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
	require.Equal(t, strings.Index(body, "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":1"),
		strings.Index(string(out), "event: response.output_item.added"), "what stands before the change")
	got := decodeResponse(t, string(out))
	require.Equal(t, "Hi.More.", got.Message.Text())
	require.Len(t, got.Message.ToolCalls, 1)
	_, end, _ := strings.Cut(string(out), "response.completed")
	require.Contains(t, end, `"output":[`+plainMessage)
}

// A number that appears twice is in nobody's way as long as no event comes
// or goes before it.
func TestDoubledNumberAtTheEndOfAStream(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, casefile.Body(t, "before"))
	resp.Usage.Input = 11
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	casefile.Expect(t, "after", string(out))
}

// The events of one item may stand among those of another. The first ones are
// kept whole, whatever becomes of the others.
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
	require.True(t, strings.HasPrefix(string(out), eventStream(first, done)), string(out))
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

// What is of no item stays behind a change, too.
func TestChangedStreamKeepsEventsOfNoItem(t *testing.T) {
	t.Parallel()
	call := `{"type":"response.output_item.done","output_index":0,"item":` + plainCall + `}`
	end := `{"type":"response.completed","response":{"status":"completed","output":[]}}`
	resp := decodeResponse(t, eventStream(call)+": working\n\n"+eventStream(`{"type":"response.new","x":1}`, end)+": over\n\n")
	resp.Message.ToolCalls[0].Arguments = `{"a":1}`
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	for _, kept := range []string{": working\n\n", eventStream(`{"type":"response.new","x":1}`), eventStream(end) + ": over\n\n"} {
		require.Equal(t, 1, strings.Count(string(out), kept), kept)
	}
}

// New events end their lines as the stream does, also with carriage returns
// alone: clients that end lines at line feeds only must get nothing of it.
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
		require.NotContains(t, string(out), "\n")
		require.Equal(t, `{"a":1}`, decodeResponse(t, string(out)).Message.ToolCalls[0].Arguments)
	}
}
