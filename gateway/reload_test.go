package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// responsesStream is a streamed answer of OpenAI Responses with text and a call.
func responsesStream(id, arguments string) string {
	var b strings.Builder
	n := 0
	event := func(kind, members string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, n, members)
		n++
	}
	response := func(status, output string) string {
		return fmt.Sprintf(`"response":{"id":%q,"object":"response","created_at":1,"model":"m","status":%q,"output":[%s],"usage":null}`, id, status, output)
	}
	item := func(status, arguments string) string {
		return fmt.Sprintf(`{"id":"fc_%s","type":"function_call","status":%q,"call_id":"c","name":"read_file","arguments":%q}`, id, status, arguments)
	}
	message := func(status, content string) string {
		return fmt.Sprintf(`{"id":"m_%s","type":"message","status":%q,"role":"assistant","content":[%s]}`, id, status, content)
	}
	const text = `{"type":"output_text","text":"Reading.","annotations":[]}`
	event("response.created", response("in_progress", ""))
	event("response.output_item.added", `"output_index":0,"item":`+message("in_progress", ""))
	event("response.content_part.added", fmt.Sprintf(`"output_index":0,"content_index":0,"item_id":"m_%s","part":{"type":"output_text","text":"","annotations":[]}`, id))
	event("response.output_text.delta", fmt.Sprintf(`"output_index":0,"content_index":0,"item_id":"m_%s","delta":"Reading."`, id))
	event("response.output_text.done", fmt.Sprintf(`"output_index":0,"content_index":0,"item_id":"m_%s","text":"Reading."`, id))
	event("response.content_part.done", fmt.Sprintf(`"output_index":0,"content_index":0,"item_id":"m_%s","part":%s`, id, text))
	event("response.output_item.done", `"output_index":0,"item":`+message("completed", text))
	event("response.output_item.added", `"output_index":1,"item":`+item("in_progress", ""))
	event("response.function_call_arguments.delta", fmt.Sprintf(`"output_index":1,"item_id":"fc_%s","delta":%q`, id, arguments))
	event("response.function_call_arguments.done", fmt.Sprintf(`"output_index":1,"item_id":"fc_%s","arguments":%q`, id, arguments))
	event("response.output_item.done", `"output_index":1,"item":`+item("completed", arguments))
	event("response.completed", response("completed", message("completed", text)+","+item("completed", arguments)))
	return b.String()
}

const responsesTools = `"tools":[{"type":"function","name":"read_file","parameters":{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"],"additionalProperties":false}}]`

// After a re-ask the client knows the stream by the id of the rejected answer. A
// request that continues from it reaches the accepted one, also after a reload.
func TestIDsSurviveAReload(t *testing.T) {
	t.Parallel()
	var got []string
	answers := []string{responsesStream("resp_1", bad), responsesStream("resp_2", good), responsesStream("resp_3", good), responsesStream("resp_4", good)}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, string(b))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, answers[len(got)-1])
	}))
	defer provider.Close()
	c := gateway.Config{Upstreams: []gateway.Upstream{{Name: "one", URL: provider.URL}, {Name: "two", URL: provider.URL + "/two", Prefix: "/two"}}}
	g, err := gateway.New(c, gateway.Options{})
	require.NoError(t, err)
	defer g.Close()
	server := httptest.NewServer(g)
	defer server.Close()

	_, answer, _ := post(t, server.URL+"/v1/responses", `{"model":"m","stream":true,"input":"Read a.txt.",`+responsesTools+`}`)
	require.Contains(t, answer, `"id":"resp_1"`)
	require.NotContains(t, answer, `"id":"resp_2"`)
	require.NoError(t, g.Reload(c))
	post(t, server.URL+"/v1/responses", `{"model":"m","stream":true,"previous_response_id":"resp_1","input":"And?",`+responsesTools+`}`)
	require.Contains(t, got[2], `"previous_response_id":"resp_2"`)
	post(t, server.URL+"/two/v1/responses", `{"model":"m","stream":true,"previous_response_id":"resp_1","input":"And?",`+responsesTools+`}`)
	require.Contains(t, got[3], `"previous_response_id":"resp_1"`, "another provider's")
}

// No request fails while the configuration is replaced, and a bad configuration
// changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, chatAnswer(bad)) }))
	defer provider.Close()
	config := func(attempts int) gateway.Config {
		return gateway.Config{Settings: gateway.Settings{Attempts: attempts}, Upstreams: []gateway.Upstream{{URL: provider.URL}}}
	}
	g, err := gateway.New(config(1), gateway.Options{})
	require.NoError(t, err)
	defer g.Close()
	server := httptest.NewServer(g)
	defer server.Close()
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 50 {
				status, _, header := post(t, server.URL+"/v1/chat/completions", chatRequest("m"))
				require.Equal(t, http.StatusOK, status)
				require.Contains(t, []string{"1", "2"}, header.Get("X-Toolmend-Attempts"))
			}
		})
	}
	for i := range 100 {
		require.NoError(t, g.Reload(config(1+i%2)))
	}
	clients.Wait()
	require.ErrorContains(t, g.Reload(gateway.Config{}), "upstream")
	_, _, header := post(t, server.URL+"/v1/chat/completions", chatRequest("m"))
	require.Equal(t, "2", header.Get("X-Toolmend-Attempts"), "the last good configuration")
}
