package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden file")

// What a newcomer sees first is held as it is.
func TestOutput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, false))
	const file = "testdata/trees.golden"
	if *update {
		require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

func TestColour(t *testing.T) {
	t.Parallel()
	var plain, colour bytes.Buffer
	require.NoError(t, run(t.Context(), &plain, false))
	require.NoError(t, run(t.Context(), &colour, true))
	require.NotContains(t, plain.String(), "\x1b")
	require.Contains(t, colour.String(), "\x1b[31m")
	bare := colour.String()
	for _, code := range []string{"0", "1", "2", "31", "32"} {
		bare = strings.ReplaceAll(bare, "\x1b["+code+"m", "")
	}
	require.Equal(t, plain.String(), bare)

	file, err := os.CreateTemp(t.TempDir(), "out")
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	require.False(t, colourful(file), "a file is not a terminal")
}
