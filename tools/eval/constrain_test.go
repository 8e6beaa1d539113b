package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompareConstrain: a model that misses a value in its calls, unless the server
// constrains it. Without the failed call in the prompt it also has the right value.
func TestCompareConstrain(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/props" {
			_, _ = io.WriteString(w, `{"model_path": "/models/made-up.gguf"}`)
			return
		}
		var request struct {
			Messages       []struct{ Content string }
			ResponseFormat json.RawMessage `json:"response_format"`
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		question := request.Messages[0].Content
		content := `<tool_call>{"name": "stay", "arguments": {"city": "Rome"}}</tool_call>`
		switch {
		case question == "repaired":
			content = "I do not know."
		case question == "refused":
			w.WriteHeader(http.StatusBadRequest)
		case len(request.ResponseFormat) > 0 && len(request.Messages) == 1:
			content = `{"name": "stay", "arguments": {"city": "Rome", "nights": 2}}`
		case len(request.ResponseFormat) > 0:
			content = `{"name": "stay", "arguments": {"city": "Rome", "nights": 9}}`
		}
		text, _ := json.Marshal(content)
		_, _ = io.WriteString(w, `{"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": `+string(text)+`}}]}`)
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	require.NoError(t, run([]string{"-data", liveData(t), "-constrain", server.URL + "/", "-cases", "50"}, &out))
	got := out.String()
	require.Contains(t, got, "made-up.gguf, 4 first answers, 1 refused, 3 re-asked\n")
	for _, line := range []string{
		"| as it is by default | 0 | 0 | 0 |",
		`| "named" | 0 | 0 | 0 |`,
		`| "response-format" | 3 | 0 | 3 |`,
		"| response-format, without the failed call | 3 | 3 | 0 |",
	} {
		require.Contains(t, got, line)
	}
	require.False(t, strings.Contains(got, "stay"), "-wrong prints the calls")
}
