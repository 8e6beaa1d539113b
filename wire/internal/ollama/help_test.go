package ollama_test

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

// throughJSON returns v as a program reads it back that keeps conversations.
func throughJSON[T any](t require.TestingT, v *T) *T {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	out := new(T)
	require.NoError(t, json.Unmarshal(b, out))
	return out
}
