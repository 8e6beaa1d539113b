package clients_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVersionsInReadme keeps the table true when a client is updated.
func TestVersionsInReadme(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	clients := regexp.MustCompile(`(openai-go/v3|anthropic-sdk-go|genai|sashabaranov/go-openai|langchaingo|ollama/ollama) (v\S+)\n`)
	found := clients.FindAllStringSubmatch(string(mod), -1)
	require.Len(t, found, 6)
	for _, m := range found {
		require.Contains(t, string(readme), " "+m[2]+" |", m[1])
	}
}
