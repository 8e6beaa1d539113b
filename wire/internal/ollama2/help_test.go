package ollama2_test

import (
	"encoding/json"
	"strings"

	"github.com/stretchr/testify/require"
)

// replace puts new in the place of the first old; "" is nowhere.
func replace(s, old, new string) string {
	if old == "" {
		return s
	}
	return strings.Replace(s, old, new, 1)
}

// stored sends v through JSON, as a program does that keeps a conversation.
func stored[T any](t require.TestingT, v *T) *T {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	out := new(T)
	require.NoError(t, json.Unmarshal(b, out))
	return out
}
