package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The provider is a server whose model names a key wrongly, and corrects itself.
func TestOutput(t *testing.T) {
	asked := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		key := map[int]string{1: "town", 2: "city"}[asked]
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[`+
			`{"id":"c1","type":"function","function":{"name":"get_weather","arguments":"{\"`+key+`\":\"Oslo\"}"}}]}}]}`)
	}))
	t.Cleanup(provider.Close)
	t.Setenv("OPENAI_BASE_URL", provider.URL+"/v1")
	require.Equal(t, "get_weather {\"city\":\"Oslo\"}\n", printed(t, main))
	require.Equal(t, 2, asked)
}

// printed returns what f prints.
func printed(t *testing.T, f func()) string {
	t.Helper()
	before := os.Stdout
	t.Cleanup(func() { os.Stdout = before })
	r, w, err := os.Pipe()
	require.NoError(t, err)
	os.Stdout = w
	f()
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}
