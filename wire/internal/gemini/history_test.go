package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// A result that is an object stays one as long as its text is one.
func TestWholeResponses(t *testing.T) {
	t.Parallel()
	const body = `{"contents":[{"parts":[{"functionResponse":{"name":"a","response":{"n": 1, "m":"x"}}},{"functionResponse":{"name":"b","response":{}}}]}]}`
	req := decodeRequest(t, body)
	require.Equal(t, `{"n": 1, "m":"x"}`, req.Messages[0].Text())
	require.Empty(t, req.Messages[1].Parts)
	req.Messages[0].Parts[0].Text = `{"n":2}`
	require.Equal(t, strings.Replace(body, `{"n": 1, "m":"x"}`, `{"n":2}`, 1), encodeRequest(t, req))
	req.Messages[0].Parts[0].Text = `two`
	require.Equal(t, strings.Replace(body, `{"n": 1, "m":"x"}`, `{"output":"two"}`, 1), encodeRequest(t, req))
}

// Tools that the provider runs, and parts in the wrong place.
func TestOpaqueParts(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"contents":[{"role":"model","parts":[{"executableCode":{"code":"1"}},{"toolCall":{"id":"t"}},{"functionResponse":{"name":"x"}}]},`+
		`{"parts":[{"functionCall":{"name":"x"}},{"inlineData":{"data":"%"}}]}]}`)
	require.Len(t, req.Messages, 2)
	for _, m := range req.Messages {
		require.Empty(t, m.ToolCalls)
		for _, p := range m.Parts {
			require.Equal(t, middleware.PartOpaque, p.Kind)
		}
	}
}

// Calls that no declaration has are the computer's, where there is one.
func TestComputerUse(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"contents":[],"tools":[{"computerUse":{"environment":"ENVIRONMENT_BROWSER"}},{"functionDeclarations":[{"name":"wind"}]}]}`)
	require.Equal(t, middleware.KindBuiltin, req.Tools[0].Kind)
	resp, err := codec.Decode(format.NewStream(req, nil), []byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"wind"}},{"functionCall":{"name":"click_at"}}]},"finishReason":"STOP"}]}`))
	require.NoError(t, err)
	require.Equal(t, middleware.KindFunction, resp.Message.ToolCalls[0].Kind)
	require.Equal(t, middleware.KindBuiltin, resp.Message.ToolCalls[1].Kind)
}

// Stored and read again, a request is written byte for byte, and edits still
// find their place.
func TestStoredRequest(t *testing.T) {
	t.Parallel()
	for _, body := range []string{plainRequest, fullRequest, snakeRequest} {
		require.Equal(t, body, encodeRequest(t, throughJSON(t, decodeRequest(t, body))))
	}
}

func TestStoredRequestIsEdited(t *testing.T) {
	t.Parallel()
	req := throughJSON(t, decodeRequest(t, casefile.Body(t, "before")))
	req.Messages[2].ToolCalls[1].Arguments = `{"city":"Ås"}`
	req.Tools[1].Description = "Air."
	casefile.Expect(t, "after", encodeRequest(t, req))
}

// Whoever edits in place what was handed out, edits: the snapshot is the
// codec's own.
func TestRudeEdits(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, fullRequest)
	parts, data := req.Messages[1].Parts, req.Messages[1].Parts[1].Data
	data[0], parts[0].Text = 'x', "changed"
	body := encodeRequest(t, req)
	require.Contains(t, body, `"changed"`)
	require.Contains(t, body, `"eFBORw=="`)
}

// A turn of many results with long members: each is stored with a frame of its own, and read
// again.
func TestResultsInALongContent(t *testing.T) {
	t.Parallel()
	body := `{"contents":[{"note":"` + strings.Repeat("x", 300) + `","parts":[{"functionResponse":{"name":"a","response":{"output":"1"}}},{"functionResponse":{"name":"b","response":{"output":"2"}}}]}]}`
	req := decodeRequest(t, body)
	for _, m := range req.Messages {
		require.Less(t, len(m.Native.Raw), 150)
	}
	require.Equal(t, body, encodeRequest(t, req))
	alone := &middleware.Request{Messages: req.Messages}
	require.JSONEq(t, `{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"1"}}},{"functionResponse":{"name":"b","response":{"output":"2"}}}]}]}`,
		encodeRequest(t, alone), "all results in one content")
}

// Text next to a result does not belong to it: the result is in its response.
func TestTextInsideAResult(t *testing.T) {
	t.Parallel()
	const body = `{"contents":[{"parts":[{"functionResponse":{"name":"a","response":{"output":"1"},"parts":[{"text":"x"},{"functionCall":{"name":"y"}}]}}]}]}`
	req := decodeRequest(t, body)
	require.Equal(t, "1", req.Messages[0].Text())
	req.Messages[0].Parts = req.Messages[0].Parts[:2]
	require.Equal(t, strings.Replace(body, `{"text":"x"},{"functionCall":{"name":"y"}}`, `{"text":"x"}`, 1), encodeRequest(t, req))
	req.Messages[0].Parts = req.Messages[0].Parts[:1]
	require.Equal(t, strings.Replace(body, `,"parts":[{"text":"x"},{"functionCall":{"name":"y"}}]`, ``, 1), encodeRequest(t, req))
}

func TestMedia(t *testing.T) {
	t.Parallel()
	body := casefile.Body(t, "before")
	req := decodeRequest(t, body)
	parts := req.Messages[0].Parts
	require.Equal(t, "gs://b/x", parts[0].URL)
	require.Equal(t, []byte{0xfb, 0xff}, parts[1].Data)
	parts[0].URL, parts[0].MediaType, parts[1].MediaType = "gs://b/y", "v/w", "c/d"
	casefile.Expect(t, "after", encodeRequest(t, req))
	parts[1].Data = []byte{0xfb}
	require.Contains(t, encodeRequest(t, req), `"data":"+w=="`)
	for _, swap := range []func(*middleware.Part, *middleware.Part){
		func(_, data *middleware.Part) { data.URL = "gs://b/z" },
		func(_, data *middleware.Part) { data.Text = "x" },
	} {
		req := decodeRequest(t, body)
		swap(&req.Messages[0].Parts[0], &req.Messages[0].Parts[1])
		_, err := format.EncodeRequest(req)
		require.ErrorIs(t, err, codec.ErrUnencodable)
	}
	req.Messages[0].Parts[0].URL, req.Messages[0].Parts[0].Data = "", []byte{1}
	req.Messages[0].Parts[1].URL, req.Messages[0].Parts[1].Data = "gs://b/z", nil
	require.Equal(t, withoutNative(req.Messages), withoutNative(decodeRequest(t, encodeRequest(t, req)).Messages))
	for _, odd := range []string{`{"mimeType":1,"data":"AQ=="}`, `{"mimeType":"a/b","data":"!"}`, `{"mimeType":"a/b","data":1}`} {
		req := decodeRequest(t, `{"contents":[{"parts":[{"inlineData":`+odd+`}]}]}`)
		require.Equal(t, middleware.PartOpaque, req.Messages[0].Parts[0].Kind, odd)
	}
}

// Tools that were stored are taken into another request as they are.
func TestStoredTools(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(decodeRequest(t, fullRequest).Tools)
	require.NoError(t, err)
	var tools []middleware.Tool
	require.NoError(t, json.Unmarshal(b, &tools))
	req := decodeRequest(t, plainRequest)
	req.Tools = tools
	require.Contains(t, encodeRequest(t, req), `"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name": "wind", "description": "Wind.", "parameters": {"type": "OBJECT"`)
	for _, raw := range []string{"x", `{"name":"a","parameters":1}`} {
		req.Tools = []middleware.Tool{{Name: "a", Native: &middleware.Native{Dialect: format.Dialect(), Raw: raw}}}
		_, err := format.EncodeRequest(req)
		require.ErrorIs(t, err, codec.ErrUnencodable, raw)
	}
}
