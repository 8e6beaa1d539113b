package gateway

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProviderOf(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"https://api.anthropic.com": "anthropic", "https://API.openai.com/v1": "openai", "https://mine.openai.azure.com": "azure.ai.openai",
		"https://europe-west1-aiplatform.googleapis.com": "gcp.vertex_ai", "http://127.0.0.1:8080": "mine", "https://notopenai.com": "mine", "https://api.openai.com.example.org": "mine",
	} {
		u, err := url.Parse(to)
		require.NoError(t, err)
		require.Equal(t, want, providerOf("mine", u), to)
	}
}
