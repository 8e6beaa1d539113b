package recorded_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
)

// Whatever a line holds: turns with calls, or an error of one of the two kinds. Turns beside
// an error are of other records of the line.
func FuzzTurns(f *testing.F) {
	f.Add([]byte(`{"source":"a","tools_ref":"t1","tool_calls":[{"id":1,"name":"add","arguments":null}]}`))
	f.Add([]byte(`{"request":"{}","response":"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\"}]}}]}\n\n"}`))
	f.Add([]byte(`{"request":{"functions":[{}]},"response":{"choices":[{"message":{"function_call":{"name":"f"}}}]}}`))
	for _, d := range dialects {
		for _, response := range []string{d.whole, d.streamed} {
			b, err := json.Marshal(map[string]string{"request": d.request, "response": response})
			require.NoError(f, err)
			f.Add(b)
		}
	}
	files, err := filepath.Glob(filepath.Join(examples, "*.json*"))
	require.NoError(f, err)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		for line := range bytes.Lines(b) {
			f.Add(line)
		}
	}
	sets, err := recorded.ReadToolsets("sets", strings.NewReader(toolsetLines))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := recorded.Line{File: "f", N: 1, Text: text}.Turns(sets)
		var skipped recorded.Skipped
		var e *recorded.Error
		for _, turn := range got {
			require.NotEmpty(t, turn.Calls)
		}
		switch {
		case err == nil:
			require.NotEmpty(t, got)
		case errors.As(err, &skipped):
			require.Empty(t, got)
		case !errors.As(err, &e):
			t.Fatalf("an error of neither kind: %v", err)
		}
	})
}

// A reader always comes to an end. Its line numbers grow, but for the elements of an array
// that stand on one line, and for the turns of sessions, which come at the end.
func FuzzReader(f *testing.F) {
	f.Add([]byte("a\r\n\n b"))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Add([]byte(`{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"x","input":{}}]}}` + "\n{"))
	f.Fuzz(func(t *testing.T, file []byte) {
		last := 0
		for l, err := range recorded.NewReader("f", bytes.NewReader(file)).All() {
			if err == nil {
				if l.Text == nil {
					continue // of a session
				}
				require.GreaterOrEqual(t, l.N, last)
				require.NotEmpty(t, l.Text)
				last = l.N
			}
		}
	})
}
