package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, "get_weather {\"city\":\"Oslo\"}\nvalid after 2 attempts\n", out.String())
}
