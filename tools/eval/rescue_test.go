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

// TestCompareRescue: a server that loses every call but one, and refuses a
// question.
func TestCompareRescue(t *testing.T) {
	t.Parallel()
	dir := liveData(t)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/props" {
			_, _ = io.WriteString(w, `{"model_path": "/models/made-up.gguf"}`)
			return
		}
		var request struct {
			Messages    []struct{ Content string }
			Temperature float64
			Tools       []any
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		question := request.Messages[0].Content
		asked = append(asked, question)
		message := `{"role": "assistant", "content": "<tool_call>{\"name\": \"stay\", \"arguments\": {\"city\": \"Rome\", \"nights\": 2}}</tool_call>"}`
		switch {
		case question == "broken":
			message = `{"role": "assistant", "content": "I do not know."}`
		case question == "refused":
			message = `{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "stay", "arguments": "{\"city\": 1}"}}]}`
		case question == "repaired":
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, `{"choices": [{"index": 0, "finish_reason": "stop", "message": `+message+`}]}`)
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	require.NoError(t, run([]string{"-data", dir, "-rescue", server.URL + "/", "-cases", "50", "-wrong"}, &out))
	got := out.String()
	require.Contains(t, got, "made-up.gguf, 5 steps\n")
	for _, line := range []string{
		"| the server alone | 0 | 0.0–43.4 | 0 | 1 | 3 | 1 | 0 | 5 |\n",
		"| gateway | 0 | 0.0–43.4 | 0 | 1 | 3 | 1 | 0 | 7 |\n",
		"| gateway, rescue = [\"auto\"] | 2 | 11.8–76.9 | 2 | 1 | 1 | 1 | 2 | 7 |\n",
		"valid 2 : 0 (p = 0.5), equal to truth 2 : 0 (p = 0.5)\n",
	} {
		require.Contains(t, got, line)
	}
	require.Contains(t, got, "broken\n{", "-wrong prints what is left")
	require.False(t, strings.Contains(strings.Join(asked, " "), "no truth"))
	require.ErrorContains(t, run([]string{"-data", dir, "-rescue", "http://127.0.0.1:1"}, &out), "no model at")
}
